"""Neighbours at work: sockets beside client and server that send as a condition asks.

A thread for each end of a flow, which sleeps in the kernel: bulk data is written from one buffer
and read without being copied (MSG_TRUNC, tcp(7)), datagrams are sent at fixed times and never read.
What came of it captures show, at the neighbour and at its remote end (``testbed.wire.neighbours``);
only the congestion control of a connection, and how busy it was, is asked of the kernel.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread

from testbed.lab.neighbour_hosts import NEIGHBOUR_ADDRESS, REMOTE_ADDRESS
from testbed.lab.topology import Topology
from testbed.model.traffic import (
    CALL_STAMPS,
    Neighbour,
    PlannedFlow,
    ToldConnection,
    list_flows,
)

IP_UDP_BYTES = 28
CHUNK = bytes(1 << 18)
ROOM_BYTES = 1 << 24
"""Read at once, of which nothing is kept."""
PATIENCE_S = 60.0
"""A neighbour whose connection does not open in that time has none."""
ENDLESS_S = 1e6
_RTP = struct.Struct("!BBHII")  # version, type, number, time stamp, source (RFC 3550 section 5.1)
_VERSION, _G711 = 0x80, 0
_NO_LINGERING = struct.pack("=ii", 1, 0)
_INFO_BYTES = 176
_ESTABLISHED, _RETRANSMITS_AT, _BUSY_AT = 1, 100, 168
"""In struct tcp_info (linux/tcp.h), which begins with the state: tcpi_total_retrans, and
tcpi_busy_time in microseconds."""


@dataclass(slots=True)
class _Running:
    """A flow at work: the sockets of the neighbour and of its remote end, and how it went."""

    flow: PlannedFlow
    near: socket.socket
    far: socket.socket
    stop: Event = field(default_factory=Event)
    sender: socket.socket | None = None
    told: ToldConnection | None = None
    problem: str = ""

    def end(self) -> None:
        """Have it send no more, if it still does."""
        self.ask()
        self.stop.set()
        if self.sender is not None:
            with suppress(OSError):
                self.sender.shutdown(socket.SHUT_RDWR)  # wakes who writes

    def ask(self) -> None:
        """Ask the kernel about a connection, as long as that is there."""
        if self.sender is None or self.stop.is_set():
            return
        with suppress(OSError):
            info = self.sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
            name = self.sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
            if info[0] == _ESTABLISHED:
                busy_us: int = struct.unpack_from("=Q", info, _BUSY_AT)[0]
                again: int = struct.unpack_from("=I", info, _RETRANSMITS_AT)[0]
                self.told = ToldConnection(
                    self.flow.port, name.rstrip(b"\0").decode(), busy_us / 1e6, again
                )


@dataclass(frozen=True, slots=True)
class KernelAccount:
    """What the kernel told of each connection, and a sentence for each flow that went wrong."""

    told: list[ToldConnection] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@contextmanager
def run_neighbours(
    topology: Topology,
    neighbours: tuple[Neighbour, ...],
    load_ns: int,
    drain: Callable[[], None],
) -> Iterator[KernelAccount]:
    """Have all ``neighbours`` send at their times; the undo ends them, and their account is whole.

    ``load_ns`` is the CLOCK_REALTIME at which the load starts, in ns; ``drain`` waits until what
    they sent has arrived.
    """
    account = KernelAccount()
    with ExitStack() as undo:
        running = [_open(topology, flow, undo) for flow in list_flows(neighbours)]
        threads = [
            Thread(target=_send_stream if each.flow.neighbour.algorithm else _send_datagrams,
                   args=(each, load_ns), daemon=True)
            for each in running
        ]  # fmt: skip
        for thread in threads:
            thread.start()
        try:
            yield account
        finally:
            for each in running:
                each.end()
            for thread in threads:
                thread.join(PATIENCE_S)
            drain()  # before the sockets close, which would answer what comes then
            for each in running:
                if each.flow.neighbour.algorithm:
                    account.told.append(each.told or ToldConnection(each.flow.port))
                if each.problem:
                    account.problems.append(f"{each.flow.neighbour.text}: {each.problem}")


def _open(topology: Topology, flow: PlannedFlow, undo: ExitStack) -> _Running:
    """Make the sockets of ``flow`` where it is to run; connections are opened by the neighbour."""
    kind = socket.SOCK_STREAM if flow.neighbour.algorithm else socket.SOCK_DGRAM
    ends = []
    for role, address in (("neighbour", NEIGHBOUR_ADDRESS), ("remote", REMOTE_ADDRESS)):
        with topology.role(role).entered():
            end = undo.enter_context(socket.socket(socket.AF_INET, kind))
        end.bind((address, flow.port))
        ends.append(end)
    near, far = ends
    if kind == socket.SOCK_DGRAM:
        near.connect((REMOTE_ADDRESS, flow.port))
        far.connect((NEIGHBOUR_ADDRESS, flow.port))
    else:
        for end in ends:  # what is accepted has that of its listener
            algorithm = flow.neighbour.algorithm.encode()
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGERING)
        far.listen(1)
    return _Running(flow, near, far)


def _sleep_until(moment_ns: int, stop: Event) -> bool:
    """Whether the moment came before the end did."""
    return not stop.wait(max(0, moment_ns - time.time_ns()) / 1e9)


def _left_s(neighbour: Neighbour, load_ns: int) -> float:
    """How long a flow has to go on yet, in seconds."""
    if neighbour.to_s is None:
        return ENDLESS_S
    return (load_ns - time.time_ns()) / 1e9 + neighbour.to_s


def _send_stream(each: _Running, load_ns: int) -> None:
    """Open the connection at its time and write to it until its end, which is abrupt."""
    neighbour, port = each.flow.neighbour, each.flow.port
    if not _sleep_until(load_ns + round(neighbour.from_s * 1e9), each.stop):
        return
    try:
        each.near.settimeout(PATIENCE_S)
        each.far.settimeout(PATIENCE_S)
        each.near.connect((REMOTE_ADDRESS, port))
        accepted, _ = each.far.accept()
        with each.near, accepted:
            sender, reader = each.near, accepted
            if each.flow.way == "down":
                sender, reader = reader, sender
            reader.settimeout(None)
            Thread(target=_read_stream, args=(reader,), daemon=True).start()
            each.sender = sender
            while not each.stop.is_set() and (left_s := _left_s(neighbour, load_ns)) > 0:
                sender.settimeout(left_s)
                with suppress(TimeoutError):
                    sender.send(CHUNK)
            each.ask()
    except OSError as error:
        each.problem = "" if each.stop.is_set() else f"its connection ended: {error}"


def _read_stream(reader: socket.socket) -> None:
    """Take what comes, and throw it away in the kernel."""
    room = bytearray(ROOM_BYTES)
    with suppress(OSError):
        while reader.recv_into(room, 0, socket.MSG_TRUNC | socket.MSG_WAITALL):
            pass


def _send_datagrams(each: _Running, load_ns: int) -> None:
    """Send a packet at each of its times, with RTP's header and the packet's number in it."""
    neighbour = each.flow.neighbour
    sender = each.near if each.flow.way == "up" else each.far
    payload = bytes(neighbour.packet_bytes - IP_UDP_BYTES - _RTP.size)
    began_ns, number = load_ns + round(neighbour.from_s * 1e9), 0
    try:
        while _left_s(neighbour, load_ns) > 0 and _sleep_until(
            began_ns + number * neighbour.gap_ns, each.stop
        ):
            stamp = number * CALL_STAMPS & 0xFFFFFFFF
            sender.send(
                _RTP.pack(_VERSION, _G711, number & 0xFFFF, stamp, each.flow.port) + payload
            )
            number += 1
    except OSError as error:
        each.problem = f"it could not send: {error}"
