"""Specifications: link, TCP, condition, trial, experiment, and the knobs in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, Literal

from testbed.model.canonical import digest
from testbed.model.knob import Knob, identity

MAX_REPETITIONS = 100
FIRST_LOOK = 10
"""The fewest repetitions after which a run with ``until_ci_pct`` may end."""

Cookies = Literal["cached", "not-required", "cold"]
Dns = Literal["resolver", "hosts"]
ThinkTime = Literal["recorded", "none"]
Protocol = Literal["as-recorded", "h1", "h2"]
TlsVersion = Literal["1.3", "1.2"]
Randomness = Literal["as-recorded", "free", "pinned"]


def in_real_time(kernel: str) -> bool:
    """Return whether the kernel of this name runs on the machine's own clock."""
    return kernel == "host"


_AS_RECORDED = {"as-recorded": "as recorded"}
_LONGEST_MS = 60_000
_LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """The emulated access link (TFO paper section 6.1; slides: 4 Mbit/s, 256 kbit/s, 128 KB)."""

    rtt_ms: Annotated[float, Knob(
        "Two-way propagation delay, half of it each way.",
        label="RTT", unit="ms", above=0, high=_LONGEST_MS,
    )] = 20.0  # fmt: skip
    down_kbit: Annotated[int, Knob(
        "Rate from the server to the client.",
        label="Down", unit="kbit/s", low=1, high=10_000_000,
    )] = 4000  # fmt: skip
    up_kbit: Annotated[int, Knob(
        "Rate from the client to the server.",
        label="Up", unit="kbit/s", low=1, high=10_000_000,
    )] = 256  # fmt: skip
    buffer_bytes: Annotated[int, Knob(
        "Drop-tail buffer before the line, in each direction.",
        label="Buffer", unit="B", low=1, high=_LARGEST,
    )] = 131072  # fmt: skip
    mtu_bytes: Annotated[int, Knob(
        "Largest IP packet on the link.",
        label="MTU", unit="B", low=576, high=9000,
    )] = 1500  # fmt: skip
    framing_bytes: Annotated[int, Knob(
        "What each packet costs on the link beyond its IP length: 0 as dummynet counted, "
        "14 as Ethernet.",
        label="Framing", unit="B", low=0, high=256,
    )] = 0  # fmt: skip
    loss_pct: Annotated[float, Knob(
        "Random loss in each direction.",
        label="Loss", unit="%", low=0, high=100,
    )] = 0.0  # fmt: skip


@dataclass(frozen=True, slots=True)
class TcpSpec:
    """The TCP mechanisms under test, set in both ends' network namespaces and read back."""

    tfo: Annotated[bool, Knob(
        "TCP Fast Open on both ends (RFC 7413).",
        label="Fast Open",
    )] = False  # fmt: skip
    cookies: Annotated[Cookies, Knob(
        "Fast Open cookies before the load: a valid one of every origin, none needed "
        "(tcp_fastopen 0x400), or stale ones.",
        label="Cookies",
    )] = "cached"  # fmt: skip
    initcwnd_segments: Annotated[int, Knob(
        "The server's initial congestion window (RFC 6928).",
        label="Initial window", unit="segments", low=1, high=1000,
    )] = 10  # fmt: skip
    congestion_control: Annotated[str, Knob(
        "Congestion control of both ends.",
        label="Congestion control", pattern=r"^[a-z0-9_]{1,15}$",
        allowed='the kernel\'s name of an algorithm, such as "cubic" or "reno"',
    )] = "cubic"  # fmt: skip
    requests_per_connection: Annotated[int | None, Knob(
        "After how many requests the server ends a connection.",
        label="Requests per connection", low=1, high=_LARGEST,
        absent="unlimited", words=MappingProxyType({None: "any"}),
        allowed='a whole number from 1, or "unlimited"',
    )] = None  # fmt: skip


