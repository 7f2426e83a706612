"""Replay coverage: how the server answered the requests of loads, counted and listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from operator import add, attrgetter
from typing import Any

from analysis.words import MISSING, clean, count, number
from testbed.model import PageCoverage, PageLoad, Record, Replay

MAX_LISTED = 100
_PAGE_COUNTS = tuple(each.name for each in fields(PageCoverage) if each.name != "made")


@dataclass(frozen=True, slots=True)
class ReplayCoverage:
    """Requests of some loads by how they were answered."""

    exact: int = 0
    """Requests answered with their own recording."""
    inexact: int = 0
    """Requests answered with the nearest recording."""
    missed: int = 0
    """Requests that the page does not hold."""
    not_made: int = 0
    """Recorded requests that a load made neither exactly nor inexactly."""
    loads: int = 0
    """Loads that the counts are of."""
    pinned: int = 0
    """Loads whose scripts had pinned clocks and random numbers."""
    sockets: int = 0
    """WebSockets that the server refused: they are no requests."""
    talks: int = 0
    """WebSockets that were replayed."""
    talks_inexact: int = 0
    """Those of them with another URL, or with other numbers of messages, than recorded."""
    due: int = 0
    """Recorded requests that the loads were to make, where known."""
    due_bytes: int = 0
    """Bytes of their responses."""
    made_bytes: int = 0
    """Bytes of the responses to those that were made."""
    made_up: int = 0
    """Requests whose body was never recorded: one of its size stands in for it."""
    made_up_bytes: int = 0
    """Bytes of their responses."""

    @property
    def requests(self) -> int:
        """All requests that were made."""
        return self.exact + self.inexact + self.missed

    @property
    def whole(self) -> bool:
        """Whether every request was made and answered with its own recording."""
        return not (self.inexact or self.missed or self.not_made)

    @property
    def plain(self) -> bool:
        """Whether it is whole, and no body was made up."""
        return self.whole and not self.made_up

    @property
    def covered(self) -> str:
        """How much of the recording was asked for, of requests and of bytes, and is made up."""
        if not self.due:
            return MISSING
        made = (self.due - self.not_made) / self.due * 100.0
        made_up = f", {number(self.made_up_pct, 0)} made up" if self.made_up else ""
        return f"{number(made, 0)} ({number(self.bytes_pct, 0)} of bytes{made_up})"

    @property
    def bytes_pct(self) -> float | None:
        """Share of the recorded bytes whose requests were made, in percent."""
        return self.made_bytes / self.due_bytes * 100.0 if self.due_bytes else None

    @property
    def made_up_pct(self) -> float | None:
        """Share of the bytes received whose bodies were made up, in percent."""
        return self.made_up_bytes / self.made_bytes * 100.0 if self.made_bytes else None

    @property
    def exact_pct(self) -> float | None:
        """Share of the requests that were answered with their own recording, in percent."""
        return self.exact / self.requests * 100.0 if self.requests else None

    def __add__(self, other: ReplayCoverage) -> ReplayCoverage:
        """Return the sums of both."""
        return ReplayCoverage(*map(add, _COUNTS(self), _COUNTS(other)))


_COUNTS = attrgetter(*(each.name for each in fields(ReplayCoverage)))


@dataclass(frozen=True, slots=True)
class Listed:
    """A request that was not answered exactly, and in how many loads of its page.

    ``answered`` is ``None`` for a miss; both are ``METHOD URL``.
    """

    page: str
    asked: str
    answered: str | None
    loads: int


def coverage_of(records: Iterable[Record]) -> ReplayCoverage:
    """Count over all ``records`` that have a replay, those that do not count included."""
    return sum(map(count_record, records), ReplayCoverage())


def count_record(record: Record) -> ReplayCoverage:
    """Return the counts of one load; nothing when the server was not asked at all."""
    replay, load = record.replay, record.measured_as(PageLoad)
    if replay is None:
        return ReplayCoverage()
    not_made = Counter(load.missing if load is not None else ())
    if not_made:
        not_made -= Counter(each.answered.partition(" ")[2] for each in replay.inexact)
    return ReplayCoverage(exact=replay.exact, inexact=len(replay.inexact),
                          missed=len(replay.missed), not_made=not_made.total(), loads=1,
                          pinned=int(load is not None and load.pinned), sockets=len(replay.sockets),
                          talks=len(replay.talks),
                          talks_inexact=sum(not each.exact for each in replay.talks),
                          **_of_page(replay.page))  # fmt: skip


def _of_page(page: PageCoverage | None) -> dict[str, int]:
    return {name: getattr(page, name) for name in _PAGE_COUNTS} if page else {}


def list_not_exact(records: Iterable[Record]) -> tuple[list[Listed], int]:
    """Return the requests that were not answered exactly, misses first, and how many are left out.

    Each is listed once for its page, however many loads asked it; most loads first.
    """
    loads: Counter[tuple[str, str, str | None]] = Counter()
    for record in records:
        loads.update(set(_not_exact(record)))
    ordered = sorted(loads.items(), key=lambda item: _order(*item))
    listed = [
        Listed(
            clean(page), clean(request), None if answered is None else clean(answered), load_count
        )
        for (page, request, answered), load_count in ordered
    ]
    return listed[:MAX_LISTED], max(len(listed) - MAX_LISTED, 0)


def describe(coverage: ReplayCoverage) -> str:
    """Return a sentence, such as for the terminal; two if there were WebSockets."""
    refused = (
        f" {count(coverage.sockets, 'WebSocket')} refused: the page holds no messages of theirs."
        if coverage.sockets
        else ""
    )
    if coverage.talks:
        inexact = (
            f", {coverage.talks_inexact:,} of them inexactly" if coverage.talks_inexact else ""
        )
        refused += f" {count(coverage.talks, 'WebSocket')} replayed{inexact}."
    if coverage.made_up:
        refused += (
            f" {coverage.made_up:,} bodies were never recorded and are made up in their size: "
            f"{number(coverage.made_up_pct, 0)} % of all bytes."
        )
    if coverage.whole:
        return (
            f"All {count(coverage.requests, 'request')} of {count(coverage.loads, 'load')} "
            f"were answered exactly.{refused}"
        )
    not_made = f", and {coverage.not_made:,} recorded were not made" if coverage.not_made else ""
    return (
        f"{number(coverage.exact_pct, 2)} % of {count(coverage.requests, 'request')} were answered "
        f"exactly; {coverage.inexact:,} inexactly, {coverage.missed:,} missed{not_made}.{refused}"
    )


def replay_facts(replay: Replay | None) -> dict[str, Any] | None:
    """Return a load's coverage for ``summary.json``, in an order that does not depend on time."""
    if replay is None:
        return None
    inexact = sorted(replay.inexact, key=lambda s: (s.asked, s.answered))
    return {**asdict(replay), "inexact": [asdict(each) for each in inexact],
            "missed": sorted(replay.missed), "sockets": sorted(replay.sockets)}  # fmt: skip


def _not_exact(record: Record) -> Iterator[tuple[str, str, str | None]]:
    if record.replay is None:
        return
    page = str(record.trial.page)
    yield from ((page, request, None) for request in record.replay.missed)
    yield from (
        (page, substitution.asked, substitution.answered) for substitution in record.replay.inexact
    )


def _order(key: tuple[str, str, str | None], loads: int) -> tuple[bool, int, str, str, str]:
    page, request, answered = key
    return answered is not None, -loads, page, request, answered or ""
