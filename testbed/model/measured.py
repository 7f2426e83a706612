"""Measurements and proofs of a trial: lab, load, replay, wire, cost.  Values are never rounded.

The string below a field says what it holds; docs/results.md is written from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

RESOLUTION_MS = 0.01
"""Less is no other time: a system call takes 256 ns of virtual time, and ports may cost one."""
MODIFIED = " (modified: "
"""What parts a client's version from how it was modified as it ran, such as `sends no ...)`."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A property of the lab as measured before the load, beside its closed-form value."""

    name: str
    """The property: `rtt`, `up_delay` (where the ways are asked to differ), and of each direction
    such as `down_rate`: `rate` and `buffer`; of 2,000 probes over a link that draws the number of
    those that never came (`loss`), runs of such (`bursts`), those that came twice (`copies`) and
    late (`late`), and how far their delays are from the distribution that was asked for (`jitter`,
    by Kolmogorov and Smirnov). Of each of these a right link is out of tolerance once in 10^6. With
    a trace `trace` instead of `rate`: how far from its opportunity a packet came, at most."""
    unit: str
    """The unit of `measured`, `theory` and `tolerance`."""
    measured: float
    """The measured value."""
    theory: float
    """The value that the closed form gives for the link as asked."""
    tolerance_pct: float
    """The largest relative error; decides where `tolerance` is null."""
    tolerance: float | None = None
    """The largest absolute error, where that decides."""
    tolerance_below: float | None = None
    """The same of a value below theory, where that is another."""

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
            below = self.tolerance if self.tolerance_below is None else self.tolerance_below
            return -below <= self.measured - self.theory <= self.tolerance
        return abs(self.error_pct) <= self.tolerance_pct

    @property
    def bound(self) -> str:
        """The tolerance that decides, in words."""
        if self.tolerance is not None:
            below = "" if self.tolerance_below is None else f" up, {self.tolerance_below:g} down"
            return f"{self.tolerance:g} {self.unit}{below}"
        return f"{self.tolerance_pct} %"


@dataclass(frozen=True, slots=True)
class LinkChange:
    """A change of the link in the middle of a load, as it was performed."""

    link: str
    """What the line was from then on: `down`, or its `rtt_ms`, `down_kbit` and `up_kbit`."""
    asked_ms: float
    """When it was asked for, from the start of the load."""
    began_ms: float
    """When the first discipline was changed, from the start of the load."""
    took_ms: float
    """How long it took to change all of them."""
    at_ns: int
    """When the first was changed, on the clock of the trial's kernel."""


@dataclass(frozen=True, slots=True)
class LabReading:
    """The lab as measured before the load, and its settings as read back from the kernel."""

    measurements: tuple[Measurement, ...]
    """Round-trip time, rates and buffers of the running link."""
    knobs: dict[str, str]
    """Settings as the kernel has them: `client.` and `server.` (TCP sysctls, offloads and the
    initial window of each end), `down.` and `up.` (each direction of the link: `loss_pct`, in
    virtual time `calibration`, the packets that it was measured by as the kernel counted them, of a
    queue that is no plain FIFO `qdisc`, as tc(8) shows it, and of a link with impairments `netem`,
    its delay and its draws, with their seed where the kernel tells it; of a trace `trace`, what the
    kernel says of it, `trace_end` and `trace_origin_ns`, when it began, and of the last hop the
    same with `hop_down.` and `hop_up.`), `link.` (its backend, and a path MTU),
    `congestion_control.` (what pinned it) and `stray_packets` (packets that reached an end around
    the link)."""
    knob_errors: tuple[str, ...] = ()
    """A sentence for each setting that is not as asked."""
    changes: tuple[str, ...] = ()
    """A sentence for each part of the lab that changed during the load, even for a while."""
    traffic: dict[str, int] = field(default_factory=dict)
    """Packets of the load, in each direction: `down.delivered`, `down.dropped` (by the queue before
    the line), `down.lost` (random loss), `down.marked` (by ECN), the same of `up.`; and `waiting`,
    those still in the link at the end. A queue that is no plain FIFO also has what it counts of
    itself, by the kernel's names: `down.queue.ecn_mark`, of a tin of CAKE
    `down.queue.tin0.dropped`. Where there are any, of those delivered `down.duplicated` and
    `up.duplicated` are copies, `down.corrupted` and `up.corrupted` have a wrong bit. With a path
    MTU `down.too_long` and `up.too_long` did not come to the line."""
    steps: tuple[LinkChange, ...] = ()
    """The changes of the link until the load ended."""

    @property
    def problems(self) -> tuple[str, ...]:
        """A sentence for each measurement out of tolerance, knob that did not take, and change."""
        wrong = [
            f"{m.name}: measured {m.measured:.6g} {m.unit}, theory {m.theory:.6g} {m.unit} "
            f"({m.error_pct:+.3f} %, tolerance {m.bound})"
            for m in self.measurements
            if not m.within
        ]
        return (*wrong, *self.knob_errors, *self.changes)