@dataclass(frozen=True, slots=True)
class Condition:
    """One point of a sweep: which page, which client, over which link, with which TCP.

    ``testbed.base.seeding`` says how ``think_spread_pct`` and ``start_spread_ms`` are drawn.
    """

    page: Annotated[str, Knob("The page that is loaded.", label="Page", listed="page")]
    client: Annotated[str, Knob("The program that loads it.", label="Client", listed="client")]
    link: LinkSpec = field(default_factory=LinkSpec)
    tcp: TcpSpec = field(default_factory=TcpSpec)
    dns: Annotated[Dns, Knob(
        "Names by questions to the lab's name server over the link, or from a hosts file.",
        label="DNS",
    )] = "resolver"  # fmt: skip
    think_time: Annotated[ThinkTime, Knob(
        "Whether the graph client waits as long between requests as the recording's browser did.",
        label="Think time",
    )] = "recorded"  # fmt: skip
    protocol: Annotated[Protocol, Knob(
        "What origins recorded over TLS speak: HTTP/2 where it was recorded, or one of the two "
        "everywhere. Plain HTTP stays plain.",
        label="Protocol", words=MappingProxyType(_AS_RECORDED | {"h1": "HTTP/1.1", "h2": "HTTP/2"}),
    )] = "as-recorded"  # fmt: skip
    tls_version: Annotated[TlsVersion, Knob(
        "The only version of TLS that the server offers.",
        label="TLS",
    )] = "1.3"  # fmt: skip
    randomness: Annotated[Randomness, Knob(
        "Whether the page's scripts get pinned clocks and random numbers.",
        label="Randomness", words=MappingProxyType(_AS_RECORDED),
    )] = "as-recorded"  # fmt: skip
    allow_misses: Annotated[bool, Knob(
        "Count loads that asked for what the page does not hold, or did not ask for all of it.",
        label="Misses allowed",
    )] = False  # fmt: skip
    server_think_ms: Annotated[float, Knob(
        "How long the server waits before it answers each request.",
        label="Server think time", unit="ms", low=0, high=_LONGEST_MS, since=3,
    )] = 0.0  # fmt: skip
    think_spread_pct: Annotated[float, Knob(
        "By how much a seed varies each think time, recorded or the server's, up and down.",
        label="Think time spread", unit="%", low=0, high=100, since=3,
    )] = 0.0  # fmt: skip
    start_spread_ms: Annotated[float, Knob(
        "By how much a seed delays the start of a load, at most (virtual time).",
        label="Start spread", unit="ms", low=0, high=_LONGEST_MS, since=3,
    )] = 0.0  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trial:
    """One condition, one repetition, one seed, on one kernel; ``id`` names it for ever."""

    condition: Condition
    """The point of the sweep."""
    repetition: int
    """Which repetition, from 0; all conditions of one repetition are a block."""
    seed: int
    """The seed of everything that is drawn at random."""
    kernel: str
    """The name of the kernel: `virtual` or `host`."""
    kernel_version: str
    """The version of that kernel."""
    timeout_s: float = 120.0
    """After how long the load is given up."""
    warm_up: bool = False
    """Whether the trial only warms the machine up: recorded, and never counted."""

    @property
    def id(self) -> str:
        """First 16 hex digits of the SHA-256 of everything that decides the result."""
        decisive = identity(self)
        decisive.pop("timeout_s")
        if not self.warm_up:  # what counts is named as it was before there were warm-ups
            decisive.pop("warm_up")
        return digest(decisive)[:16]

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Trial:
        """Return the inverse of ``dataclasses.asdict``."""
        condition = dict(value["condition"])
        condition["link"] = LinkSpec(**condition["link"])
        condition["tcp"] = TcpSpec(**condition["tcp"])
        return cls(**{**value, "condition": Condition(**condition)})


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment as asked for: a title, the conditions in order, how often, and on which kernel.

    ``testbed.experiment.stopping`` says how ``until_ci_pct`` ends a run, and
    ``testbed.experiment.lanes`` how several ``kernel_versions`` are run, each into a results folder
    of its own.
    """

    name: str
    """The experiment's name: that of its file."""
    title: Annotated[str, Knob(
        "What the report is headed with; without it the file's name.",
        label="Title", low=1, allowed="a line of text",
    )]  # fmt: skip
    conditions: tuple[Condition, ...]
    """All points of the sweep, in order."""
    repetitions: Annotated[int, Knob(
        "How often each condition is loaded: with the seeds seed, seed + 1 and so on.",
        label="Repetitions", low=1, high=10_000,
    )] = 1  # fmt: skip
    seed: Annotated[int, Knob(
        "The first seed; the same seed gives the same packets in virtual time.",
        label="Seed", low=0, high=_LARGEST,
    )] = 0  # fmt: skip
    kernel: Annotated[str, Knob(
        "The kernel that trials run on: in virtual time, or the machine's own.",
        label="Kernel", listed="kernel", key="kernel.name",
    )] = "virtual"  # fmt: skip
    kernel_version: Annotated[str, Knob(
        "Which version of the virtual kernel.",
        label="Kernel version", allowed="a version of that kernel, as text", key="kernel.version",
    )] = "7.3"  # fmt: skip
    timeout_s: Annotated[float, Knob(
        "After how long a load is given up.",
        label="Time-out", unit="s", above=0, high=86_400,
    )] = 120.0  # fmt: skip
    reference: Annotated[str | None, Knob(
        "The published table to show beside the results.",
        label="Reference", listed="reference",
    )] = None  # fmt: skip
    until_ci_pct: Annotated[float | None, Knob(
        "Repeat until every 95 % interval is within this share of its median.",
        label="Interval", unit="%", above=0, high=100,
    )] = None  # fmt: skip
    max_repetitions: Annotated[int, Knob(
        "The most repetitions that until_ci_pct may take.",
        label="Most repetitions", low=FIRST_LOOK, high=10_000,
    )] = MAX_REPETITIONS  # fmt: skip
    warmup_blocks: Annotated[int | None, Knob(
        "Blocks of loads that are recorded and not counted; without it one in real time and none "
        "in virtual time.",
        label="Warm-up blocks", low=0, high=100,
    )] = None  # fmt: skip
    kernel_versions: Annotated[tuple[str, ...], Knob(
        "Two versions of the virtual kernel, to run one after the other and compare.",
        label="Kernel versions", low=2, high=2,
        allowed="a list of two versions of that kernel, as text", key="kernel.versions",
    )] = ()  # fmt: skip
