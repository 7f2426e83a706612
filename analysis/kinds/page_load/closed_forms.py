"""Closed forms of queues, beside what the captures at both ends of a load say.

A full FIFO makes a packet wait for its buffer's bytes at the line's rate.  CoDel drops first when
packets waited for its target or longer for an interval without a break, then after
interval/sqrt(count) each (RFC 8289 section 5); Linux makes the root by one step of Newton's a drop.
PIE drops nothing in the first 150 ms of a queue (RFC 8033 section 4.4).
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

from analysis.records.cells import Cell
from analysis.words import number
from testbed.capture.packets import read_capture
from testbed.capture.transits import Transit, read_transits
from testbed.model import CAPTURE_FILE, FIFO, SERVER_CAPTURE_FILE, Condition, LinkSpec, Record
from testbed.model.impairments import is_drawn
from testbed.model.line import burst_bytes, delay_ns, line_ms
from testbed.model.trace import hops, trace_of
from testbed.model.traffic import NO_TRAFFIC

MAX_READ = 12
"""So many loads' captures are read for a report."""
MAX_DROPS = 4
BURST_MS = 150.0
SLACK_MS = 0.1
"""Of the kernel's clocks, which tick in 1.024 us, and of what is said with one decimal."""


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """What a queue does by a closed form, in words with units, and what came in a cell's load.

    ``in_linux`` is the same as Linux computes it, where that is another number.
    """

    cell: Cell
    way: str
    queue: str
    what: str
    by_law: str
    in_linux: str
    came: str
    holds: bool


@dataclass(frozen=True, slots=True)
class _Crossing:
    """Packets of a direction as its queue had them, times in ms from the first that was sent.

    ``taken`` are the packets that the shaper took from the queue: when, how long each had been
    there, and how many bytes were behind it.  ``hits`` are those that the queue dropped or marked:
    when each came into it, and when the shaper took it or the next.
    """

    taken: tuple[tuple[float, float, int], ...]
    hits: tuple[tuple[float, float], ...]


def list_closed_forms(folder: Path, cells: Sequence[Cell]) -> tuple[ClosedForm, ...]:
    """Return what the first proven load of each cell shows of its queues, as far as it does."""
    found: list[ClosedForm] = []
    read = 0
    for cell in cells:
        record = next(iter(cell.proven), None)
        if record is None or record.lab is None:
            continue
        link = record.trial.linked.link
        if is_drawn(link) or link.changes or hops(link):
            continue
        found += _full_fifos(cell, record, link)
        queues = {way: record.lab.knobs.get(f"{way}.qdisc", "") for way in ("down", "up")}
        laws = {
            way: law
            for way, told in queues.items()
            if (law := LAWS.get(told.partition(" ")[0])) and not trace_of(link, way)
        }
        alone = record.trial.condition_as(Condition).traffic == NO_TRAFFIC
        trial = folder / "trials" / record.trial_id
        if not laws or not alone or read == MAX_READ:
            continue
        try:
            ends = [read_capture(trial / name) for name in (CAPTURE_FILE, SERVER_CAPTURE_FILE)]
        except (OSError, ValueError):
            continue  # committed results keep no captures, and a damaged one shows nothing
        read += 1
        transits = read_transits(ends[0], ends[1], {ends[0].packets[0].source})
        for way, law in laws.items():
            packet_ms = line_ms(link, way, link.mtu_bytes)
            crossing = _cross(transits.get(way, ()), link, way)
            found += (
                ClosedForm(cell, way, queues[way].partition(" ")[0], *row)
                for row in law(crossing, queues[way], link, packet_ms)
            )
    return tuple(found)


def _full_fifos(cell: Cell, record: Record, link: LinkSpec) -> Iterator[ClosedForm]:
    """Yield the longest wait in each FIFO that was full: when it dropped something."""
    assert record.lab is not None and record.proof is not None  # noqa: S101 - of a proven load
    for way, found in record.proof.queueing.items():
        if link.queues[way] != FIFO or trace_of(link, way):
            continue
        if not record.lab.traffic.get(f"{way}.dropped"):
            continue
        full_ms = link.buffer_bytes * line_ms(link, way, link.mtu_bytes) / link.mtu_bytes
        yield ClosedForm(cell, way, FIFO, f"longest wait in {link.buffer_bytes:,} bytes",
                         _ms(full_ms), "", _ms(found.peak_ms),
                         found.peak_ms <= full_ms + line_ms(link, way, link.mtu_bytes))  # fmt: skip