@dataclass(frozen=True, slots=True)
class RequestTiming:
    """A request as the client saw it."""

    url: str
    """The address that was requested."""
    status: int
    """The HTTP status of the response; 0 where none came."""
    start_ms: float
    """The request's start, from the start of the load."""
    end_ms: float
    """The response's last byte, from the start of the load."""
    transfer_bytes: int | None = None
    """The bytes of the response as transferred; null where the client does not report them."""
    connection: str | None = None
    """The client's name of the connection that carried the request; null where unknown."""
    initiator: str | None = None
    """The URL of what led to the request; null for the first, or where unknown."""
    dns_ms: float | None = None
    """The wait for the host's address; null where there was none, or it is not reported."""
    connect_ms: float | None = None
    """The wait for a connection to open, TLS included; null where there was none, or it is not
    reported."""
    queued_ms: float | None = None
    """The wait within the browser until its network stack was asked; null where it is not reported,
    as in older records."""
    blocked_ms: float | None = None
    """The wait from then on for a look-up or a connection to begin, or for a free connection; null
    where it is not reported, as in older records."""
    tls_ms: float | None = None
    """The part of `connect_ms` that is TLS; null where there was none, or it is not reported."""
    failure: str | None = None
    """How the request failed in a browser, in its words: `net::ERR_CONNECTION_RESET`, or the rule
    that blocked it, such as `csp`; absent where it did not, and in older records."""


@dataclass(frozen=True, slots=True)
class PageTiming:
    """A moment or a duration that a page, or a server of it, timed itself."""

    kind: str
    """`mark` and `measure` (User Timing), `element` (Element Timing) or `server` (Server
    Timing)."""
    name: str
    """Its name; of an element its `elementtiming`."""
    start_ms: float
    """When it began, from the start of the load; of an element when it was painted, of a server
    when its answer began."""
    lasted_ms: float
    """How long it took; 0 for a moment."""
    url: str
    """Of an element its picture, of a server what it answered; else empty."""


