"""What was asked: link, TCP, condition, trial, experiment."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from testbed.model.canonical import digest

MAX_REPETITIONS = 100

Cookies = Literal["cached", "not-required", "cold"]
Dns = Literal["resolver", "hosts"]
ThinkTime = Literal["recorded", "none"]
Protocol = Literal["as-recorded", "h1", "h2"]
TlsVersion = Literal["1.3", "1.2"]
Randomness = Literal["as-recorded", "free", "pinned"]


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """The emulated access link (TFO paper section 6.1; slides: 4 Mbit/s, 256 kbit/s, 128 KB).

    ``rtt_ms`` is the two-way propagation delay, half of it each way.  ``framing_bytes`` is what
    each packet costs on the link beyond its IP length: 0 counts as dummynet did, 14 as Ethernet.
    ``loss_pct`` is random loss in each direction.
    """

    rtt_ms: float = 20.0
    down_kbit: int = 4000
    up_kbit: int = 256
    buffer_bytes: int = 131072
    mtu_bytes: int = 1500
    framing_bytes: int = 0
    loss_pct: float = 0.0


@dataclass(frozen=True, slots=True)
class TcpSpec:
    """The TCP mechanisms under test, set in both ends' network namespaces and read back.

    ``initcwnd_segments`` is the server's initial window.  ``requests_per_connection`` of ``None``
    means that nginx never closes a connection because of a count.
    """

    tfo: bool = False
    cookies: Cookies = "cached"
    initcwnd_segments: int = 10
    congestion_control: str = "cubic"
    requests_per_connection: int | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """One point of a sweep: which page, which client, over which link, with which TCP.

    ``protocol`` is what origins recorded over TLS speak: HTTP/2 where it was recorded, or one of
    the two everywhere; plain HTTP stays plain.  ``tls_version`` is the only one that the server
    offers.  ``randomness`` says whether scripts get pinned clocks and random numbers.  With
    ``allow_misses`` a load counts although it asked for what the page does not hold, or did not
    ask for all of it.

    ``server_think_ms`` is how long the server waits before it answers each request.  Each think
    time, recorded or the server's, is varied by up to ``think_spread_pct``; a load starts up to
    ``start_spread_ms`` after the round instant (virtual time).  ``testbed.variation`` says how.
    """

    page: str
    client: str
    link: LinkSpec = field(default_factory=LinkSpec)
    tcp: TcpSpec = field(default_factory=TcpSpec)
    dns: Dns = "resolver"
    think_time: ThinkTime = "recorded"
    protocol: Protocol = "as-recorded"
    tls_version: TlsVersion = "1.3"
    randomness: Randomness = "as-recorded"
    allow_misses: bool = False
    server_think_ms: float = 0.0
    think_spread_pct: float = 0.0
    start_spread_ms: float = 0.0


LATER_KNOBS = ("server_think_ms", "think_spread_pct", "start_spread_ms")
"""Knobs of a condition that schema 2 did not have; at their defaults they are in no trial's id."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One condition, one repetition, one seed, on one kernel; ``id`` names it for ever.

    All conditions of one repetition are a block.  A ``warm_up`` is recorded, and never counts.
    """

    condition: Condition
    repetition: int
    seed: int
    kernel: str
    kernel_version: str
    timeout_s: float = 120.0
    warm_up: bool = False

    @property
    def id(self) -> str:
        """First 16 hex digits of the SHA-256 of everything that decides the result."""
        identity = asdict(self)
        identity.pop("timeout_s")
        if not self.warm_up:  # what counts is named as it was before there were warm-ups
            identity.pop("warm_up")
        for spec in fields(Condition):  # and as it was before there were these knobs
            if spec.name in LATER_KNOBS and getattr(self.condition, spec.name) == spec.default:
                identity["condition"].pop(spec.name)
        return digest(identity)[:16]

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Trial:
        """The inverse of ``dataclasses.asdict``."""
        condition = dict(value["condition"])
        condition["link"] = LinkSpec(**condition["link"])
        condition["tcp"] = TcpSpec(**condition["tcp"])
        return cls(**{**value, "condition": Condition(**condition)})


@dataclass(frozen=True, slots=True)
class Experiment:
    """What was asked: a title, the conditions in order, how often, and on which kernel.

    With ``until_ci_pct`` blocks are added to ``repetitions`` until every interval is as narrow as
    that, or until there are ``max_repetitions``; see ``testbed.stopping``.  ``warmup_blocks`` of
    ``None`` is one in real time and none in virtual time.  ``kernel_versions``, where there are
    any, are run one after the other, each into a results folder of its own (``testbed.lanes``).
    """

    name: str
    title: str
    conditions: tuple[Condition, ...]
    repetitions: int = 1
    seed: int = 0
    kernel: str = "virtual"
    kernel_version: str = "7.3"
    timeout_s: float = 120.0
    reference: str | None = None
    until_ci_pct: float | None = None
    max_repetitions: int = MAX_REPETITIONS
    warmup_blocks: int | None = None
    kernel_versions: tuple[str, ...] = ()
