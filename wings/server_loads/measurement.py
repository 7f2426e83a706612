"""Measurement of a load on a server: what became of the connections."""

from __future__ import annotations

from dataclasses import dataclass, field

HISTOGRAMS_FILE = "response-times.hlog"
SETTLED_SHARE = 0.2
"""By how much of itself the mean response may move between the halves of a settled load.  Drawn
arrivals alone move one of two minutes by a twentieth."""


@dataclass(frozen=True, slots=True)
class ServedLoad:
    """What became of the connections of a load, as the clients and the server counted them.

    Counts are of connections whose intended start is within the measured time, but for those that
    say otherwise.
    """

    seconds: int
    """How long was measured."""
    started: int
    """Connections that started, each counted once however often it was retried."""
    answered: int
    """Connections whose response came whole and in time."""
    refused: int
    """Connections that were refused for good: a RST answered the SYN."""
    reset: int
    """Connections that a RST ended after the handshake."""
    timed_out: int
    """Connections that their client gave up."""
    broken: int
    """Connections that ended in another way: cut short, or with what is no response."""
    retries: int
    """Connection attempts after a refusal."""
    established: int
    """Connections whose handshake was over for their client."""
    syn_retransmissions: int
    """SYNs that clients sent again."""
    replies_per_s: float
    """Responses a second that came while it was measured, whenever their connections started: the
    throughput."""
    failed_pct: float
    """Share of the connections that were not answered."""
    response_mean_ms: float | None
    """Mean time from a connection's intended start to the end of its response; null without any."""
    response_p50_ms: float | None
    """Its median."""
    response_p99_ms: float | None
    """Its 99th percentile."""
    lateness_p99_us: float
    """99th percentile of how much later connections started than intended."""
    generator_cpu_s: float
    """Processor time of the generator."""
    all_started: int
    """Connections that started, those of the warm-up included."""
    all_answered: int
    """Connections that were answered, those of the warm-up included."""
    server_cpu_pct: float | None = None
    """How busy the server's processor was while it was measured, its kernel's work included; the
    mean of several. In real time by `/proc/stat`, in virtual time by the ledger; null where its
    work is free."""
    response_halves_ms: tuple[float | None, ...] = ()
    """Mean response of the connections that were to start in the first half of the measured time,
    and in the second; empty where nobody counted them."""
    syn_timers_s: tuple[float, ...] = ()
    """By the capture: after how long clients sent a SYN again, each time; the medians."""
    repeated: int = 0
    """By the capture: connections whose SYN was sent again."""
    repeated_answered: int = 0
    """Of them those whose second SYN was answered by a SYN-ACK, before a third."""
    limits: tuple[str, ...] = ()
    """What the generator itself lacked: `lateness`, `ports`, `descriptors`, `memory`."""
    management: dict[str, int] = field(default_factory=dict)
    """Counts of the BPF program that manages connections; empty where the kernel itself does."""
    server: dict[str, int] = field(default_factory=dict)
    """Counts of the server's program over the whole load: `accepted`, `requests`, `responses`,
    `resets` and others; `settled_segments` are what its kernel took and sent until it ended.
    `owed_ns`, `syns` and `segments` are its ledger in virtual time: what all work cost by the price
    list, and the segments that were priced."""
    prices_ns: dict[str, int] = field(default_factory=dict)
    """In virtual time: the price of each piece of the server's work, as it was charged."""

    @property
    def is_settled(self) -> bool:
        """Whether the mean response is that of a load which goes on.

        It is not if it still moves between the halves of the measured time: then it depends on how
        long was measured.
        """
        first, second = [time or 0.0 for time in self.response_halves_ms] or (0.0, 0.0)
        return abs(first - second) <= SETTLED_SHARE * max(first, second)
