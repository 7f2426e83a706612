"""Account of a server: what its program counted, and when its processors were busy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SLICE_NS = 10_000_000
"""How long a slice of a ledger is (``SLICE`` of ``native/ledger.h``)."""
_LARGEST = frozenset({"queue_most"})
_LEDGER = ("busy_from_ns", "busy_ns")


@dataclass(frozen=True, slots=True)
class Ledger:
    """Ledger of a worker in virtual time: for how many ns of each slice its processor was busy."""

    from_ns: int
    slices: tuple[int, ...]

    def busy_ns(self, since_ns: int, until_ns: int) -> float:
        """Return how long it was busy from one moment to another, both in ns of CLOCK_REALTIME.

        Of a slice that is partly within them the share that is.
        """
        total = 0.0
        for number, busy in enumerate(self.slices):
            begin = self.from_ns + number * SLICE_NS
            within = min(begin + SLICE_NS, until_ns) - max(begin, since_ns)
            total += busy * max(0, within) / SLICE_NS
        return total


@dataclass(frozen=True, slots=True)
class ServerAccount:
    """Account of a server at its end: counts of all workers together, and a ledger of each.

    ``workers`` are the processes that there were, 0 where nobody counted them.
    """

    counts: dict[str, int]
    ledgers: tuple[Ledger, ...] = field(default=())
    workers: int = 0

    def busy_pct(self, since_ns: int, until_ns: int) -> float | None:
        """Return the mean share that the processors were busy; ``None`` without a ledger."""
        if not self.ledgers or until_ns <= since_ns:
            return None
        busy_ns = sum(ledger.busy_ns(since_ns, until_ns) for ledger in self.ledgers)
        return 100 * busy_ns / len(self.ledgers) / (until_ns - since_ns)


def count_segments(grown: Mapping[str, int]) -> int:
    """Return how many segments a server's kernel took and sent, from what its counters grew by.

    Linux leaves segments that it sends again out of TcpOutSegs, but not SYN-ACKs
    (net/ipv4/tcp_output.c, __tcp_transmit_skb and tcp_rtx_synack).
    """
    names = ("TcpInSegs", "TcpOutSegs", "TcpRetransSegs")
    return sum(grown.get(name, 0) for name in names) - grown.get("TcpExtTCPSynRetrans", 0)


def read_account(workers: Sequence[Mapping[str, Any]]) -> ServerAccount:
    """Return the account of an event server from what it reported of each of its workers."""
    names = [name for name in workers[0] if name not in _LEDGER]
    ledgers = tuple(
        Ledger(int(worker["busy_from_ns"]), tuple(map(int, worker["busy_ns"])))
        for worker in workers
        if "busy_ns" in worker
    )
    counts = {
        name: (max if name in _LARGEST else sum)(int(worker[name]) for worker in workers)
        for name in names
    }
    return ServerAccount(counts, ledgers, len(workers))
