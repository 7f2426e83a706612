"""Specifications of a page load: link, TCP and condition, and the knobs in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Literal

from testbed.model.device import DeviceName
from testbed.model.knob import (
    CALIBRATED,
    NO_PACKET,
    READ_BACK,
    WRITTEN_DOWN,
    Knob,
    draws,
)
from testbed.model.settings import ALGORITHM, CONGCTL, FAMILIES, TcpSettings, Value, of_end
from testbed.model.traffic import ALLOWED as TRAFFIC_WORDS
from testbed.model.traffic import NO_TRAFFIC
from testbed.model.traffic import PATTERN as TRAFFIC_PATTERN

Cookies = Literal["cached", "not-required", "cold"]
Dns = Literal["resolver", "hosts"]
ThinkTime = Literal["recorded", "none"]
Protocol = Literal["as-recorded", "h1", "h2", "h3"]
WebServer = Literal["nginx", "nginx-quic", "aioquic"]
QuicControl = Literal["own", "reno", "cubic"]
KeyShare = Literal["browser", "x25519", "x25519mlkem768"]
Between = Literal["clear-cache", "keep"]
EarlyDataAt = Literal["all", "first", "others"]
PushTimes = Literal["as-recorded", "at-once"]
TlsVersion = Literal["1.3", "1.2"]
Randomness = Literal["as-recorded", "free", "pinned"]
ServerThink = Literal["none", "recorded"]
Jitter = Literal["none", "computing"]
TraceEnd = Literal["loop", "once"]
TracePhase = Literal["start", "seed"]
Distribution = Literal["uniform", "normal", "pareto"]
PathMtuDiscovery = Literal["icmp", "black-hole"]
Ip = Literal["4", "6", "dual", "dual-broken"]


_AS_RECORDED = {"as-recorded": "as recorded"}
_LONGEST_MS = 60_000
_LARGEST = 2**31 - 1
_TRACE = r"^(|[A-Za-z0-9][A-Za-z0-9._-]{0,63})$"
_A_TRACE = (
    'a name in traces/, such as "lte-drive-down", or a file of yours beside the experiment file, '
    'with a dot in its name, such as "my.trace"'
)
_HOST = r"[a-z0-9_][a-z0-9._-]{0,250}"
_HOST_MS = rf"{_HOST} [0-9]{{1,5}}(\.[0-9]{{1,3}})?"
_PCT = r"[0-9]{1,3}(\.[0-9]{1,4})?"
_TIME = r"[0-9]{1,5}(\.[0-9]{1,6})? s"
_STEP = r"(rtt_ms [0-9]{1,5}(\.[0-9]{1,6})?|(down|up)_kbit [0-9]{1,8})"
_CHANGE = rf"at {_TIME}: (down for {_TIME}|{_STEP}(, {_STEP})*)"
KEPT_ALIVE_S = 300
"""For how long a server keeps an idle connection."""
FIFO = "fifo"
"""The queue before the line where no other is asked for: one FIFO of ``buffer_bytes``."""
_QUEUE = r"^[a-z][a-z0-9_]{0,15}( [A-Za-z0-9_.:@%/+-]{1,40}){0,40}$"
_QUEUES = (
    '"fifo", or what follows `tc qdisc add dev DEVICE root` with one space between words, such as '
    '"fq_codel limit 1000 target 60ms"'
)


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """The emulated access link (TFO paper section 6.1; slides: 4 Mbit/s, 256 kbit/s, 128 KB)."""

    rtt_ms: Annotated[float, Knob(
        "Two-way propagation delay, half of it each way.",
        label="RTT", unit="ms", above=0, high=_LONGEST_MS,
        shown=CALIBRATED,
    )] = 20.0  # fmt: skip
    down_kbit: Annotated[int, Knob(
        "Rate from the server to the client.",
        label="Down", unit="kbit/s", low=1, high=10_000_000,
        shown=CALIBRATED,
    )] = 4000  # fmt: skip
    up_kbit: Annotated[int, Knob(
        "Rate from the client to the server.",
        label="Up", unit="kbit/s", low=1, high=10_000_000,
        shown=CALIBRATED,
    )] = 256  # fmt: skip
    buffer_bytes: Annotated[int, Knob(
        "Drop-tail buffer before the line, in each direction.",
        label="Buffer", unit="B", low=1, high=_LARGEST,
        shown=CALIBRATED,
    )] = 131072  # fmt: skip
    mtu_bytes: Annotated[int, Knob(
        "Largest IP packet on the link.",
        label="MTU", unit="B", low=576, high=9000,
        shown="segment size",
    )] = 1500  # fmt: skip
    framing_bytes: Annotated[int, Knob(
        "What each packet costs on the link beyond its IP length: 0 as dummynet counted, "
        "14 as Ethernet.",
        label="Framing", unit="B", low=0, high=256,
        shown=CALIBRATED,
    )] = 0  # fmt: skip
    profile: Annotated[str, Knob(
        "The profile (./run.sh links) whose values the link has; beside it goes what the profile "
        'does not state. link = "NAME" at the top of the file is short for it.',
        label="Profile", pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,63})?$",
        words=MappingProxyType({"": "none"}), allowed="the name of a profile of links", since=3,
        shown=NO_PACKET,
    )] = ""  # fmt: skip
    loss_pct: Annotated[float, Knob(
        "Random loss in each direction.",
        label="Loss", unit="%", low=0, high=100, draws=True,
        shown=READ_BACK,
    )] = 0.0  # fmt: skip
    qdisc: Annotated[str, Knob(
        "The queue before the line, in each direction: fifo, which holds buffer_bytes, or another "
        "in the words of tc(8), which replaces it.",
        label="Queue", pattern=_QUEUE, allowed=_QUEUES, since=3, draws=True,
        shown=READ_BACK,
    )] = FIFO  # fmt: skip
    delay_up_ms: Annotated[float | None, Knob(
        "Delay of the way from the client to the server, of rtt_ms, half of it if left out; the "
        "rest is the delay of the way back.",
        label="Delay up", unit="ms", low=0, high=_LONGEST_MS, since=3,
        shown=CALIBRATED,
    )] = None  # fmt: skip
    loss_up_pct: Annotated[float | None, Knob(
        "Random loss from the client to the server, loss_pct or loss_bursts if left out.",
        label="Loss up", unit="%", low=0, high=100, since=3, draws=True,
        shown=READ_BACK,
    )] = None  # fmt: skip
    loss_down_pct: Annotated[float | None, Knob(
        "Random loss from the server to the client, loss_pct or loss_bursts if left out.",
        label="Loss down", unit="%", low=0, high=100, since=3, draws=True,
        shown=READ_BACK,
    )] = None  # fmt: skip
    loss_bursts: Annotated[str, Knob(
        "Loss in bursts by the model of Gilbert and Elliott, instead of loss_pct: p and r are the "
        "chances in percent that a good line turns bad with a packet, and a bad one good; a bad "
        "line loses 1-h of its packets, a good one 1-k.",
        label="Bursts of loss", words=MappingProxyType({"": "none"}),
        pattern=rf"^(p {_PCT} r {_PCT} 1-h {_PCT} 1-k {_PCT})?$",
        allowed='percentages as tc(8) names them, such as "p 1 r 30 1-h 100 1-k 0"',
        since=3, draws=True,
        shown=READ_BACK,
    )] = ""  # fmt: skip
    delay_jitter_ms: Annotated[float, Knob(
        "By how much the delay of each packet is drawn to differ, in each direction: at most, if "
        "uniform, else its standard deviation. Packets keep their order.",
        label="Delay jitter", unit="ms", low=0, high=2000, since=3, draws=True,
        shown=READ_BACK,
    )] = 0.0  # fmt: skip
    delay_distribution: Annotated[Distribution, Knob(
        "How delay_jitter_ms is distributed, each with a mean of 0: pareto has a long tail of late "
        "packets (shape 3); normal and pareto end at 4 standard deviations.",
        label="Delay distribution", since=3,
        shown=READ_BACK,
    )] = "uniform"  # fmt: skip
    reorder_pct: Annotated[float, Knob(
        "How many packets come late by reorder_ms, in each direction, so that those behind "
        "overtake them.",
        label="Reordering", unit="%", low=0, high=100, since=3, draws=True,
        shown=READ_BACK,
    )] = 0.0  # fmt: skip
    reorder_ms: Annotated[float, Knob(
        "By how much the packets of reorder_pct come late.",
        label="Reordered by", unit="ms", low=0.1, high=2000, since=3,
        shown=READ_BACK,
    )] = 10.0  # fmt: skip
    duplicate_pct: Annotated[float, Knob(
        "How many packets come twice, in each direction.",
        label="Duplicates", unit="%", low=0, high=100, since=3, draws=True,
        shown=READ_BACK,
    )] = 0.0  # fmt: skip
    corrupt_pct: Annotated[float, Knob(
        "How many packets come with one wrong bit, in each direction; checksums find it.",
        label="Corruption", unit="%", low=0, high=100, since=3, draws=True,
        shown=READ_BACK,
    )] = 0.0  # fmt: skip
    changes: Annotated[str, Knob(
        "What happens to the line at which time of the load: down, when it loses what it carries, "
        "in both directions, or from then on another rtt_ms, down_kbit or up_kbit.",
        label="Changes", words=MappingProxyType({"": "none"}),
        pattern=rf"^({_CHANGE}(; {_CHANGE})*)?$",
        allowed='changes, such as "at 0.5 s: down for 1 s; at 3 s: rtt_ms 80, '
        'down_kbit 1000"', since=3,
        shown=READ_BACK,
    )] = ""  # fmt: skip
    qdisc_down: Annotated[str | None, Knob(
        "The queue from the server to the client, where it is another than qdisc.",
        label="Queue down", pattern=_QUEUE, allowed=_QUEUES, since=3, draws=True,
        shown=READ_BACK,
    )] = None  # fmt: skip
    qdisc_up: Annotated[str | None, Knob(
        "The queue from the client to the server, where it is another than qdisc.",
        label="Queue up", pattern=_QUEUE, allowed=_QUEUES, since=3, draws=True,
        shown=READ_BACK,
    )] = None  # fmt: skip
    trace_down: Annotated[str, Knob(
        "Moments at which a packet may leave for the client, instead of a rate: a trace in "
        "mahimahi's format.",
        label="Trace down", pattern=_TRACE, allowed=_A_TRACE, since=3,
        words=MappingProxyType({"": "none"}),
        shown=READ_BACK,
    )] = ""  # fmt: skip
    trace_up: Annotated[str, Knob(
        "The same from the client to the server.",
        label="Trace up", pattern=_TRACE, allowed=_A_TRACE, since=3,
        words=MappingProxyType({"": "none"}),
        shown=READ_BACK,
    )] = ""  # fmt: skip
    trace_end: Annotated[TraceEnd, Knob(
        "What follows a trace's end: it comes again, or nothing leaves any more.",
        label="Trace's end", since=3,
        shown=READ_BACK,
    )] = "loop"  # fmt: skip
    trace_phase: Annotated[TracePhase, Knob(
        "Where in its traces a load starts: at their start, or where its seed says.",
        label="Trace's phase", since=3, draws=True,
        shown=READ_BACK,
    )] = "start"  # fmt: skip
    path_mtu_bytes: Annotated[int | None, Knob(
        "Largest IP packet on the access line, mtu_bytes if left out: what an end sends up to "
        "mtu_bytes may be too long for it, and is not cut.",
        label="Path MTU", unit="B", low=576, high=9000, since=3,
        shown="path mtu",
    )] = None  # fmt: skip
    path_mtu_discovery: Annotated[PathMtuDiscovery, Knob(
        "What a router before the line does with a packet that is too long for it: tell the sender "
        "by ICMP (RFC 1191), or nothing.",
        label="Path MTU discovery", since=3,
        shown="path mtu",
    )] = "icmp"  # fmt: skip
    gso: Annotated[bool, Knob(
        "Whether the devices of both ends take segments of up to 64 KB, and cut them before they "
        "are on the wire (generic segmentation offload).",
        label="GSO", since=3,
        shown=READ_BACK,
    )] = False  # fmt: skip
    gro: Annotated[bool, Knob(
        "Whether the devices of both ends merge segments that come at once (generic receive "
        "offload).",
        label="GRO", since=3,
        shown=READ_BACK,
    )] = False  # fmt: skip
    ip: Annotated[Ip, Knob(
        "Which IP there is: one of both alone, or both, of which the client chooses; dual-broken: "
        "both, but nothing that is sent over IPv6 is ever answered (RFC 8305).",
        label="IP", since=3,
        shown="ip",
    )] = "4"  # fmt: skip
    hop_down: Annotated[str, Knob(
        "A radio between the access line and the client, such as Wi-Fi: moments at which it takes "
        "a packet to the client, a trace.",
        label="Last hop down", pattern=_TRACE, allowed=_A_TRACE, since=3,
        words=MappingProxyType({"": "none"}),
        shown=READ_BACK,
    )] = ""  # fmt: skip
    hop_up: Annotated[str, Knob(
        "The same from the client, before the line: packets wait in the client's own queue.",
        label="Last hop up", pattern=_TRACE, allowed=_A_TRACE, since=3,
        words=MappingProxyType({"": "none"}),
        shown=READ_BACK,
    )] = ""  # fmt: skip

    @property
    def queues(self) -> dict[str, str]:
        """The queue before the line by direction, ``down`` and ``up``."""
        return {"down": self.qdisc_down or self.qdisc, "up": self.qdisc_up or self.qdisc}

    @property
    def line_mtu_bytes(self) -> int:
        """The largest IP packet that passes the line."""
        return self.mtu_bytes if self.path_mtu_bytes is None else self.path_mtu_bytes

    @property
    def is_plain(self) -> bool:
        """Whether there is a FIFO in both directions."""
        return set(self.queues.values()) == {FIFO}


@dataclass(frozen=True, slots=True)
class TcpSpec:
    """The TCP mechanisms under test, set in both ends' network namespaces and read back."""

    tfo: Annotated[bool, Knob(
        "TCP Fast Open on both ends (RFC 7413).",
        label="Fast Open",
        shown=READ_BACK,
    )] = False  # fmt: skip
    cookies: Annotated[Cookies, Knob(
        "Fast Open cookies before the load: a valid one of every origin, none needed "
        "(tcp_fastopen 0x400), or stale ones.",
        label="Cookies",
        shown=READ_BACK,
    )] = "cached"  # fmt: skip
    initcwnd_segments: Annotated[int, Knob(
        "The server's initial congestion window (RFC 6928).",
        label="Initial window", unit="segments", low=1, high=1000,
        shown=READ_BACK,
    )] = 10  # fmt: skip
    congestion_control: Annotated[str, Knob(
        "Congestion control of both ends.",
        label="Congestion control", pattern=f"^{ALGORITHM}$",
        allowed='the kernel\'s name of an algorithm, such as "cubic" or "reno"',
        shown=READ_BACK,
    )] = "cubic"  # fmt: skip
    requests_per_connection: Annotated[int | None, Knob(
        "After how many requests the server ends a connection.",
        label="Requests per connection", low=1, high=_LARGEST,
        absent="unlimited", words=MappingProxyType({None: "any"}),
        allowed='a whole number from 1, or "unlimited"',
        shown="requests per connection",
    )] = None  # fmt: skip
    sysctl: Annotated[Mapping[str, Value], Knob(
        "Sysctls by the kernel's names: of both ends in [tcp.sysctl], of one in "
        "[tcp.sysctl.client] or [tcp.sysctl.server]; swept as [sweep] sysctl.NAME.",
        label="Sysctls", since=3,
        allowed="names directly in net.ipv4 or net.core, such as tcp_sack, each with a whole "
        "number or a text",
        shown=READ_BACK,
    )] = TcpSettings()  # fmt: skip
    route: Annotated[Mapping[str, Value], Knob(
        "Attributes of the ends' default routes by ip-route(8): [tcp.route], [tcp.route.client] "
        "or [tcp.route.server]; swept as [sweep] route.NAME.",
        label="Route", since=3,
        allowed="initcwnd, initrwnd, quickack, rto_min_ms and congctl, each with a value of its "
        "own",
        shown=READ_BACK,
    )] = TcpSettings()  # fmt: skip

    def __post_init__(self) -> None:
        """Put what was read from a file into what can be hashed, in the order of names."""
        for family in FAMILIES:
            made = TcpSettings(sorted(getattr(self, family).items()))
            object.__setattr__(self, family, made)

    def algorithm_of(self, end: str) -> str:
        """Return the congestion control that is asked of an end."""
        return str(of_end(self.route, end).get(CONGCTL, self.congestion_control))


