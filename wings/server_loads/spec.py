"""Spec of a load on a server: the server, the clients, and the link between them.

Connections arrive at a rate that does not depend on replies, or from clients with one outstanding
request each.
A. Shukla, T. Brecht: TCP Connection Management Mechanisms for Improving Internet Server
Performance (2006), sections III to V; S. Radhakrishnan et al.: TCP Fast Open (2011), section 6.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from testbed.model.asked import LinkSpec, TcpSpec
from testbed.model.knob import Knob, draws

SINCE = 3
RELATIVE_RATE, RATE = "rate_of_saturation", "rate_per_s"
HIGHEST_RATE = 1_000_000
_DEAREST_US = 1_000_000
PRICES_PATTERN = (
    r"^(model|shukla-2006|measured-2026)"
    r"( (syn|segment|accept|request|close)\*(0\.[0-9]*[1-9]|[1-9][0-9]?(\.[0-9]+)?))?$"
)

SYN_TIMEOUTS_PATTERN = r"^([0-9]+(\.[0-9]{1,3})?( [0-9]+(\.[0-9]{1,3})?){0,15})?$"

Spacing = Literal["fixed", "poisson"]
Ending = Literal["fin", "rst"]
HttpVersion = Literal["1.1", "1.0"]
Loop = Literal["open", "closed"]
Mechanism = Literal[
    "default", "abort", "reserv", "abort rst-syn", "reserv rst-syn", "no-syn-drop",
    "default rst-fin", "abort rst-syn rst-fin",
]  # fmt: skip
Admission = Literal["today", "linux-2.4"]
Program = Literal["event-server", "nginx"]


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """The server: its program, how it takes connections, and what a request costs it."""

    program: Annotated[Program, Knob(
        "Which program serves: one of ours whose costs are known, or nginx as people run it.",
        label="Server's program", since=SINCE, shown="prices",
    )] = "event-server"  # fmt: skip
    workers: Annotated[int, Knob(
        "Its processes: each has a processor and a listening socket of its own (SO_REUSEPORT), "
        "and both backlogs are of each.",
        label="Workers", low=1, high=64, since=SINCE, shown="server",
    )] = 1  # fmt: skip
    mechanism: Annotated[Mechanism, Knob(
        "How the server's kernel takes and ends connections when its queues are full.",
        label="Mechanism", since=SINCE, shown="queues and mechanism",
    )] = "default"  # fmt: skip
    listen_backlog: Annotated[int, Knob(
        "Connections that wait for accept(), at most.",
        label="Listen backlog", low=1, high=65_535, since=SINCE, shown="queues and mechanism",
    )] = 128  # fmt: skip
    syn_backlog: Annotated[int, Knob(
        "Connections whose handshake is not over, at most; no fewer than wait for accept().",
        label="SYN backlog", low=1, high=65_535, since=SINCE, shown="queues and mechanism",
    )] = 1024  # fmt: skip
    syncookies: Annotated[int, Knob(
        "SYN cookies: never (0), where the SYN queue is full (1), for every SYN (2).",
        label="SYN cookies", low=0, high=2, since=SINCE, shown="queues and mechanism",
    )] = 0  # fmt: skip
    admission: Annotated[Admission, Knob(
        "When a full accept queue refuses a SYN: always, or as in Linux 2.4 only while two "
        "handshakes are young.",
        label="Admission of SYNs", since=SINCE, shown="queues and mechanism",
    )] = "today"  # fmt: skip
    request_cost_us: Annotated[float, Knob(
        "Processor time that the server's program spends on each request.",
        label="Cost of a request", unit="µs", low=0, high=1_000_000, since=SINCE, shown="prices",
    )] = 0.0  # fmt: skip
    response_bytes: Annotated[int, Knob(
        "Body of each response.",
        label="Response", unit="B", low=0, high=100_000_000, since=SINCE, shown="exchanges",
    )] = 1024  # fmt: skip
    prices: Annotated[str, Knob(
        "In virtual time: the price list; any but model are proportions, by which a connection "
        "costs as much as by model.  NAME PRICE*FACTOR makes one price dearer and all others "
        "cheaper, so that a connection still costs the same.",
        label="Price list", pattern=PRICES_PATTERN, since=SINCE, shown="prices",
        allowed='"model" (price_*_us), "shukla-2006" or "measured-2026", alone or with a price '
        'varied: "model syn*2", of syn, segment, accept, request or close',
    )] = "model"  # fmt: skip
    price: Annotated[float, Knob(
        "In virtual time: what the kernel's work costs the server, as a multiple of the price "
        "list; 0 is nothing.",
        label="Price of kernel work", low=0, high=10_000, since=SINCE, shown="prices",
    )] = 1.0  # fmt: skip
    price_syn_us: Annotated[float, Knob(
        "Price list: of the kernel, a SYN that arrives, whatever becomes of it.",
        label="Price of a SYN", unit="µs", low=0, high=_DEAREST_US, since=SINCE, shown="prices",
    )] = 5.0  # fmt: skip
    price_segment_us: Annotated[float, Knob(
        "Price list: of the kernel, any other segment that arrives or leaves, SYN-ACKs among them.",
        label="Price of a segment", unit="µs", low=0, high=_DEAREST_US, since=SINCE, shown="prices",
    )] = 2.5  # fmt: skip
    price_accept_us: Annotated[float, Knob(
        "Price list: of program and kernel together, accept() and what a new connection needs.",
        label="Price of an accept", unit="µs", low=0, high=_DEAREST_US, since=SINCE, shown="prices",
    )] = 5.0  # fmt: skip
    price_request_us: Annotated[float, Knob(
        "Price list: of both, to receive a request and to send its response.",
        label="Price of a request", unit="µs", low=0, high=_DEAREST_US, since=SINCE, shown="prices",
    )] = 10.0  # fmt: skip
    price_close_us: Annotated[float, Knob(
        "Price list: of both, to end a connection.",
        label="Price of a close", unit="µs", low=0, high=_DEAREST_US, since=SINCE, shown="prices",
    )] = 5.0  # fmt: skip


@dataclass(frozen=True, slots=True)
class ArrivalSpec:
    """The clients: when connections start, what they ask for, and how they end."""

    loop: Annotated[Loop, Knob(
        "Connections at a rate, whatever the replies (open), or clients with one outstanding "
        "request each (closed).",
        label="Loop", since=SINCE, shown="starts",
    )] = "open"  # fmt: skip
    rate_per_s: Annotated[int, Knob(
        "Open loop: new connections a second.",
        label="Rate", unit="1/s", low=1, high=HIGHEST_RATE, since=SINCE, shown="starts",
    )] = 1000  # fmt: skip
    clients: Annotated[int, Knob(
        "Closed loop: clients.",
        label="Clients", low=1, high=100_000, since=SINCE, shown="starts",
    )] = 1  # fmt: skip
    spacing: Annotated[Spacing, Knob(
        "Open loop: equal distances between arrivals, or those of a Poisson process by seed.",
        label="Arrivals", since=SINCE, shown="starts", draws=True,
    )] = "fixed"  # fmt: skip
    burst_s: Annotated[float, Knob(
        "Open loop: for how long of every_s the rate holds; for the rest, base_rate_per_s does.  "
        "0: it always holds.",
        label="Burst", unit="s", low=0, high=600, since=SINCE, shown="starts",
    )] = 0.0  # fmt: skip
    every_s: Annotated[float, Knob(
        "Open loop: from the beginning of one burst to that of the next.",
        label="A burst every", unit="s", low=0.001, high=600, since=SINCE, shown="starts",
    )] = 10.0  # fmt: skip
    base_rate_per_s: Annotated[int, Knob(
        "Open loop: new connections a second between bursts.",
        label="Rate between bursts", unit="1/s", low=0, high=HIGHEST_RATE, since=SINCE,
        shown="starts",
    )] = 0  # fmt: skip
    http_version: Annotated[HttpVersion, Knob(
        "Of each request.",
        label="HTTP", since=SINCE, shown="exchanges",
    )] = "1.1"  # fmt: skip
    ending: Annotated[Ending, Knob(
        "How clients end a connection: with a FIN, or with a RST (SO_LINGER 0; the paper's "
        "close-rst).",
        label="Client ends with", since=SINCE, shown="exchanges",
    )] = "fin"  # fmt: skip
    retries_refused: Annotated[int, Knob(
        "How often a client connects again, at once, after a refusal (the paper's Windows clients "
        "twice).",
        label="Retries", low=0, high=10, since=SINCE, shown="retries",
    )] = 0  # fmt: skip
    syn_retries: Annotated[int, Knob(
        "How often a client's kernel sends a SYN again, each time after twice as long.",
        label="SYN retries", low=1, high=127, since=SINCE, shown="arrivals",
    )] = 6  # fmt: skip
    syn_linear_timeouts: Annotated[int, Knob(
        "How often it does so before that, a second apart: kernels since 6.5 four times, older "
        "ones never.",
        label="Linear SYN retries", low=0, high=127, since=SINCE, shown="SYN timers",
    )] = 4  # fmt: skip
    syn_timeout_s: Annotated[float, Knob(
        "After how long a SYN, and the server's SYN-ACK, is sent again first: 3 s before Linux "
        "3.1, 1 s since (RFC 6298).  Only the virtual kernel 7.3 has others than 1 s.",
        label="SYN timer", unit="s", low=0.001, high=120, since=SINCE, shown="SYN timers",
    )] = 1.0  # fmt: skip
    syn_timeouts_s: Annotated[str, Knob(
        "All times after which a SYN is sent again, instead of the three knobs of its timer: "
        "\"3 3.2 3.2 3.2 3.2 6.2 12.2 24.2\" is FreeBSD 5.3.",
        label="SYN timers", unit="s", pattern=SYN_TIMEOUTS_PATTERN, since=SINCE, shown="SYN timers",
        allowed="up to 16 seconds, such as \"3 6 12\", of three decimals at most; empty: by "
        "syn_timeout_s, syn_retries and syn_linear_timeouts",
    )] = ""  # fmt: skip
    patience_s: Annotated[float, Knob(
        "After how long a client gives a connection up.",
        label="Patience", unit="s", above=0, high=600, since=SINCE, shown="SYN timers",
    )] = 10.0  # fmt: skip
    warm_up_s: Annotated[int, Knob(
        "How long the load lasts before it is measured.",
        label="Warm-up", unit="s", low=0, high=600, since=SINCE, shown="starts",
    )] = 2  # fmt: skip
    duration_s: Annotated[int, Knob(
        "How long it is measured.",
        label="Duration", unit="s", low=1, high=3600, since=SINCE, shown="arrivals",
    )] = 10  # fmt: skip
    cool_down_s: Annotated[int, Knob(
        "Open loop: how long the load lasts after it is measured.  Without it, who was dropped "
        "last is answered when nobody else comes.",
        label="Cool-down", unit="s", low=0, high=600, since=SINCE, shown="starts",
    )] = 0  # fmt: skip

    @property
    def syn_timers_s(self) -> tuple[float, ...]:
        """After how long a SYN is sent again, each time; then no more."""
        if self.syn_timeouts_s:
            return tuple(map(float, self.syn_timeouts_s.split()))
        linear = self.syn_linear_timeouts
        times = range(self.syn_retries + linear)
        return tuple(self.syn_timeout_s * 2.0 ** max(0, number - linear) for number in times)

    @property
    def measured_s(self) -> tuple[int, int]:
        """From when until when a load is measured, in seconds from its beginning."""
        return self.warm_up_s, self.warm_up_s + self.duration_s

    @property
    def lasts_s(self) -> int:
        """How long connections start."""
        return self.warm_up_s + self.duration_s + self.cool_down_s


@dataclass(frozen=True, slots=True)
class RelativeRate:
    """Rate of a load as an experiment file may give it, in the place of ``rate_per_s``.

    Trials hold the product alone: equal loads have one name, however their file said it.
    """

    rate_of_saturation: Annotated[float, Knob(
        "Open loop: new connections a second, as a multiple of saturation_per_s; trials have "
        "rate_per_s.",
        label="Rate, multiple of the saturation", above=0, high=100, since=SINCE, shown="starts",
        key="arrivals.rate_of_saturation",
    )]  # fmt: skip


def product(multiple: float, saturation_per_s: int) -> int:
    """Return the rate that is ``multiple`` times the saturation, in whole connections a second."""
    return round(multiple * saturation_per_s)


@dataclass(frozen=True, slots=True)
class ServerLoad:
    """One point of a sweep of loads on a server."""

    server: ServerSpec = field(default_factory=ServerSpec)
    """The server under load."""
    arrivals: ArrivalSpec = field(default_factory=ArrivalSpec)
    """The load."""
    link: LinkSpec = field(default_factory=LinkSpec)
    """The link between clients and server."""
    tcp: TcpSpec = field(default_factory=TcpSpec)
    """TCP at both ends."""
    kind: Literal["server_load"] = "server_load"
    """What tells it from other kinds where it is stored."""

    @property
    def draws(self) -> bool:
        """Whether a load depends on its seed; clients of a closed loop have no arrivals to draw."""
        closed = self.arrivals.loop == "closed"
        return draws(replace(self, arrivals=ArrivalSpec()) if closed else self)
