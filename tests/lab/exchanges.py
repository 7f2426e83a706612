"""What the conformance suite does to a link; a guest runs this, too: standard library and lab."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

from testbed.lab.calibration import train_theory
from testbed.lab.ends import open_ends, receive
from testbed.lab.exactness import Exactness
from testbed.lab.laboratory import Lab, open_lab
from testbed.lab.link.protocol import LinkBackend
from testbed.lab.topology import SERVER_ADDRESS
from testbed.mechanisms.acting import ACTING
from testbed.model import Condition, LinkSpec, TcpSpec

LINK = LinkSpec(rtt_ms=100.0, down_kbit=4000, up_kbit=1000, buffer_bytes=31_000)
LOSS_PCT = 10.0
TCP = TcpSpec(tfo=True, cookies="not-required")
PACKET = bytes(1472)
PROBE = bytes(72)
SMALL, SMALL_COUNT, LOST_COUNT = bytes(12), 5, 500
TRANSFER_BYTES = 1_000_000
REQUEST = b"x" * 100
QUIET_S = 0.6


def observe(exactness: Exactness, backend: LinkBackend, tag: str) -> dict[str, Any]:
    """Everything that the suite asserts, of a link as LINK says and of one with loss."""
    with open_lab(
        Condition("p", "c", LINK, TCP), 1, tag, exactness, backend, seed=1, mechanisms=ACTING
    ) as lab:
        observed = {"problems": list(lab.reading.problems), "knobs": lab.reading.knobs,
                    "rtt_ms": round_trip_ms(lab), "transfer_ms": transfer_ms(lab),
                    "fetch_ms": min(fetch_ms(lab, fast=False) for _ in range(3)),
                    "fast_fetch_ms": min(fetch_ms(lab, fast=True) for _ in range(3))}  # fmt: skip
        observed |= flood(lab)
        report = lab.read_link()
        observed |= {"stray_packets": report.stray_packets,
                     "dropped_packets": report.dropped_packets}  # fmt: skip
        with open_ends(lab.topology) as ends:
            ends.client.send(SMALL)
            with lab.watched() as read_again:
                time.sleep(QUIET_S)
                traffic = read_again().traffic
        observed["of_before"] = [traffic["up.delivered"], traffic["waiting"]]
    lossy = LinkSpec(LINK.rtt_ms, LINK.down_kbit, LINK.up_kbit, 131072, loss_pct=LOSS_PCT)
    with open_lab(
        Condition("p", "c", lossy, TCP), 1, tag, exactness, backend, seed=1, mechanisms=ACTING
    ) as lab:
        observed["problems_with_loss"] = list(lab.reading.problems)
        for name, change in (("quiet", lab.link.draw_nothing), ("lossy", lab.link.draw_anew)):
            change()
            with open_ends(lab.topology) as ends:
                for _ in range(LOST_COUNT):
                    ends.server.send(SMALL)
                observed[f"arrived_of_{name}"] = count(ends.client)
    return observed


def count(end: socket.socket) -> int:
    """Packets that arrive until it is quiet."""
    arrived = 0
    while receive(end, QUIET_S) is not None:
        arrived += 1
    return arrived


def round_trip_ms(lab: Lab) -> float:
    """Shortest of five round trips of a probe of 100 bytes of IP."""
    times = []
    with open_ends(lab.topology) as ends:
        for _ in range(5):
            sent = time.time_ns()
            ends.client.send(PROBE)
            receive(ends.server, QUIET_S)
            ends.server.send(PROBE)
            back = receive(ends.client, QUIET_S)
            if back is not None:
                times.append((back[0] - sent) / 1e6)
    return min(times)


def flood(lab: Lab) -> dict[str, Any]:
    """A train that is too long, small packets right behind it, and what the last of them waits."""
    sent = train_theory(LINK) + 300  # more than leave while a busy machine lets this one wait
    with open_ends(lab.topology) as ends:
        for _ in range(sent):
            ends.server.send(b"L" + PACKET[1:])
        started = time.time_ns()
        for _ in range(SMALL_COUNT):
            ends.server.send(b"S" + SMALL[1:])
        arrived: dict[bytes, list[int]] = {b"L": [], b"S": []}
        while (packet := receive(ends.client, QUIET_S)) is not None:
            arrived[packet[1][:1]].append(packet[0])
    return {"sent": sent, "survivors": len(arrived[b"L"]), "small_survivors": len(arrived[b"S"]),
            "last_waited_ms": (arrived[b"S"][-1] - started) / 1e6}  # fmt: skip


def transfer_ms(lab: Lab) -> float:
    """From the request for 1 MB to its last byte, over a new connection."""
    return _fetch_ms(lab, TRANSFER_BYTES, fast=False)


def fetch_ms(lab: Lab, *, fast: bool) -> float:
    """From the start of a new connection to an answer of 1 KB."""
    return _fetch_ms(lab, 1000, fast=fast)


def _fetch_ms(lab: Lab, size: int, *, fast: bool) -> float:
    with lab.topology.server.entered():
        listener = socket.create_server((SERVER_ADDRESS, 0))
    with lab.topology.client.entered():
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 16)

    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(bytes(size))

    server = threading.Thread(target=answer)
    server.start()
    with listener, client:
        started = time.monotonic_ns()
        if fast:
            client.sendto(REQUEST, socket.MSG_FASTOPEN, listener.getsockname())
        else:
            client.connect(listener.getsockname())
            client.sendall(REQUEST)
        left = size
        while left:
            left -= len(client.recv(1 << 16))
        took_ns = time.monotonic_ns() - started
        server.join()
    return took_ns / 1e6