@dataclass(frozen=True, slots=True)
class PageLoad:
    """A load as its client observed it."""

    client: str
    """The client's name."""
    client_version: str
    """The version that the client reports of itself, and how it was modified as it ran, if it
    was."""
    plt_ms: float
    """Page load time. A browser's: `loadEventEnd` - `navigationStart`; `graph`'s: to the end of
    the last response; `wget2`'s: from the list of URLs to the end of the process."""
    requests: tuple[RequestTiming, ...]
    """Every request until the page was left; those that began after `plt_ms` are *after load*."""
    missing: tuple[str, ...] = ()
    """URLs that were recorded before the load event and that the load did not request."""
    extra: tuple[str, ...] = ()
    """URLs that the load requested and the recording does not have."""
    failed: tuple[str, ...] = ()
    """URLs without a whole response, or with an HTTP error that was not recorded."""
    pinned: bool = False
    """Whether the page's scripts had pinned clocks and random numbers."""
    browser: dict[str, float] = field(default_factory=dict)
    """What the load cost a browser, in seconds, by name; empty for other clients. `task_s`: how
    long the page's main thread was busy until the load event; `script_s`, `layout_s`, `style_s` and
    `compile_s` are parts of it. `cpu_s`: processor time of all its processes until then;
    `load_cpu_s` is the part since the navigation. In real time only: `queued_s`: the longest wait
    of one thread for a processor; `launch_s`, `close_s` and `wall_s`: clock time of the start, the
    end and the whole client; `driver_cpu_s`: processor time of the driver."""
    altered: tuple[str, ...] = ()
    """URLs of bodies that arrived with another length or digest than recorded, of clients that
    can tell."""
    ttfb_ms: float | None = None
    """Time to the first byte of the page. This and what follows is what a visitor sees: in ms
    from the start of the load, of a browser only, and absent in older records."""
    fp_ms: float | None = None
    """First paint; absent where the page paints nothing."""
    fcp_ms: float | None = None
    """First contentful paint: text or a picture."""
    lcp_ms: float | None = None
    """Largest contentful paint until the load owed nothing more."""
    cls: float | None = None
    """Cumulative layout shift, without a unit: 0 when nothing moved."""
    dcl_ms: float | None = None
    """The end of `DOMContentLoaded`. This and what follows is absent in older records."""
    lcp_url: str | None = None
    """The picture that was the largest contentful paint; null where it was text."""
    lcp_element: str | None = None
    """The element that was it, as a CSS selector; null where it was removed."""
    long_tasks: int | None = None
    """Tasks of the page's main thread of more than 50 ms; null in virtual time, where computing
    takes none."""
    tbt_ms: float | None = None
    """Total blocking time: what they lasted beyond 50 ms each, from the first contentful paint
    until the load owed nothing more; null in virtual time."""
    timings: tuple[PageTiming, ...] = ()
    """What the page and its servers timed themselves, 200 at most."""
    began_ns: int | None = None
    """When the load began, in ns of CLOCK_REALTIME of the trial's kernel, where there are several
    visits."""
    sockets: tuple[str, ...] = ()
    """URLs of the WebSockets that the page opened, of a browser; absent in older records. A replay
    refuses them, and need not have their hosts."""
    settled_ms: float | None = None
    """When a page had done what it does by itself, of a browser: no request was open and none began
    for 0.5 s from then on; null where it never was in 10 s, of earlier visits, and in older
    records."""
    earlier: tuple[PageLoad, ...] = ()
    """The visits before this one, in their order, each like a load of its own; their requests are
    in the files `visit-1.har` and so on."""

    @property
    def loading(self) -> tuple[RequestTiming, ...]:
        """The requests that began until the load event."""
        return tuple(each for each in self.requests if each.start_ms <= self.plt_ms)

    @property
    def after_load(self) -> tuple[RequestTiming, ...]:
        """Those that began after it: the page's own affair, never due and no reason to refuse."""
        return tuple(each for each in self.requests if each.start_ms > self.plt_ms)

    def without_later(self, missed: Iterable[str]) -> list[str]:
        """Return those of ``missed`` (``METHOD URL``) that were not asked for after the load."""
        later = Counter(each.url.partition("#")[0] for each in self.after_load)
        kept = []
        for miss in missed:
            url = miss.partition(" ")[2]
            later[url] -= 1
            if later[url] < 0:
                kept.append(miss)
        return kept

    @property
    def visits(self) -> tuple[PageLoad, ...]:
        """All visits in their order, this one at the end."""
        return (*self.earlier, self)

    @property
    def first_plt_ms(self) -> float | None:
        """The first visit's page load time, in ms; ``None`` where there was one visit."""
        return self.earlier[0].plt_ms if self.earlier else None

    @property
    def first_fcp_ms(self) -> float | None:
        """The first visit's first contentful paint, in ms; ``None`` where there was one visit."""
        return self.earlier[0].fcp_ms if self.earlier else None


@dataclass(frozen=True, slots=True)
class Substitution:
    """A request that was answered with what was recorded for another."""

    asked: str
    """The request that was made, as `METHOD URL`."""
    answered: str
    """The recorded request whose response was sent, as `METHOD URL`."""


@dataclass(frozen=True, slots=True)
class PageCoverage:
    """How much of the recording a load asked for, and how much of that was never recorded."""

    due: int
    """Recorded requests that a load is to make."""
    due_bytes: int
    """Bytes of their responses, heads as far as known and bodies."""
    made: int
    """Those of them that this load made, exactly or inexactly."""
    made_bytes: int
    """Bytes of their responses."""
    made_up: int
    """Those made whose recorded body is none: one of its size stands in for it."""
    made_up_bytes: int
    """Bytes of their responses."""


