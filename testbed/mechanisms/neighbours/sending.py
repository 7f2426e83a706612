"""Neighbours at work: sockets beside client and server that send as a condition asks.

A thread for each end of a flow, which sleeps in the kernel: data of TCP is written from one buffer
and read without being copied (MSG_TRUNC, tcp(7)), datagrams are sent at fixed times and never read.
What came of it captures show, at the neighbour and at its remote end (testbed/proof/neighbours);
only the congestion control of a connection, and how busy it was, is asked of the kernel.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

from testbed.capture.tcpdump import capture, snap_bytes
from testbed.client.interface import LoadOrder
from testbed.lab.laboratory import Lab
from testbed.lab.neighbour_hosts import (
    HOSTS,
    NEIGHBOUR_ADDRESS,
    NEIGHBOUR_DEVICE,
    REMOTE_ADDRESS,
    REMOTE_DEVICE,
)
from testbed.lab.topology import Topology
from testbed.model import NEIGHBOUR_FILE, REMOTE_FILE, Condition
from testbed.model.fetches import REQUEST_BYTES, plan_fetches
from testbed.model.traffic import (
    CALL_STAMPS,
    Neighbour,
    PlannedFlow,
    ToldConnection,
    list_flows,
    parse_traffic,
)

IP_UDP_BYTES = 28
CHUNK = bytes(1 << 18)
ROOM_BYTES, FETCH_ROOM_BYTES = 1 << 24, 1 << 20
"""Read at once, of which nothing is kept."""
PATIENCE_S = 60.0
"""A neighbour whose connection does not open in that time has none."""
ENDLESS_S = 1e6
_RTP = struct.Struct("!BBHII")  # version, type, number, time stamp, source (RFC 3550 section 5.1)
_VERSION, _G711 = 0x80, 0
_NO_LINGERING = struct.pack("=ii", 1, 0)
_INFO_BYTES = 176
_ESTABLISHED, _CLOSE_WAIT, _RETRANSMITS_AT, _BUSY_AT = 1, 8, 100, 168
"""In struct tcp_info (linux/tcp.h), which begins with the state: tcpi_total_retrans, and
tcpi_busy_time in microseconds."""


@dataclass(slots=True)
class _Running:
    """A flow at work: the sockets of the neighbour and of its remote end, and how it went.

    ``sender`` is the connection's end that sends, while there is one.
    """

    flow: PlannedFlow
    near: socket.socket
    far: socket.socket
    stop: Event = field(default_factory=Event)
    sender: socket.socket | None = None
    told: list[ToldConnection] = field(default_factory=list)
    problem: str = ""

    def end(self) -> None:
        """Have it send no more, if it still does."""
        sender = self.sender
        self.ask()
        self.stop.set()
        asking = (self.near, self.far) if self.flow.neighbour.asks else ()
        for each in (sender, *asking):
            if each is not None:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)  # wakes who waits for it

    def ask(self) -> None:
        """Ask the kernel about a connection that ends."""
        sender, self.sender = self.sender, None
        if sender is None or self.stop.is_set():
            return
        with suppress(OSError):
            info = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
            name = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
            if info[0] in (_ESTABLISHED, _CLOSE_WAIT):
                busy_us: int = struct.unpack_from("=Q", info, _BUSY_AT)[0]
                again: int = struct.unpack_from("=I", info, _RETRANSMITS_AT)[0]
                algorithm = name.rstrip(b"\0").decode()
                self.told.append(ToldConnection(self.flow.port, algorithm, busy_us / 1e6, again))


@dataclass(frozen=True, slots=True)
class KernelAccount:
    """What the kernel told of connections, and a sentence for each flow that went wrong.

    ``load_ns`` is when the load was expected.
    """

    load_ns: int = 0
    told: list[ToldConnection] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@contextmanager
def accompanied(
    condition: Condition, lab: Lab, order: LoadOrder, scratch: Path
) -> Iterator[KernelAccount]:
    """Have the neighbours of ``condition`` send while the block loads the page, then end them.

    Afterwards nothing of theirs is on the link, their account is whole and their captures, of the
    neighbour and of its remote end, are in ``scratch``.
    """
    neighbours, topology = parse_traffic(condition.traffic), lab.topology
    if not neighbours or order.load_ns is None:
        yield KernelAccount()
        return
    account = KernelAccount(order.load_ns)
    watched = zip(
        HOSTS, (NEIGHBOUR_DEVICE, REMOTE_DEVICE), (NEIGHBOUR_FILE, REMOTE_FILE), strict=True
    )
    with ExitStack() as undo:
        for host, device, file in watched:
            taken = scratch / file, scratch / f"{file}.log", None, snap_bytes(condition)
            undo.enter_context(capture(topology.role(host), device, *taken, in_blocks=True))
        running = [_open(topology, flow, order.seed, undo) for flow in list_flows(neighbours)]
        threads = [
            Thread(target=_work, args=(each, topology, order.load_ns, order.seed), daemon=True)
            for each in running
        ]
        for thread in threads:
            thread.start()
        try:
            yield account
        finally:
            for each in running:
                each.end()
            for thread in threads:
                thread.join(PATIENCE_S)
            lab.drain()  # before the sockets close, which would answer what comes then
            for each in running:
                account.told.extend(each.told)
                if each.problem:
                    account.problems.append(f"{each.flow.neighbour.text}: {each.problem}")


def _open(topology: Topology, flow: PlannedFlow, seed: int, undo: ExitStack) -> _Running:
    """Make the sockets of ``flow`` where it is to run; connections are opened by the neighbour."""
    port = next(plan_fetches(flow, seed)).port if flow.neighbour.asks else flow.port
    near = _bind(topology, flow, "neighbour", port)
    far = _bind(topology, flow, "remote", flow.port)
    running = _Running(flow, near, far)
    undo.callback(lambda: running.near.close())
    undo.enter_context(far)
    if flow.neighbour.algorithm:
        far.listen(1)
    else:
        near.connect((REMOTE_ADDRESS, flow.port))
        far.connect((NEIGHBOUR_ADDRESS, flow.port))
    return running


def _bind(topology: Topology, flow: PlannedFlow, role: str, port: int) -> socket.socket:
    algorithm = flow.neighbour.algorithm
    with topology.role(role).entered():
        end = socket.socket(socket.AF_INET, socket.SOCK_STREAM if algorithm else socket.SOCK_DGRAM)
    end.bind((NEIGHBOUR_ADDRESS if role == "neighbour" else REMOTE_ADDRESS, port))
    if algorithm:  # what is accepted has that of its listener
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
        end.settimeout(PATIENCE_S)
    if algorithm and not flow.neighbour.asks:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGERING)
    return end


def _work(each: _Running, topology: Topology, load_ns: int, seed: int) -> None:
    """Do what the flow's neighbour does, until it is over."""
    try:
        if each.flow.neighbour.asks:
            _fetch(each, topology, load_ns, seed)
        elif each.flow.neighbour.algorithm:
            _send_stream(each, load_ns)
        else:
            _send_datagrams(each, load_ns)
    except OSError as error:
        each.problem = "" if each.stop.is_set() else f"it ended: {error}"


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


