"""Neighbours of a page load: who else uses the access line meanwhile, in the words of a knob.

``bulk up 2x cubic from -5s to 20s``: TCP that never runs dry, in so many connections.
``cbr down 500kbit 1200B``: UDP packets of so many IP bytes, evenly spaced.
``call``: a packet each way every 20 ms, as of a telephone (RFC 3551 section 4.2, G.711: 160 bytes).
``video down 5000kbit 4s``: segments of so many seconds, one after the other (``fetches``).
``web 8x``: so many people who fetch one thing after the other (``fetches``).
``page``: a second client, of the kind ``graph``, loads the same page from another server.
Times are in seconds from the start of the load; several neighbours are joined by `` + ``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Way = Literal["up", "down"]
WAYS: tuple[Way, Way] = ("up", "down")
NO_TRAFFIC = "none"
MOST_NEIGHBOURS, MOST_FLOWS = 8, 64
FROM_S = -5.0
ALGORITHM = "cubic"
PAGE = "page"
CALL_NS, CALL_BYTES = 20_000_000, 200
"""Of a call: the time between packets, and their bytes with the headers of RTP, UDP and IP."""
CALL_STAMPS = 160
"""Of RTP's clock, from one packet to the next: G.711's samples in 20 ms."""
LEAST_BYTES = 40
"""Of a datagram: IP's header, UDP's, and RTP's (RFC 3550 section 5.1), whose numbers we count."""
LEAST_GAP_NS = 10_000
"""Between packets of a neighbour: more of them nobody could send evenly."""
FIRST_PORT = 5001
SEGMENT_S = 4
MOST_SEGMENT_BYTES = 1 << 30
_TIME = r"-?[0-9]{1,4}(?:\.[0-9]{1,3})?s"
_TIMES = rf"(?: from {_TIME})?(?: to {_TIME})?"
_BULK = rf"bulk (?:up|down)(?: [1-9][0-9]?x)?(?: [a-z][a-z0-9_]{{0,14}})?{_TIMES}"
_CBR = rf"cbr (?:up|down) [1-9][0-9]{{0,7}}kbit(?: [1-9][0-9]{{1,3}}B)?{_TIMES}"
_VIDEO = rf"video down [1-9][0-9]{{0,7}}kbit(?: [1-9][0-9]?s)?(?: [a-z][a-z0-9_]{{0,14}})?{_TIMES}"
_WEB = rf"web(?: [1-9][0-9]?x)?(?: [a-z][a-z0-9_]{{0,14}})?{_TIMES}"
_PAGE = rf"page(?: from {_TIME})?"
_ONE = f"(?:{_BULK}|{_CBR}|{_VIDEO}|{_WEB}|{_PAGE}|call{_TIMES})"
PATTERN = rf"^(?:{NO_TRAFFIC}|{_ONE}(?: \+ {_ONE}){{0,{MOST_NEIGHBOURS - 1}}})$"
"""What the text of the knob has to match."""
ALLOWED = (
    '"none", or neighbours joined by " + ": "bulk up|down [Nx] [ALGORITHM]", '
    '"cbr up|down Nkbit [NB]", "call", "video down Nkbit [Ns] [ALGORITHM]" or '
    '"web [Nx] [ALGORITHM]", each with [from Ns] [to Ns], or "page [from Ns]", '
    'such as "bulk up 2x cubic from -5s + call"'
)
_PARTS = re.compile(
    r"(?P<kind>bulk|cbr|call|video|web|page)(?: (?P<way>up|down))?(?: (?P<flows>[0-9]+)x)?"
    r"(?: (?P<rate>[0-9]+)kbit)?(?: (?P<size>[0-9]+)B)?(?: (?P<segment>[0-9]+)s)?"
    rf"(?: (?!from |to )(?P<algorithm>[a-z][a-z0-9_]*))?"
    rf"(?: from (?P<begin>{_TIME}))?(?: to (?P<end>{_TIME}))?"
)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One neighbour, as its ``text`` asks for it.

    It sends in each of ``ways`` from ``from_s`` to ``to_s`` seconds after the start of the load,
    without ``to_s`` until the load has ended.  A TCP neighbour has an ``algorithm``; the packets of
    others have ``packet_bytes`` with all headers from IP on, and one follows another after
    ``gap_ns``.  So do segments of a video, which have ``segment_bytes``.  A page has no flows here:
    its client opens what it needs.
    """

    text: str
    kind: str
    ways: tuple[Way, ...]
    from_s: float
    to_s: float | None
    flows: int = 1
    algorithm: str = ""
    packet_bytes: int = 0
    gap_ns: int = 0
    segment_bytes: int = 0

    @property
    def asks(self) -> bool:
        """Whether it fetches one thing after the other."""
        return self.kind in ("video", "web")


@dataclass(frozen=True, slots=True)
class PlannedFlow:
    """One connection, one of the people on the web, or one direction of datagrams.

    ``port`` is that of both ends; on the web of the remote end.
    """

    neighbour: Neighbour
    number: int
    way: Way
    port: int


@dataclass(frozen=True, slots=True)
class ToldConnection:
    """What the kernel says of a neighbour's connection at its end, at the end that sends.

    ``port`` is its flow's.  ``algorithm`` is empty where there is no connection.  ``busy_s`` is for
    how long it had data to send, and ``retransmits`` how many segments it sent again (tcp(7),
    TCP_INFO).
    """

    port: int
    algorithm: str = ""
    busy_s: float = 0.0
    retransmits: int = 0


def parse_traffic(text: str) -> tuple[Neighbour, ...]:
    """Return the neighbours that a text of the knob asks for.

    Raises:
        ValueError: there can be none such; the message says why.
    """
    if text == NO_TRAFFIC:
        return ()
    if not re.fullmatch(PATTERN, text):
        raise ValueError(f"{text!r} is not {ALLOWED}")
    found = tuple(_parse(part) for part in text.split(" + "))
    if sum(neighbour.flows * len(neighbour.ways) for neighbour in found) > MOST_FLOWS:
        raise ValueError(f"{text!r} has more than {MOST_FLOWS} flows")
    if sum(neighbour.kind == PAGE for neighbour in found) > 1:
        raise ValueError(f"{text!r} has more than one second page")
    return found


def _parse(text: str) -> Neighbour:
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise ValueError(f"{text!r} is no neighbour")
    begin = 0.0 if parts["kind"] == PAGE else FROM_S
    begin = float(parts["begin"][:-1]) if parts["begin"] else begin
    end = float(parts["end"][:-1]) if parts["end"] else None
    if end is not None and end <= max(begin, 0.0):
        raise ValueError(f"{text!r} ends before it, or the load, has begun")
    kind, flows = parts["kind"], int(parts["flows"] or 1)
    ways = WAYS if kind == "call" else tuple(way for way in WAYS if way == (parts["way"] or "down"))
    algorithm = parts["algorithm"] or ALGORITHM
    if kind == PAGE:
        return Neighbour(text, kind, ways, begin, None, 0)
    if kind in ("bulk", "web"):
        return Neighbour(text, kind, ways, begin, end, flows, algorithm)
    if kind == "video":
        segment_s = int(parts["segment"] or SEGMENT_S)
        segment_bytes = int(parts["rate"]) * segment_s * 125
        if segment_bytes > MOST_SEGMENT_BYTES:
            raise ValueError(f"{text!r} has segments of more than {MOST_SEGMENT_BYTES} bytes")
        return Neighbour(
            *(text, kind, ways, begin, end, 1, algorithm),
            gap_ns=segment_s * 10**9,
            segment_bytes=segment_bytes,
        )
    size, gap_ns = CALL_BYTES, CALL_NS
    if kind == "cbr":
        size = int(parts["size"] or 1200)
        gap_ns = size * 8_000_000 // int(parts["rate"])
    if size < LEAST_BYTES:
        raise ValueError(f"{text!r}: a packet has {LEAST_BYTES} bytes of headers at least")
    if gap_ns < LEAST_GAP_NS:
        raise ValueError(f"{text!r}: more than {10**9 // LEAST_GAP_NS} packets a second")
    return Neighbour(text, kind, ways, begin, end, packet_bytes=size, gap_ns=gap_ns)


def list_flows(neighbours: tuple[Neighbour, ...]) -> Iterator[PlannedFlow]:
    """Yield every flow of ``neighbours``; each has a port of its own."""
    port = FIRST_PORT
    for neighbour in neighbours:
        for number in range(1, neighbour.flows + 1):
            for way in neighbour.ways:
                yield PlannedFlow(neighbour, number, way, port)
                port += 1


def lead_s(neighbours: tuple[Neighbour, ...]) -> float:
    """How long before the load the first of ``neighbours`` begins, in seconds."""
    return max(0.0, *(-neighbour.from_s for neighbour in neighbours))


def second_page(neighbours: tuple[Neighbour, ...]) -> Neighbour | None:
    """Return the neighbour that loads the page, too, if there is one."""
    return next((each for each in neighbours if each.kind == PAGE), None)
