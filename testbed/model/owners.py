"""Owners of a load's time: what a stretch of its critical path may have been spent on."""

from __future__ import annotations

from collections.abc import Mapping

LOOK_UP, TCP, TLS = "look-up", "TCP handshake", "TLS handshake"
REQUEST, WINDOW, LINE, QUEUE = "request", "window", "line", "queue"
RECOVERY, SERVER, CLIENT = "recovery", "server", "client"
OWNERS: Mapping[str, str] = {
    LOOK_UP: "round trips of questions to the name server",
    TCP: "round trips of SYNs (RFC 9293)",
    TLS: "round trips of hellos and what follows them, in TLS or QUIC (RFC 8446, RFC 9001)",
    REQUEST: "round trips of requests",
    WINDOW: "round trips of ACKs, which let a sender send more (RFC 5681)",
    LINE: "on the line: the packet's own bytes, and those of the load before it",
    QUEUE: "before the line for another reason: neighbours, an opportunity of a trace, drawn delay",
    RECOVERY: "until what was lost was sent again (RFC 6298, RFC 8985)",
    SERVER: "at the server: its think time, or its pacing",
    CLIENT: "at the client: its computing, its timers, and gaps of the page",
}
"""Who may own a stretch of a load, and what that is."""