@dataclass(frozen=True, slots=True)
class QuicSpec:
    """The server's QUIC, of web servers whose QUIC can be set: of aioquic."""

    initcwnd_packets: Annotated[int | None, Knob(
        "The initial congestion window of QUIC at the server, in packets of 1200 bytes (RFC 9002 "
        "section 7.2); own: what the server takes by itself.",
        label="QUIC's initial window", unit="packets", low=2, high=1000, since=3, absent="own",
        words=MappingProxyType({None: "the server's"}),
        shown="stack of QUIC",
    )] = None  # fmt: skip
    quic_control: Annotated[QuicControl, Knob(
        "Congestion control of QUIC at the server; own: what the server takes by itself.",
        label="QUIC's congestion control", since=3,
        shown="stack of QUIC",
    )] = "own"  # fmt: skip


@dataclass(frozen=True, slots=True)
class Condition:
    """One point of a sweep: which page, which client, over which link, with which TCP.

    ``testbed.base.seeding`` says how ``think_spread_pct``, ``start_spread_ms`` and ``jitter`` are
    drawn.
    """

    page: Annotated[str, Knob(
        "The page that is loaded.",
        label="Page", listed="page", shown=WRITTEN_DOWN,
    )]  # fmt: skip
    client: Annotated[str, Knob(
        "The program that loads it.",
        label="Client", listed="client", shown=WRITTEN_DOWN,
    )]  # fmt: skip
    link: LinkSpec = field(default_factory=LinkSpec)
    tcp: TcpSpec = field(default_factory=TcpSpec)
    quic: QuicSpec = field(default_factory=QuicSpec, metadata={"since": 3})
    dns: Annotated[Dns, Knob(
        "Names by questions to the lab's name server over the link, or from a hosts file.",
        label="DNS",
        shown="names",
    )] = "resolver"  # fmt: skip
    think_time: Annotated[ThinkTime, Knob(
        "Whether the graph client waits as long between requests as the recording's browser did.",
        label="Think time",
        shown="pace of the client",
    )] = "recorded"  # fmt: skip
    protocol: Annotated[Protocol, Knob(
        "What origins recorded over TLS speak: HTTP/2 where it was recorded, or one of the three "
        "everywhere. Plain HTTP stays plain.",
        label="Protocol", words=MappingProxyType(
            _AS_RECORDED | {"h1": "HTTP/1.1", "h2": "HTTP/2", "h3": "HTTP/3"}
        ),
        shown="protocol",
    )] = "as-recorded"  # fmt: skip
    tls_version: Annotated[TlsVersion, Knob(
        "The only version of TLS that the server offers.",
        label="TLS",
        shown="tls version",
    )] = "1.3"  # fmt: skip
    randomness: Annotated[Randomness, Knob(
        "Whether the page's scripts get pinned clocks and random numbers.",
        label="Randomness", words=MappingProxyType(_AS_RECORDED),
        shown="pinned scripts",
    )] = "as-recorded"  # fmt: skip
    allow_misses: Annotated[bool, Knob(
        "Count loads that asked for what the page does not hold, or did not ask for all of it; "
        "each row of results says its coverage.",
        label="Misses allowed",
        shown=NO_PACKET,
    )] = False  # fmt: skip
    push_times: Annotated[PushTimes, Knob(
        "When servers send what they send by themselves, as messages of WebSockets and events: as "
        "long behind what came before as when it was recorded, or at once.",
        label="Push times", words=MappingProxyType(_AS_RECORDED), since=3,
        shown="sending",
    )] = "as-recorded"  # fmt: skip
    server_think_ms: Annotated[float, Knob(
        "How long the server waits before it answers each request.",
        label="Server think time", unit="ms", low=0, high=_LONGEST_MS, since=3,
        shown="think time at the server",
    )] = 0.0  # fmt: skip
    think_spread_pct: Annotated[float, Knob(
        "By how much a seed varies each think time, recorded or the server's, up and down.",
        label="Think time spread", unit="%", low=0, high=100, since=3, draws=True,
        shown="think time at the server",
    )] = 0.0  # fmt: skip
    start_spread_ms: Annotated[float, Knob(
        "By how much a seed delays the start of a load, at most (virtual time).",
        label="Start spread", unit="ms", low=0, high=_LONGEST_MS, since=3, draws=True,
        draws_of="browsers",
        shown="start",
    )] = 0.0  # fmt: skip
    jitter: Annotated[Jitter, Knob(
        "What else a seed draws that nobody can hold: how long computing takes, by the price of a "
        "system call, from 0 to 200 ns; or nothing. On the host's kernel computing varies anyway.",
        label="Jitter", since=3, draws=True,
        shown="price of computing",
    )] = "none"  # fmt: skip
    command: Annotated[str, Knob(
        'The command that is the client "command", with placeholders for what it is told.',
        label="Command", words=MappingProxyType({"": "none"}),
        allowed="a command in words, as a shell splits them", since=3,
        shown=WRITTEN_DOWN,
    )] = ""  # fmt: skip
    traffic: Annotated[str, Knob(
        "Neighbours, who use the access line meanwhile: greedy TCP, an even stream of UDP, a call, "
        "a video or the web; from 5 s before the load to its end, if they do not say otherwise.",
        label="Neighbours", pattern=TRAFFIC_PATTERN, allowed=TRAFFIC_WORDS, since=3,
        draws=True, draws_of="the web", draws_where="web",
        shown="neighbours",
    )] = NO_TRAFFIC  # fmt: skip

    web_server: Annotated[WebServer, Knob(
        "What serves the page: the root's own nginx, a newer one, of Debian sid, which speaks "
        "HTTP/3 as well, or aioquic of sid, which speaks HTTP/3 alone.",
        label="Web server", since=3, words=MappingProxyType(
            {"nginx-quic": "nginx of sid", "aioquic": "aioquic of sid"}
        ),
        shown="web server",
    )] = "nginx"  # fmt: skip
    visits: Annotated[int, Knob(
        "How often the page is loaded in one process of the browser; the last visit is the load "
        "that counts.",
        label="Visits", low=1, high=20, since=3,
        shown="visits",
    )] = 1  # fmt: skip
    between: Annotated[Between, Knob(
        "Whether the browser's cache is emptied between visits; with it goes which servers speak "
        "HTTP/2. Names, connections, cookies and tickets are kept as long as the browser keeps "
        "them.",
        label="Between visits", since=3,
        words=MappingProxyType({"clear-cache": "cache emptied", "keep": "cache kept"}),
        shown="cache",
    )] = "clear-cache"  # fmt: skip
    idle_s: Annotated[float, Knob(
        "For how long the browser is idle between visits, at least: the next one begins at a round "
        "instant (virtual time). A day takes some 5 s of a core, of `timeout_s`.",
        label="Idle", unit="s", low=0, high=2_592_000, since=3,
        shown="visits",
    )] = 600.0  # fmt: skip
    tls_resumption: Annotated[bool, Knob(
        "Whether servers give tickets, with which a client resumes a session on its next "
        "connection (RFC 8446 section 2.2).",
        label="TLS resumption", since=3,
        shown="tls handshakes",
    )] = False  # fmt: skip
    early_data: Annotated[bool, Knob(
        "Whether client and servers use early data: requests in the first flight of a resumed "
        "session, over TCP (RFC 8446 section 2.3) and QUIC (0-RTT, RFC 9001 section 4.6).",
        label="Early data", since=3,
        shown="tls handshakes",
    )] = False  # fmt: skip
    preconnect_pct: Annotated[float | None, Knob(
        "The hit rate of PRECONNECT: at the start of a load the client opens a connection for each "
        "host that the page names, besides its own. Of so many it is with that host, as the seed "
        "draws; the others are wrong guesses, for which nothing is asked: they are with the page's "
        "own host, as there are no strange ones. Before its first request no SYN has data.",
        label="PRECONNECT", unit="%", low=0, high=100, since=3, absent="off",
        words=MappingProxyType({None: "off"}), draws=True,
        shown="preconnect",
    )] = None  # fmt: skip
    early_data_at: Annotated[EarlyDataAt, Knob(
        "Which servers take early data: those of all origins, of the page's own, or of all others.",
        label="Early data at", since=3, words=MappingProxyType(
            {"all": "all origins", "first": "the page's own", "others": "all others"}
        ),
        shown="tls handshakes",
    )] = "all"  # fmt: skip
    certificates: Annotated[int, Knob(
        "How many certificates a server sends, each of 1,280 bytes: its own, its issuer's, and "
        "copies of that.",
        label="Certificates", low=2, high=16, since=3,
        shown="tls handshakes",
    )] = 2  # fmt: skip
    key_share: Annotated[KeyShare, Knob(
        "Key shares: the client's own choice, of which servers take X25519; or that one group "
        "alone, at both ends. Chromium always sends a post-quantum one; for x25519 it is modified "
        "as it runs.",
        label="Key share", words=MappingProxyType({
            "browser": "the client's",
            "x25519": "X25519 (Chromium: modified)",
            "x25519mlkem768": "X25519MLKEM768",
        }), since=3,
        shown="tls handshakes",
    )] = "browser"  # fmt: skip
    film: Annotated[bool, Knob(
        "Whether the browser draws frames and keeps them: a twin of the load that is measured "
        "without, for `pages filmstrip`.",
        label="Filmed", since=3,
        shown=NO_PACKET,
    )] = False  # fmt: skip

    server_think: Annotated[ServerThink, Knob(
        "Whether each answer waits as long as its recording did for a first byte, the way to the "
        "server of that time included.",
        label="Recorded waits", since=3, shown="think time at the server",
    )] = "none"  # fmt: skip
    think_by_host: Annotated[str, Knob(
        "How long the servers of these hosts wait instead, in ms.",
        label="Think time by host", words=MappingProxyType({"": "alike"}),
        pattern=rf"^(|{_HOST_MS}(, {_HOST_MS}){{0,49}})$", since=3,
        allowed='hosts with ms, such as "api.example 200, cdn.example 20"',
        shown="think time at the server",
    )] = ""  # fmt: skip
    block: Annotated[str, Knob(
        "Hosts that the browser asks for nothing, and those below them; or all third parties, "
        "whose last two labels are not the page's. What they led to in the recording is not due.",
        label="Blocked", words=MappingProxyType({"": "none"}),
        pattern=rf"^(|{_HOST}( {_HOST}){{0,49}})$", since=3,
        allowed='hosts, such as "ads.example cdn.example", or "third-parties"',
        shown="blocked hosts",
    )] = ""  # fmt: skip
    device: Annotated[DeviceName, Knob(
        "What the browser is: the device that the page was recorded on, or a phone or a desktop as "
        "Lighthouse has them, a tablet of WebPageTest, or a laptop's window of 1366x768.",
        label="Device", words=MappingProxyType({"recorded": "as recorded"}), since=3,
        shown="device",
    )] = "recorded"  # fmt: skip

    @property
    def draws(self) -> bool:
        """Whether a load depends on its seed."""
        return draws(self)
