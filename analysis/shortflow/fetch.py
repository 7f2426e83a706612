"""Time of a fetch of one object on a cold connection, by arithmetic from link and TCP knobs.

Handshake (RFC 9293; none of its own with a Fast Open cookie, RFC 7413), request, then the response
in slow start over the bottleneck, segment by segment: when each leaves follows from when earlier
ones were acknowledged.  Programs and kernels take no time, and nothing is lost: the model holds
until the buffer overflows, and says when it does.  wings/papers/README.md.
Over IPv6 each packet has 20 bytes more of header (RFC 8200), which are none of TCP's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from analysis.shortflow.link import FlowDirection, directions
from analysis.shortflow.response import (
    ACK_BYTES,
    FIRST_WINDOW_BYTES,
    Ack,
    Receiver,
    Transfer,
    Window,
)
from testbed.base.errors import ConfigurationError
from testbed.model import LinkSpec, TcpSpec
from testbed.model.knob import changed

IP_TCP_BYTES = 20 + 20
IPV6_MORE = 20
# MSS 4, SACK permitted 2 beside time stamps 10, no-operation 1 and window scale 3.
SYN_BYTES = IP_TCP_BYTES + 20
# A Fast Open cookie of 8 bytes, and the request for one, aligned to 4 bytes.
COOKIE_BYTES, COOKIE_REQUEST_BYTES = 12, 4
HYSTART = {"cubic": True, "reno": False}
KNOWN = frozenset({
    *("rtt_ms", "down_kbit", "up_kbit", "buffer_bytes", "mtu_bytes", "framing_bytes", "profile"),
    "ip",
    *("tfo", "cookies", "initcwnd_segments", "congestion_control", "requests_per_connection"),
})  # fmt: skip
"""The knobs of link and TCP that the arithmetic follows; with another it cannot say."""


@dataclass(frozen=True, slots=True)
class FetchParts:
    """The parts of a fetch's time, in ms; the first three add up to ``fetch_ms``.

    ``handshake_ms`` is 0 where the request rides in the SYN.  ``request_ms`` lasts until the server
    has all of the request, ``response_ms`` from then until the client has all of the response; in
    it the line is busy for ``serialisation_ms`` and idle for ``idle_ms``, because the window is
    closed (or the response still on its way).  ``rounds`` counts flights.
    With ``overflows`` the buffer was too small, and a kernel would have lost packets and time.
    """

    handshake_ms: float
    request_ms: float
    response_ms: float
    serialisation_ms: float
    rounds: int
    peak_buffer_bytes: int
    overflows: bool

    @property
    def fetch_ms(self) -> float:
        """From the start to the arrival of the last byte."""
        return self.handshake_ms + self.request_ms + self.response_ms

    @property
    def idle_ms(self) -> float:
        """How long the line carried nothing during the response."""
        return self.response_ms - self.serialisation_ms


def predict_fetch_ms(
    link: LinkSpec, tcp: TcpSpec, request_bytes: int, response_bytes: int
) -> float:
    """Return the ms from the start of a fetch on a cold connection to its last byte.

    Args:
        link: the access link.
        tcp: Fast Open, its cookies, the server's initial window and the congestion control.
        request_bytes: head (and body) of the request, above TCP.
        response_bytes: head and body of the response, above TCP.

    Raises:
        ConfigurationError: the model does not hold: loss, an overflowing buffer, another
            congestion control, a request that does not fit into a SYN.
    """
    parts = explain_fetch(link, tcp, request_bytes, response_bytes)
    if parts.overflows:
        raise ConfigurationError([
            f"the model of short flows holds without loss only: {response_bytes} bytes from a "
            f"window of {tcp.initcwnd_segments} overflow the buffer of {link.buffer_bytes} "
            "bytes; measure this cell, or raise buffer_bytes"
        ])  # fmt: skip
    return parts.fetch_ms


def explain_fetch(
    link: LinkSpec, tcp: TcpSpec, request_bytes: int, response_bytes: int
) -> FetchParts:
    """Return the parts of the time that ``predict_fetch_ms`` returns, and any overflow.

    Raises:
        ConfigurationError: as there, but for the buffer.
    """
    _check(link, tcp, request_bytes, response_bytes)
    if link.ip == "6":
        framing_bytes, mtu_bytes = link.framing_bytes + IPV6_MORE, link.mtu_bytes - IPV6_MORE
        link = replace(link, framing_bytes=framing_bytes, mtu_bytes=mtu_bytes)
    room = link.mtu_bytes - ACK_BYTES
    down, up = directions(link)
    request, opened_ms = _open(tcp, _packets(request_bytes, room), down, up)
    busy_before_ms = down.busy_ms
    window = Window(tcp.initcwnd_segments, HYSTART[tcp.congestion_control])
    response = Transfer(_packets(response_bytes, room), window, Receiver(room, opened_ms), down, up)
    arrived_ms = response.run(request)
    return FetchParts(handshake_ms=request.sent_ms, request_ms=request.arrives_ms - request.sent_ms,
                      response_ms=arrived_ms - request.arrives_ms,
                      serialisation_ms=down.busy_ms - busy_before_ms, rounds=window.rounds + 1,
                      peak_buffer_bytes=down.peak_bytes,
                      overflows=down.overflowed or up.overflowed)  # fmt: skip


def _check(link: LinkSpec, tcp: TcpSpec, request_bytes: int, response_bytes: int) -> None:
    problems = [
        f"{each.name} is {value}, which the model of short flows does not know: measure this cell"
        for spec in (link, tcp)
        for each, value in changed(spec)
        if each.name not in KNOWN
    ]
    if tcp.congestion_control not in HYSTART:
        problems.append(
            f"the model of short flows knows {' and '.join(HYSTART)}, "
            f"congestion_control is {tcp.congestion_control!r}"
        )
    if link.ip.startswith("dual"):
        problems.append("the model of short flows does not know which IP a client chooses")
    if request_bytes < 1 or response_bytes < 1:
        problems.append(
            f"a request of {request_bytes} and a response of {response_bytes} bytes: "
            "each has at least 1"
        )
    syn_room = link.mtu_bytes - SYN_BYTES - COOKIE_BYTES
    if _rides_in_syn(tcp) and request_bytes > syn_room:
        problems.append(
            f"the request has {request_bytes} bytes, a SYN carries at most {syn_room}: "
            "shorten the request, or set tfo = false"
        )
    if problems:
        raise ConfigurationError(problems)


def _rides_in_syn(tcp: TcpSpec) -> bool:
    return tcp.tfo and tcp.cookies != "cold"


def _packets(size: int, room: int) -> list[int]:
    """Return the IP bytes of the segments that carry ``size`` bytes, all full but the last."""
    full, remainder = divmod(size, room)
    return [ACK_BYTES + room] * full + ([ACK_BYTES + remainder] if remainder else [])


def _open(
    tcp: TcpSpec, request: list[int], down: FlowDirection, up: FlowDirection
) -> tuple[Ack, float]:
    """Carry everything up to the last byte of ``request``, the IP bytes of its segments.

    Returns the request as the acknowledgement that opens the window, and when the client has the
    server's SYN, in ms since its own.
    """
    if _rides_in_syn(tcp):
        cookie = COOKIE_BYTES if tcp.cookies == "cached" else 0
        payload = sum(request) - len(request) * ACK_BYTES
        asked_ms = up.carry(SYN_BYTES + cookie + payload, 0.0)
        opened_ms = down.carry(SYN_BYTES, asked_ms)
        up.carry(ACK_BYTES, opened_ms)
        return Ack(0.0, asked_ms, 0, FIRST_WINDOW_BYTES), opened_ms
    asks, gets = (COOKIE_REQUEST_BYTES, COOKIE_BYTES) if tcp.tfo else (0, 0)
    opened_ms = down.carry(SYN_BYTES + gets, up.carry(SYN_BYTES + asks, 0.0))
    up.carry(ACK_BYTES, opened_ms)
    asked_ms = [up.carry(size, opened_ms) for size in request][-1]
    # The first data of a connection are acknowledged at once, before there is an answer.
    down.carry(ACK_BYTES, asked_ms)
    return Ack(opened_ms, asked_ms, 0, FIRST_WINDOW_BYTES), opened_ms
