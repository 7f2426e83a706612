"""Exactness: a cold 10 KB fetch in the virtual kernel beside its closed form."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from socket import inet_aton

from bench.result import Result, judge
from bench.small_page import build_small_page
from bench.theory import ColdFetch, Packets, fetch_ms, packets
from bench.work import Work, bundle, virtual_kernel
from testbed.archive.reading import Archive, read_archive
from testbed.base.errors import TrialError
from testbed.capture.packets import read_capture
from testbed.client.walk.discovery import Node
from testbed.client.walk.fetch import request_head
from testbed.kernel.build.pin import DEFAULT_VERSION
from testbed.kernel.run.interface import Kernel
from testbed.lab.topology import CLIENT_ADDRESS
from testbed.model import CAPTURE_FILE, Condition, LinkSpec, PageLoad, TcpSpec, Trial
from testbed.way.judge import conclude

ROUND_TRIPS_MS = (20.0, 100.0, 200.0)
TOLERANCE_US = 10.0
# The fields of a recorded request that the graph client gets.
NODE = ("url", "method", "mime", "body_size", "request_body_size", "parent")


@dataclass(frozen=True, slots=True)
class FetchComparison:
    """One fetch: times in ms, and whether every packet had the size that theory says."""

    fetch: ColdFetch
    theory_ms: float
    wire_ms: float
    client_ms: float
    sizes_agree: bool

    @property
    def error_us(self) -> float:
        """What the client measured beyond the theory."""
        return (self.client_ms - self.theory_ms) * 1000

    @property
    def wire_error_us(self) -> float:
        """What the capture shows beyond the theory, from the first SYN to the last data."""
        return (self.wire_ms - self.theory_ms) * 1000

    @property
    def within(self) -> bool:
        """Whether the fetch is what theory says."""
        return self.sizes_agree and abs(self.error_us) <= TOLERANCE_US


def measure(work: Work) -> Result:
    """Measure fetches at RTT 20, 100, 200 ms, without and with Fast Open, as trials."""
    page = build_small_page(work.folder("exactness"))
    archive = read_archive(page)
    kernel = virtual_kernel(DEFAULT_VERSION, bundle())
    comparisons = [
        _compare(kernel, page, archive, rtt_ms, tfo, work.folder(f"fetch-{rtt_ms:g}-{tfo}"))
        for rtt_ms in ROUND_TRIPS_MS
        for tfo in (False, True)
    ]
    worst = max(comparisons, key=lambda comparison: abs(comparison.error_us))
    within = [comparison.within for comparison in comparisons]
    wire_us = [comparison.wire_error_us for comparison in comparisons]
    return Result(
        name="theory",
        asked=f"within {TOLERANCE_US:g} us",
        measured=f"at most {worst.error_us:+.3f} us; {sum(within)} of {len(within)} fetches within",
        verdict=judge(all(within)),
        n=len(comparisons),
        how="one-object page, graph client's own clock against the closed form from packet sizes "
        "(bench/theory.py), which the capture confirms packet by packet. The rest is system calls, "
        "which cost virtual time: on the wire, SYN to last byte, "
        f"{min(wire_us):+.1f} to {max(wire_us):+.1f} us are left",
        details={"fetches": [_describe(comparison) for comparison in comparisons]},
    )


def _compare(
    kernel: Kernel, page: Path, archive: Archive, rtt_ms: float, tfo: bool, out: Path
) -> FetchComparison:
    link = LinkSpec(rtt_ms=rtt_ms)
    condition = Condition(archive.name, "graph", link, TcpSpec(tfo=tfo), dns="hosts")
    trial = Trial(condition, 0, 0, kernel.name, kernel.version)
    raw = kernel.run(trial, page, out, 0, threading.Event())
    record = conclude(trial, raw, out, "", 1)
    load = record.measured_as(PageLoad)
    if record.outcome != "ok" or load is None:
        raise TrialError(f"fetch at {rtt_ms:g} ms, Fast Open {tfo}: {record.reason}")
    root = archive.entries[0]
    request = request_head(Node({name: getattr(root, name) for name in NODE}))
    fetch = ColdFetch(link, len(request), root.transfer_bytes, tfo)
    wire_ms, exchange = read_exchange(out / CAPTURE_FILE)
    expected = packets(fetch)
    return FetchComparison(
        fetch,
        theory_ms=fetch_ms(fetch),
        wire_ms=wire_ms,
        client_ms=load.plt_ms,
        # The client's last acknowledgements are not in the theory.
        sizes_agree=exchange.up[: len(expected.up)] == expected.up
        and exchange.down == expected.down,
    )


def read_exchange(pcap: Path) -> tuple[float, Packets]:
    """Return the time from the first SYN to the server's last data in ms, and the packets.

    The server's packets end with its last data.  Sizes are IP bytes by the headers: a capture may
    hold less of each packet.
    """
    up: list[int] = []
    down: list[int] = []
    started_ns = ended_ns = last = 0
    for packet in read_capture(pcap).packets:
        if packet.protocol != "TCP":
            continue
        if packet.source == inet_aton(CLIENT_ADDRESS):
            started_ns = started_ns or packet.at_ns
            up.append(packet.ip_bytes)
            continue
        down.append(packet.ip_bytes)
        if packet.payload_bytes:
            ended_ns, last = packet.at_ns, len(down)
    return (ended_ns - started_ns) / 1e6, Packets(tuple(up), tuple(down[:last]))


def _describe(comparison: FetchComparison) -> dict[str, object]:
    return {
        "rtt_ms": comparison.fetch.link.rtt_ms,
        "fast_open": comparison.fetch.fast_open,
        "request_bytes": comparison.fetch.request_bytes,
        "response_bytes": comparison.fetch.response_bytes,
        "theory_ms": comparison.theory_ms,
        "wire_ms": comparison.wire_ms,
        "client_ms": comparison.client_ms,
        "error_us": comparison.error_us,
        "wire_error_us": comparison.wire_error_us,
        "sizes_agree": comparison.sizes_agree,
    }