def _cross(transits: Sequence[Transit], link: LinkSpec, way: str) -> _Crossing:
    """Work out when packets left their queue.

    The shaper takes one packet ahead of the line: when that begins the one before, and sooner by
    what its bucket holds beyond a packet.
    """
    if not transits:
        return _Crossing((), ())
    begin_ns = transits[0].sent_ns
    sent = [(each.sent_ns - begin_ns) / 1e6 for each in transits]
    bytes_up_to = list(accumulate((each.ip_bytes for each in transits), initial=0))
    lead_ms = line_ms(link, way, burst_bytes(link)) - line_ms(link, way, link.mtu_bytes)
    taken: list[tuple[float, float, int]] = []
    hits: list[tuple[float, float]] = []
    waiting: list[float] = []
    before_ms = -math.inf
    for place, each in enumerate(transits):
        if each.came_ns is None:
            waiting.append(sent[place])
            continue
        at_ms = max(sent[place], before_ms - lead_ms)
        hits += ((came_ms, at_ms) for came_ms in waiting)
        waiting = []
        if each.marked:
            hits.append((sent[place], at_ms))
        behind = bytes_up_to[bisect_right(sent, at_ms)] - bytes_up_to[place + 1]
        taken.append((at_ms, at_ms - sent[place], behind))
        left_ms = (each.came_ns - delay_ns(link, way) - begin_ns) / 1e6
        before_ms = left_ms - line_ms(link, way, each.ip_bytes)
    return _Crossing(tuple(taken), tuple(hits))


_Row = tuple[str, str, str, str, bool]


def _codel(crossing: _Crossing, told: str, link: LinkSpec, packet_ms: float) -> Iterator[_Row]:
    """Yield the first drops (or marks), as long as packets waited for the target in between."""
    target_ms, interval_ms = _read_ms(told, "target"), _read_ms(told, "interval")
    if not crossing.hits:
        return
    first_ms = crossing.hits[0][1]
    above = [
        (at_ms, wait_ms >= target_ms and behind > link.mtu_bytes)
        for at_ms, wait_ms, behind in crossing.taken
    ]
    since_ms = next(
        (after[0] for before, after in reversed(list(pairwise(above)))
         if after[0] < first_ms and after[1] and not before[1]), None,
    )  # fmt: skip
    if since_ms is None:
        return
    took_ms = first_ms - since_ms
    yield (f"first drop or mark after the wait reached {number(target_ms, 1)} ms", _ms(interval_ms),
           "", _ms(took_ms), _is_next(took_ms, interval_ms, packet_ms))  # fmt: skip
    law_ms = linux_ms = interval_ms
    root = 1.0
    for count, (_, at_ms) in enumerate(crossing.hits[1:MAX_DROPS], start=2):
        if any(first_ms < when_ms < at_ms and not kept for when_ms, kept in above):
            return
        took_ms = at_ms - first_ms
        other = _ms(linux_ms) if abs(linux_ms - law_ms) > SLACK_MS else ""
        holds = _is_next(took_ms, linux_ms, packet_ms)
        yield f"number {count} after the first", _ms(law_ms), other, _ms(took_ms), holds
        root *= (3 - count * root**2) / 2
        law_ms += interval_ms / math.sqrt(count)
        linux_ms += interval_ms * root


def _pie(crossing: _Crossing, told: str, _: LinkSpec, __: float) -> Iterator[_Row]:
    """Yield how long after its queue began PIE dropped first.

    What is left of the allowance is made whole again at each update at which the wait is below half
    the target, so that it may begin an update before a packet is seen to wait for that.
    """
    half_ms = _read_ms(told, "target") / 2
    since_ms = next((at for at, wait_ms, _ in crossing.taken if wait_ms >= half_ms), None)
    if since_ms is None or not crossing.hits:
        return
    least_ms, took_ms = BURST_MS - _read_ms(told, "tupdate"), crossing.hits[0][0] - since_ms
    yield (f"first drop or mark after the wait reached {number(half_ms, 1)} ms",
           f"at least {_ms(least_ms)}", "", _ms(took_ms),
           took_ms >= least_ms - SLACK_MS)  # fmt: skip


LAWS = {"codel": _codel, "pie": _pie}


def _is_next(took_ms: float, law_ms: float, packet_ms: float) -> bool:
    """Whether a drop came with the first packet that was taken when it was due."""
    return law_ms - SLACK_MS <= took_ms <= law_ms + packet_ms + SLACK_MS


def _read_ms(told: str, name: str) -> float:
    """Return an option of a queue in ms, as tc says it; all queues of LAWS have theirs."""
    found = re.search(rf" {name} ([0-9.]+)(us|ms|s)\b", told)
    assert found is not None, told  # noqa: S101 - tc always says it
    return float(found[1]) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[found[2]]


def _ms(value: float) -> str:
    return f"{number(value, 1)} ms"