@dataclass(frozen=True, slots=True)
class SocketReplay:
    """A WebSocket that was replayed, and how many messages went over it each way."""

    url: str
    """The URL that the page opened, as of its opening handshake: `https://www.page.test/socket`."""
    answered: str
    """The recorded one whose messages the server sent."""
    said: int
    """Messages that the server sent."""
    said_of: int
    """Messages that it had to send."""
    heard: int
    """Messages that the page sent."""
    heard_of: int
    """Messages that it sent when it was recorded."""

    @property
    def exact(self) -> bool:
        """Whether the page opened what was recorded, and as many messages went each way."""
        recorded = self.answered, self.said_of, self.heard_of
        return (self.url, self.said, self.heard) == recorded


@dataclass(frozen=True, slots=True)
class Replay:
    """Replay coverage: how the server answered the requests of the load."""

    exact: int
    """How many requests were answered with their own recording."""
    inexact: tuple[Substitution, ...] = ()
    """Requests that were answered with the nearest recording: of another query, range or body, or
    of an earlier one of equal requests."""
    missed: tuple[str, ...] = ()
    """Requests (`METHOD URL`) that the page does not hold, unknown hosts included."""
    most_per_connection: int = 0
    """The largest number of requests on one connection."""
    protocols: dict[str, int] = field(default_factory=dict)
    """How many requests the server saw, by origin and protocol, such as
    `https://www.page.test HTTP/2.0`."""
    sockets: tuple[str, ...] = ()
    """URLs of WebSockets whose opening handshake was refused: no requests of the page, and no
    misses."""
    quic: str = ""
    """What answered by QUIC, its initial window and its congestion control, such as `aioquic 1.3.0:
    10 packets of 1200 bytes, reno`; empty where nothing did."""
    talks: tuple[SocketReplay, ...] = ()
    """WebSockets that were replayed."""
    page: PageCoverage | None = None
    """How much of the recording that is; not of a neighbour's or a command's requests."""

    @property
    def secured_sockets(self) -> int:
        """How many WebSockets over TLS were replayed or refused: each has its own connection."""
        refused = sum(url.startswith("wss:") for url in self.sockets)
        return refused + sum(each.url.startswith("https:") for each in self.talks)


@dataclass(frozen=True, slots=True)
class ServedConnection:
    """A connection that carried requests, as the server's log has it; ends are ``address:port``.

    ``announced_close`` says that an answer announced the connection's end (RFC 9112 section 9.6),
    ``asked_close`` that a request did, and ``missed`` that one of its requests was for nothing
    that the page holds, or was recorded without an answer.  ``early`` counts the requests that came
    as early data, ``resumed`` says that the connection resumed a session, and ``group`` names the
    group of its key exchange; empty: it has none, as without TLS.
    """

    client: str
    server: str
    requests: int
    announced_close: bool = False
    asked_close: bool = False
    missed: bool = False
    early: int = 0
    resumed: bool = False
    group: str = ""


@dataclass(frozen=True, slots=True)
class Waits:
    """Timers that ran out during a load, and how long the longest held something up (RFC 6298)."""

    client_timeouts: int
    """Retransmission time-outs that the client's kernel counted (`TcpExtTCPTimeouts`)."""
    server_timeouts: int
    """The same of the server's kernel."""
    lost_questions: int
    """Questions for names that were asked again for want of an answer."""
    longest_ns: int
    """The longest time that a connection or a look-up stood still until something was sent again,
    by the capture at the client; 0 if no timer ran out."""


@dataclass(frozen=True, slots=True)
class Queueing:
    """How long packets waited before the line, in one direction, by the captures at both ends.

    A wait is what a packet took beyond the propagation and its own time on the line.
    """

    packets: int
    """Packets that came through."""
    dropped: int
    """Packets that did not: dropped by the queue, or lost at random."""
    marked: int
    """Packets that came with a congestion mark (CE) and were sent without."""
    median_ms: float
    """The median of the waits."""
    p95_ms: float
    """The wait that 95 % of the packets did not exceed."""
    peak_ms: float
    """The longest wait."""
    hit_bytes: float | None
    """How many bytes were before a packet in the queue, when it came, that was then dropped or
    marked: the median; null where none was."""
    slice_ms: float
    """The load was cut into slices of this length, from the first packet of either direction."""
    peaks_us: tuple[int, ...]
    """The longest wait of the packets that were sent in each slice, in whole us; 0 where none
    was."""


