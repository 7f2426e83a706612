"""Sequence of packets between hosts, and what their applications did: what a ladder shows.

Times are in ms since the first packet; hosts are named as their lifelines are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

LEAST_ALIKE = 4
"""So many packets that are alike are drawn as the first of them and how many follow."""
TOGETHER = 0.08
"""Times that are no further apart than this share of a one-way delay are one moment."""


@dataclass(frozen=True, slots=True)
class Landing:
    """Where and when a packet arrived; ``label`` is its new label, if a middlebox changed it."""

    host: str
    at_ms: float
    label: str = ""


@dataclass(frozen=True, slots=True)
class Rung:
    """A packet, or ``more`` packets that are like the one before.

    ``kind`` is the same for packets that are alike: the label without what counts on.
    ``connection`` is the number of its connection, from 1, and ``receiver`` whom it was for, which
    is where it was going if it was lost: then it has no landings.
    """

    sender: str
    receiver: str
    sent_ms: float
    label: str
    landings: tuple[Landing, ...] = ()
    connection: int = 1
    kind: str = ""
    more: int = 0


@dataclass(frozen=True, slots=True)
class Remark:
    """What an application did or saw, beside its host's lifeline."""

    host: str
    at_ms: float
    text: str


@dataclass(frozen=True, slots=True)
class BoxRule:
    """A rule of the middlebox, from ``at_ms`` on."""

    at_ms: float
    text: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """All packets between some hosts, and what happened at them.

    ``left`` and ``right`` are the hosts on either side of the middle, from the outside in on the
    left and from the inside out on the right; ``below`` is a line under a host's name.
    ``one_way_ms`` is how long a packet takes.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    one_way_ms: float
    rungs: tuple[Rung, ...]
    remarks: tuple[Remark, ...] = ()
    rules: tuple[BoxRule, ...] = ()
    below: dict[str, str] = field(default_factory=dict)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts from left to right."""
        return (*self.left, *self.right)

    @property
    def together_ms(self) -> float:
        """Times that are no further apart are one moment."""
        return self.one_way_ms * TOGETHER

    def held(self, rung: Rung, landing: Landing) -> bool:
        """Return whether something on the way held a packet back."""
        return landing.at_ms - rung.sent_ms > self.one_way_ms + self.together_ms

    @property
    def touched(self) -> bool:
        """Whether the middlebox did anything, or was to."""
        return bool(self.rules) or any(
            len(rung.landings) != 1 or rung.landings[0].label or self.held(rung, rung.landings[0])
            for rung in self.rungs
        )


def moments(times_ms: Iterable[float], together_ms: float) -> list[tuple[float, float]]:
    """Return the first and last time of each group of times that follow each other closely."""
    spans: list[tuple[float, float]] = []
    for at_ms in sorted(times_ms):
        if spans and at_ms - spans[-1][1] <= together_ms:
            spans[-1] = spans[-1][0], at_ms
        else:
            spans.append((at_ms, at_ms))
    return spans


def fold_alike(rungs: Sequence[Rung], together_ms: float) -> tuple[Rung, ...]:
    """Return ``rungs`` with similar packets sent together folded: the first, and a count.

    Similar packets are of one kind, from one sender to the same hosts, on any connection.
    """
    spans = moments((rung.sent_ms for rung in rungs), together_ms)
    groups: dict[tuple[object, ...], list[Rung]] = {}
    for rung in rungs:
        moment = next(n for n, (_, last) in enumerate(spans) if rung.sent_ms <= last)
        landed = tuple((landing.host, bool(landing.label)) for landing in rung.landings)
        kind = rung.kind or rung.label
        key = (moment, rung.sender, rung.receiver, kind, landed)
        groups.setdefault(key, []).append(rung)
    return tuple(sorted(_fold(groups.values()), key=lambda rung: rung.sent_ms))


def _fold(groups: Iterable[list[Rung]]) -> Iterator[Rung]:
    for group in groups:
        if len(group) < LEAST_ALIKE:
            yield from group
        else:
            last = group[-1]
            connections = {rung.connection for rung in group}
            counted = len(connections) == 1 and last.label != group[0].label
            label = (
                f"{len(group) - 1} more, to {last.label.removeprefix(f'{last.connection}: ')}"
                if counted
                else ""
            )
            yield group[0]
            yield replace(
                group[1],
                label=label or f"{len(group) - 1} more like this",
                landings=tuple(replace(landing, label="") for landing in group[1].landings),
                more=len(group) - 1,
            )
