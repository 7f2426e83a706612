"""The words of the testbed: what was asked, what was measured, what was proven (no I/O here).

Standard library only, so that the same types exist inside a guest and on the host.
Units are in the names; a missing value is ``None``; raw values are never rounded.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

SCHEMA_VERSION = 3
MAX_REPETITIONS = 100

# The files of a trial's folder, between the two halves of the harness: asked, seen, kept.
TRIAL_FILE = "trial.json"
OBSERVATION_FILE = "observation.json"
CAPTURE_FILE = "client.pcap"
HAR_FILE = "load.har"

Outcome = Literal["ok", "failed", "timeout", "unsupported", "lab_mismatch", "unproven"]
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


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured property of the lab beside its closed-form value, both in ``unit``.

    ``tolerance``, in ``unit`` as well, decides where it is given, and ``tolerance_pct`` elsewhere.
    """

    name: str
    unit: str
    measured: float
    theory: float
    tolerance_pct: float
    tolerance: float | None = None

    @property
    def error_pct(self) -> float:
        """Signed relative error in percent (0 when both are 0)."""
        if self.theory == 0:
            return 0.0 if self.measured == 0 else float("inf")
        return (self.measured / self.theory - 1.0) * 100.0

    @property
    def within(self) -> bool:
        """Whether the error is inside the tolerance."""
        if self.tolerance is not None:
            return abs(self.measured - self.theory) <= self.tolerance
        return abs(self.error_pct) <= self.tolerance_pct

    @property
    def bound(self) -> str:
        """The tolerance that decides, in words."""
        if self.tolerance is not None:
            return f"{self.tolerance:g} {self.unit}"
        return f"{self.tolerance_pct} %"


@dataclass(frozen=True, slots=True)
class LabReading:
    """What the running lab measured of itself, and the knobs as read back from the kernel."""

    measurements: tuple[Measurement, ...]
    knobs: dict[str, str]
    knob_errors: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """One sentence for each measurement out of tolerance and each knob that did not take."""
        wrong = [
            f"{m.name}: measured {m.measured:.6g} {m.unit}, theory {m.theory:.6g} {m.unit} "
            f"({m.error_pct:+.3f} %, tolerance {m.bound})"
            for m in self.measurements
            if not m.within
        ]
        return (*wrong, *self.knob_errors)


@dataclass(frozen=True, slots=True)
class RequestTiming:
    """One request as the client saw it; times in ms since the start of the load.

    ``dns_ms`` and ``connect_ms`` are how long it waited for a name and for a connection to open
    (TCP, and TLS if there is any); ``None`` where it did not, or where the client does not say.
    """

    url: str
    status: int
    start_ms: float
    end_ms: float
    transfer_bytes: int | None = None
    connection: str | None = None
    initiator: str | None = None
    dns_ms: float | None = None
    connect_ms: float | None = None


@dataclass(frozen=True, slots=True)
class PageLoad:
    """Raw observations of one client: PLT (loadEventEnd - navigationStart) and its requests.

    ``pinned`` says that scripts had pinned clocks and random numbers.  ``browser`` is what the
    load cost a browser, in seconds; it is empty for other clients, and docs/decisions/
    client-chromium-driver.md names its parts.
    """

    client: str
    client_version: str
    plt_ms: float
    requests: tuple[RequestTiming, ...]
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    pinned: bool = False
    browser: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Substitution:
    """A request (``METHOD URL``) that was answered with what was recorded for another URL."""

    asked: str
    answered: str


@dataclass(frozen=True, slots=True)
class Replay:
    """Replay coverage: how the server answered, one item for each request of the load.

    ``exact`` counts requests answered with their own recording, ``inexact`` are those answered by
    the longest common prefix of the query, ``missed`` (``METHOD URL``) those that the page does
    not hold, unknown hosts included.  ``most_per_connection`` is the largest number of requests
    on one connection.  ``protocols`` counts requests by origin and protocol as the server
    saw them, such as ``https://www.page.test HTTP/2.0``.
    """

    exact: int
    inexact: tuple[Substitution, ...] = ()
    missed: tuple[str, ...] = ()
    most_per_connection: int = 0
    protocols: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Proof:
    """What the wire and both ends' counters say about the mechanism under test (RFC 7413).

    Of the connections that carry TLS, ``hello_bytes`` are those of all first ClientHello records,
    ``syn_hello_bytes`` those of them that rode in SYNs.
    """

    connections: int
    syns: int
    syns_with_payload: int
    syn_payload_bytes: int
    cookie_requests: int
    syn_data_acked: int
    retransmits: int
    client_counters: dict[str, int]
    server_counters: dict[str, int]
    problems: tuple[str, ...] = ()
    tls_connections: int = 0
    hello_bytes: int = 0
    syn_hello_bytes: int = 0

    @property
    def proven(self) -> bool:
        """Whether capture and counters agree that the mechanism happened (or did not)."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class Cost:
    """What a trial took: host CPU, host wall clock, and the guest's virtual clock, in seconds."""

    cpu_s: float
    wall_s: float
    virtual_s: float


@dataclass(frozen=True, slots=True)
class Record:
    """The end of a trial, whatever it was; one line of ``records.jsonl``.

    ``artefacts`` maps a file name in ``trials/<trial_id>/`` to the SHA-256 of its content.
    ``position`` is the trial's place in its block, from 0; in virtual time, where a trial cannot
    disturb the next, it has none.
    ``machine`` is what the machine did meanwhile, of a trial in real time: ``steal_pct``,
    ``others_pct`` (other processes), ``load_1min``, ``worst_lateness_ms`` of the link, ``cpu_s``.
    """

    trial_id: str
    trial: Trial
    outcome: Outcome
    environment: str
    reason: str | None = None
    lab: LabReading | None = None
    load: PageLoad | None = None
    replay: Replay | None = None
    proof: Proof | None = None
    cost: Cost | None = None
    artefacts: dict[str, str] = field(default_factory=dict)
    attempt: int = 1
    position: int | None = None
    machine: dict[str, float] = field(default_factory=dict)
    schema: int = SCHEMA_VERSION


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: Any) -> str:
    """SHA-256 hex of the canonical JSON of ``value``."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()