@dataclass(frozen=True, slots=True)
class NeighbourFlow:
    """What a neighbour's connection, or one direction of its datagrams, came to during a load."""

    neighbour: str
    """The neighbour in the words of the knob `traffic`."""
    number: int
    """Which of its connections, from 1."""
    way: str
    """The direction in which it sends: `up` or `down`."""
    began_s: float
    """When its first packet was sent, from the start of the load."""
    goodput_kbit: float
    """The rate at which payload arrived while the page was loading: of a connection new bytes, as
    acknowledged (`up`) or received (`down`)."""
    retransmits: int | None = None
    """Of a connection: segments that its sender's kernel sent again since it began."""
    sent: int | None = None
    """Of datagrams, as all that follows: those that were sent while the page was loading."""
    lost: int | None = None
    """How many of them did not arrive."""
    delay_p50_ms: float | None = None
    """The median of their one-way delays; null where none arrived."""
    delay_p95_ms: float | None = None
    """The delay that 95 % of them did not exceed."""
    delay_max_ms: float | None = None
    """The longest delay."""
    jitter_ms: float | None = None
    """The mean difference between delays of packets that arrived one after the other (D of RFC
    3550, section 6.4.1); null where fewer than two arrived."""
    r_factor: float | None = None
    """Of a call: its rating R by the E-model (ITU-T G.107), from 0 to 93.2: G.711 with concealment
    of losses, 20 ms to fill a packet, and the playing delay that is best for it."""
    fetches: int | None = None
    """Of a video or the web: segments or flows whose last byte came while the page was loading; of
    a second page its requests."""
    fetch_p50_ms: float | None = None
    """The median of the times that they took, of the web with the opening of the connection."""
    fetch_max_ms: float | None = None
    """The longest of these times."""
    plt_ms: float | None = None
    """Of a second page: its load time."""


@dataclass(frozen=True, slots=True)
class OpenedConnection:
    """How one connection was opened over TLS, by the capture at the client.

    Times are in ms since the first packet of its visit.
    """

    host: str
    """The name of the server."""
    quic: bool
    """Over QUIC instead of TCP."""
    began_ms: float
    """When its first packet left: a SYN, or an Initial packet."""
    hello_ms: float | None
    """When the last of its ClientHello left; null where the capture does not have it."""
    hello_bytes: int
    """The ClientHello's bytes, with its record header over TCP."""
    syn_bytes: int
    """How many of them rode in the SYN (RFC 7413)."""
    early_bytes: int
    """Early data: TLS records, or 0-RTT packets of QUIC (their UDP payload)."""
    asked_ms: float | None
    """When its first request left; null where it carried none, or that cannot be told."""


