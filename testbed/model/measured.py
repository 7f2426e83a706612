"""What was measured and proven: lab, load, replay, wire, cost.  Raw values are never rounded."""

from __future__ import annotations

from dataclasses import dataclass, field


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
    """What the running lab measured of itself, and the knobs as read back from the kernel.

    ``changes`` has a sentence for each thing that was not the same when all of it was read again
    after the load, or was not for a while.  ``traffic`` counts the packets of the load as the link
    does: ``down.delivered``, ``down.dropped`` (the buffer was full), ``down.lost`` (at random),
    the same of ``up``, and ``waiting``.
    """

    measurements: tuple[Measurement, ...]
    knobs: dict[str, str]
    knob_errors: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    traffic: dict[str, int] = field(default_factory=dict)

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
    client-chromium-driver.md names its parts.  ``altered`` are the URLs of bodies that arrived in
    another length or with another digest than recorded, of clients that can tell.
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
    altered: tuple[str, ...] = ()


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
    saw them, such as ``https://www.page.test HTTP/2.0``.  ``sockets`` are the URLs of WebSockets
    whose opening handshake was refused: they are no requests of the page, and no misses.
    """

    exact: int
    inexact: tuple[Substitution, ...] = ()
    missed: tuple[str, ...] = ()
    most_per_connection: int = 0
    protocols: dict[str, int] = field(default_factory=dict)
    sockets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServedConnection:
    """A connection that carried requests, as the server's log has it; ends are ``address:port``.

    ``told_close`` says that an answer announced the connection's end, ``asked_close`` that the
    client did, and ``missed`` that one of its requests was for nothing that the page holds.
    """

    client: str
    server: str
    requests: int
    told_close: bool = False
    asked_close: bool = False
    missed: bool = False


@dataclass(frozen=True, slots=True)
class Proof:
    """What the wire and both ends' counters say about the mechanism under test (RFC 7413).

    ``retransmits`` is what the capture at the client shows; a segment that the link dropped on its
    way there is not in it.  ``server_retransmits`` is what the server's kernel counted, ``None`` in
    records of before.  ``first_flight_segments`` is the largest of the server's first flights.
    Of the connections that carry TLS, ``hello_bytes`` are those of all first ClientHello records,
    ``syn_hello_bytes`` those of them that rode in SYNs.  ``given_up`` are the connections that the
    client closed before their SYN-ACK: it answered that by RST, and its counters leave them out.
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
    given_up: int = 0
    server_retransmits: int | None = None
    first_flight_segments: int | None = None

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
