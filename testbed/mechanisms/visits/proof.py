"""Visits of a page: as many and as far apart as asked, and how the connections of each began."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise

from testbed.capture.handshakes import Handshake
from testbed.lab.alignment import FORGOTTEN_MOST_NS, next_round
from testbed.model import OpenedConnection, VisitProof
from testbed.proof.check import check, say_unshown
from testbed.proof.evidence import Evidence

LEAVING_S = 3.0
"""What may pass, beside the rest, until a page that is silent for a second has been left."""
LEAVING_REAL_S = 15.0
"""The same in real time, where a browser has ten seconds to answer."""
_KEPT = re.compile(r"(?<!s-)\bmax-age=([0-9]{1,9})\b")
"""How long a cache may keep a response, in s (RFC 9111 section 5.2.2.1)."""
LATE_MS = 5.0
"""How long a browser may take, in virtual time, until the first packet of its first request."""
EARLY_MS = -1.0
"""It leaves no sooner than the request began, but for what rounds that."""


@check("visits", "visits", "condition", "capture")
def check_visits(seen: Evidence) -> Iterator[str]:
    """The page was visited as often, and after as long a rest, as asked."""
    windows, asked = seen.visits, seen.condition
    if len(windows) != asked.visits:
        yield f"the page was visited {len(windows)} times, asked was {asked.visits}"
        return
    if asked.visits == 1:
        return
    for before, window in pairwise(windows):
        idle_s = (window.began_ns - before.settled_ns) / 1e9
        # In real time one of two clocks may be slewed (adjtimex(2)).
        least_s = asked.idle_s * (1.0 if seen.virtual_time else 0.999)
        most_s = asked.idle_s / 0.999 + LEAVING_REAL_S
        if seen.virtual_time:  # it ends at a round instant, and what forgets begins then
            due_ns = before.settled_ns + round((asked.idle_s + LEAVING_S) * 1e9)
            most_s = (next_round(due_ns) + FORGOTTEN_MOST_NS - before.settled_ns) / 1e9
        if not least_s <= idle_s <= most_s:
            yield window.say(f"it began after {idle_s:.3f} s of rest, asked was {asked.idle_s:g} s")
    for window in windows:
        zero_ns = window.zero_ns(seen.capture, seen.clients)
        late_ms = None if zero_ns is None else (zero_ns - window.began_ns) / 1e6
        if late_ms is None:
            yield window.say("the client sent nothing")
        elif seen.virtual_time and not EARLY_MS <= late_ms <= LATE_MS:
            yield window.say(f"its first packet left {late_ms:.3f} ms after it began")


@check("cache", "load", "condition", "replay")
def check_cache(seen: Evidence) -> Iterator[str]:
    """A cache that was kept answers requests of later visits, which servers then do not get."""
    between, replay = seen.condition.between, seen.replay
    visits = seen.load.visits
    if between != "keep":
        return
    answered = replay.exact + len(replay.inexact) + len(replay.missed)
    made = max(len(visits[0].requests) * len(visits), sum(len(v.requests) for v in visits))
    if len(visits) == 1 or (answered >= made and _is_fresh_later(seen)):
        yield say_unshown("between", between)


def _is_fresh_later(seen: Evidence) -> bool:
    """Whether a response of the first visit said that it may be kept until the next one."""
    har = (seen.out / "visit-1.har").read_text(errors="replace")
    kept_s = (int(found[1]) for found in _KEPT.finditer(har))
    return any(each > seen.condition.idle_s for each in kept_s)


@check("pinned scripts", "load", "condition")
def check_pinned(seen: Evidence) -> Iterator[str]:
    """The page's scripts had pinned clocks and random numbers, or free ones, by their own text."""
    asked = seen.condition.randomness
    if not seen.browsed:
        yield from () if asked == "as-recorded" else (say_unshown("randomness", asked),)
        return
    due = asked == "pinned"
    if asked == "as-recorded":
        if not seen.has("archive"):
            return
        due = seen.archive.pinned
    for visit in seen.load.visits:
        if visit.pinned is not due:
            yield f"randomness = {asked}, but the page's scripts had others"


def describe_visits(seen: Evidence) -> Iterator[VisitProof]:
    """Yield what each visit shows, where there are keys to read handshakes by."""
    if not seen.has("handshakes") or not seen.handshakes:
        return
    handshakes, capture, clients = seen.handshakes, seen.capture, seen.clients
    early = {(each.client, each.server): each.early for each in seen.served}
    for window in seen.visits:
        began = [each for each in handshakes if window.holds(each.began_ns)]
        hellos = [hello for each in began for hello in each.hellos]
        first = window.first_packet_ns(capture, clients)
        asked = [
            ns for each in handshakes
            if (ns := each.asked_ns) is not None and window.holds(ns)
        ]  # fmt: skip
        waited_ms = (min(asked) - first) / 1e6 if asked and first is not None else None
        crossed = [
            (packet.source in clients, packet.ip_bytes)
            for packet in capture.packets
            if window.holds(packet.at_ns)
        ]
        packets = Counter(
            f"{'up' if packet.by_client else 'down'}.{packet.kind}"
            for connection in seen.quic
            for packet in connection.packets
            if window.holds(packet.at_ns)
        )
        versions = {v for each in seen.quic if window.holds(each.began_ns) for v in each.versions}
        yield VisitProof(
            tcp=sum(1 for each in began if not each.quic),
            quic=sum(1 for each in began if each.quic),
            hellos=len(hellos),
            hello_bytes=sum(each.hello_bytes for each in began),
            offered=dict(Counter(group for hello in hellos for group in hello.groups)),
            agreed=dict(Counter(g for each in began if each.answer for g in each.answer.groups)),
            resumed=sum(1 for each in began if each.resumed),
            early=sum(1 for each in began if each.early_bytes),
            early_bytes=sum(each.early_bytes for each in began),
            accepted=sum(1 for each in began if each.early_bytes and each.accepted),
            early_requests=sum(early.get((each.client, each.server), 0) for each in began),
            round_trips=None if waited_ms is None else round(waited_ms / seen.link.rtt_ms, 4),
            up_bytes=sum(size for by_client, size in crossed if by_client),
            down_bytes=sum(size for by_client, size in crossed if not by_client),
            packets=dict(sorted(packets.items())),
            versions=tuple(f"{version:x}" for version in sorted(versions)),
            opened=tuple(_describe(each, seen.hosts, first or 0) for each in began),
        )


def _describe(handshake: Handshake, hosts: Mapping[str, str], first_ns: int) -> OpenedConnection:
    """Describe a connection of a visit whose first packet left at ``first_ns``."""

    def since_first(at_ns: int | None) -> float | None:
        return None if at_ns is None else (at_ns - first_ns) / 1e6

    address = handshake.server.rpartition(":")[0]
    return OpenedConnection(
        host=hosts.get(address, address),
        quic=handshake.quic,
        began_ms=(handshake.began_ns - first_ns) / 1e6,
        hello_ms=since_first(handshake.hello_ns),
        hello_bytes=handshake.hello_bytes,
        syn_bytes=handshake.syn_bytes,
        early_bytes=handshake.early_bytes,
        asked_ms=since_first(handshake.asked_ns),
    )