@dataclass(frozen=True, slots=True)
class VisitProof:
    """How the connections of one visit were opened, by the capture at the client, over TLS."""

    tcp: int
    """TCP connections that were opened during the visit."""
    quic: int
    """QUIC connections that were opened during the visit."""
    hellos: int
    """ClientHellos on them, over TCP and QUIC (RFC 8446 section 4.1.2)."""
    hello_bytes: int
    """The bytes of all these messages, with their record header over TCP."""
    offered: dict[str, int]
    """How many hellos had a key share of a group, by the group's name."""
    agreed: dict[str, int]
    """On how many connections the server chose a group, by its name."""
    resumed: int
    """Connections that resumed a session: the server took the offered ticket."""
    early: int
    """Connections on which the client sent early data."""
    early_bytes: int
    """That early data: TLS records over TCP, 0-RTT packets of QUIC (their UDP payload)."""
    accepted: int
    """Connections whose early data the server answered before the handshake had ended."""
    early_requests: int
    """Requests that the server's log says came as early data."""
    round_trips: float | None
    """Round trips (`rtt_ms`) from the first packet until the first request left, look-ups
    included; null where that cannot be told."""
    up_bytes: int
    """IP bytes from the client during the visit."""
    down_bytes: int
    """IP bytes to the client during the visit."""
    packets: dict[str, int] = field(default_factory=dict)
    """QUIC packets by direction and type, such as `up.initial`, `up.0-rtt`, `down.handshake`,
    `down.1-rtt` and `down.retry` (RFC 9000 section 17)."""
    versions: tuple[str, ...] = ()
    """Versions of QUIC that were spoken, such as `1`."""
    opened: tuple[OpenedConnection, ...] = ()
    """Each connection, in the order of their first packets; empty in older records."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The packet capture and both ends' TCP counters on the mechanism under test (RFC 7413)."""

    connections: int
    """TCP connections that the client opened."""
    syns: int
    """SYN segments of the client, retransmitted ones included."""
    syns_with_payload: int
    """SYNs that carried data: Fast Open in use."""
    syn_payload_bytes: int
    """The data in all SYNs."""
    cookie_requests: int
    """SYNs that asked for a Fast Open cookie."""
    syn_data_acked: int
    """Connections whose SYN-ACK acknowledged all data of the SYN: the server accepted it."""
    retransmits: int
    """Retransmitted segments, SYNs included, in the capture at the client; a segment that the link
    dropped on its way to the client is not seen there."""
    client_counters: dict[str, int]
    """By how much TCP counters of the client's kernel grew during the load, by their names in
    `/proc/net/snmp` and `/proc/net/netstat`."""
    server_counters: dict[str, int]
    """By how much TCP counters of the server's kernel grew during the load, by the same names."""
    problems: tuple[str, ...] = ()
    """A sentence for each contradiction; with none, the trial is proven."""
    tls_connections: int = 0
    """Connections that carried TLS."""
    hello_bytes: int = 0
    """The first ClientHello records of all TLS connections."""
    syn_hello_bytes: int = 0
    """How much of the ClientHello records was carried in SYNs."""
    given_up: int = 0
    """Connections that the client closed before their SYN-ACK came; its counters leave them out."""
    server_retransmits: int | None = None
    """Segments that the server's kernel sent again; null in older records."""
    first_flight_segments: int | None = None
    """The largest of the server's first flights."""
    handshake_acks: int | None = None
    """Of a load on a server, whose capture is whole: the clients' ACKs of SYN-ACKs, those of
    SYN-ACKs that were sent again included."""
    waits: Waits | None = None
    """Of a page load: what it waited for timers; null in older records."""
    account: dict[str, float] = field(default_factory=dict)
    """Of a page load in virtual time: the load time in ms by the name of what it was spent on, on
    the critical path (`testbed.model.owners.OWNERS`); empty in older records."""
    awaited: tuple[str, ...] = ()
    """The hosts whose TCP handshakes the load waited for, in their order."""
    idle_connections: int | None = None
    """Of a page load: TCP connections over which nothing was asked; null in older records."""
    ecn: dict[str, int] = field(default_factory=dict)
    """Of a page load: explicit congestion notification in the capture at the client; what there is
    none of is left out. `classic` and `accurate`: connections that negotiated ECN (RFC 3168) or
    AccECN (RFC 9768). With `down.` or `up.` before it, of packets behind the handshake in that
    direction: `data` (packets with data on these connections), `ect0` and `ect1` (of these, those
    so declared), `ce` (marked by a queue; not seen on the way up), `ece` and `cwr` (classic
    connections), and `ace`: the marks that the sender's AccECN counter reported."""
    queueing: dict[str, Queueing] = field(default_factory=dict)
    """Of a page load: the queues of `down` and `up`; empty in older records, and where there were
    more packets than the server's end records."""
    neighbours: tuple[NeighbourFlow, ...] = ()
    """Of a page load or a command with neighbours: their flows."""
    ip: dict[str, float] = field(default_factory=dict)
    """Of a page load whose client is offered IPv4 and IPv6: the connections that opened over each
    (`4`, `6`), those over IPv6 without an answer (`6.unanswered`), and `fallback_ms`, the longest
    time after which a SYN over IPv4 followed one over IPv6 that had no answer yet."""

    visits: tuple[VisitProof, ...] = ()
    """Of a page load over TLS: each visit's, the last one's at the end; empty in older records."""
    as_told: tuple[str, ...] = ()
    """Metrics of a browser that nothing shows but its own word, by their names in `load`."""

    @property
    def proven(self) -> bool:
        """Whether capture and counters agree that the mechanism happened (or did not)."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class Cost:
    """The time that a trial took."""

    cpu_s: float
    """Processor time of this machine."""
    wall_s: float
    """Wall-clock time of this machine."""
    virtual_s: float
    """Time on the clock of the trial's kernel."""
