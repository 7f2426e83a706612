"""Sender: a server's side of a connection, the least window it has, and since when it has had room.

A server has bytes to send once what asked for them came, and room for them while less is under way
than its congestion window holds.  That window is not in a capture, but its least size is: it starts
as known, grows by what is acknowledged in slow start, and is no smaller than what was under way; a
loss may take it down to two packets.  So who sends nothing while less than that is under way waits
for something else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

NEAR_NS = 250_000
"""In virtual time what a server does at once takes it less than this: 40 us at most in 560 loads,
81 us where many requests came at once."""
FULL = 2 / 3
"""A sender whose window has this share of its segments under way may wait for more room, to send it
as one batch (tcp_tso_should_defer in net/ipv4/tcp_output.c, tcp_tso_win_divisor)."""
LOST_PACKETS = 2
"""The least window after losses, of which one may follow another (RFC 5681 section 3.1, RFC 9002
section 7.2)."""


class Silence(NamedTuple):
    """From when to when a server sent nothing, though it had something to send and room for it.

    ``why`` are its words on the room that there was.
    """

    since_ns: int
    until_ns: int
    connection: str
    why: str

    @property
    def ms(self) -> float:
        """How long it was, in ms."""
        return (self.until_ns - self.since_ns) / 1e6


@dataclass(slots=True)
class Sender:
    """What is under way of a connection, in its ``unit``, and the least window that there is."""

    name: str
    window: float
    unit: str
    under_way: int = 0
    asked_ns: int | None = None
    room_ns: int | None = None
    """Since when there has been room."""
    shrunk: bool = False
    """Whether a loss may have taken the window down."""

    def silence(self, since_ns: int | None, at_ns: int) -> Silence | None:
        """Return the silence until now of who had something to send, if it had room as well."""
        if self.room_ns is None or since_ns is None:
            return None
        why = f"{self.under_way} of at least {self.window:.0f} {self.unit} were under way"
        return Silence(max(self.room_ns, since_ns), at_ns, self.name, why)

    def look(self, at_ns: int, *, room: bool) -> None:
        """Note whether there is room."""
        if not room:
            self.room_ns = None
        elif self.room_ns is None:
            self.room_ns = at_ns