def _fetch(each: _Running, topology: Topology, load_ns: int, seed: int) -> None:
    """Ask for one thing after the other, each at its time, and read it."""
    neighbour, room = each.flow.neighbour, bytearray(FETCH_ROOM_BYTES)
    Thread(target=_serve, args=(each,), daemon=True).start()
    began_ns = ended_ns = load_ns + round(neighbour.from_s * 1e9)
    for number, fetch in enumerate(plan_fetches(each.flow, seed)):
        due_ns = max(began_ns + fetch.due_ns, ended_ns + fetch.pause_ns)
        if not _sleep_until(due_ns, each.stop) or _left_s(neighbour, load_ns) <= 0:
            break
        if number and fetch.opens:
            each.near = _bind(topology, each.flow, "neighbour", fetch.port)
        if fetch.opens:
            each.near.connect((REMOTE_ADDRESS, each.flow.port))
            each.near.settimeout(None)
        each.near.send(fetch.size_bytes.to_bytes(REQUEST_BYTES, "big"))
        left = fetch.size_bytes
        while left and (
            came := each.near.recv_into(
                room, min(left, len(room)), socket.MSG_TRUNC | socket.MSG_WAITALL
            )
        ):
            left -= came
        ended_ns = time.time_ns()
        if neighbour.kind == "web":
            each.near.close()


def _serve(each: _Running) -> None:
    """Answer one connection after the other: as many bytes as each request says."""
    with suppress(OSError):
        each.far.settimeout(None)
        while not each.stop.is_set():
            accepted, _ = each.far.accept()
            with accepted:
                accepted.settimeout(None)
                each.sender = accepted
                while request := accepted.recv(REQUEST_BYTES, socket.MSG_WAITALL):
                    left = int.from_bytes(request, "big")
                    while left:
                        left -= accepted.send(CHUNK[:left] if left < len(CHUNK) else CHUNK)
                each.ask()


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
    while _left_s(neighbour, load_ns) > 0 and _sleep_until(
        began_ns + number * neighbour.gap_ns, each.stop
    ):
        stamp = number * CALL_STAMPS & 0xFFFFFFFF
        sender.send(_RTP.pack(_VERSION, _G711, number & 0xFFFF, stamp, each.flow.port) + payload)
        number += 1
