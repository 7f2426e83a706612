"""Layout of a ladder diagram: where its arrows go, and its text, none of which overlaps.

Time runs down.  Moments that are close together keep their distance to scale, so that a round trip
is seen; a long wait is folded.  What happens at one moment is drawn in its order, one below the
other, and every packet falls by the same height at least.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product

from analysis.plot.scales import shorten_px, text_px
from analysis.plot.sequence import Exchange, Rung, fold_alike, moments

PAD_PX = 14.0
WIDER = 1.15
"""How much wider than Arial the fonts are that a machine without it takes (DejaVu Sans)."""
HEAD_PX = 40.0
TIME_PX = 46.0
LANE_PX = 100.0
LEAST_GAP_PX = 330.0
LABEL_ROOM_PX = 64.0
REMARK_LIMIT_PX = 215.0
RULE_LIMIT_PX = 460.0
NEAR_PX = 13.0
ASCENT_PX, DESCENT_PX, ABOVE_PX, BELOW_PX = 9.5, 3.0, 4.5, 12.5
ONE_WAY_PX = 44.0
STEP_PX = 20.0
TURN_PX = 7.0
REMARK_PX = 16.0
RULE_PX = 22.0
LEAST_MOMENT_PX = 18.0
FOLD_PX = 56.0
FOLD_FROM = 2.6
"""A wait of more one-way delays than this is folded."""
STRETCHES = (1.0, 1.3, 1.7, 2.2)
"""How much more room arrows are given, one after the other, until no text is in the way."""
SHIFT_PX = 9.0
COVERED = 1000
"""So many arrows through a text are as bad as a text on another."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text: ``x``, ``y`` is its baseline's start, middle or end, about which it turns."""

    kind: str
    text: str
    x: float
    y: float
    anchor: str = "middle"
    degrees: float = 0.0
    bold: bool = False

    @property
    def corners(self) -> tuple[Point, ...]:
        """The corners of the box around it."""
        wide = text_px(self.text, bold=self.bold)
        left = {"start": 0.0, "middle": -wide / 2, "end": -wide}[self.anchor]
        cos, sin = math.cos(math.radians(self.degrees)), math.sin(math.radians(self.degrees))
        return tuple(
            (self.x + across * cos - down * sin, self.y + across * sin + down * cos)
            for across, down in (
                (left, -ASCENT_PX), (left + wide, -ASCENT_PX),
                (left + wide, DESCENT_PX), (left, DESCENT_PX),
            )
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stroke:
    """A packet's line; ``lost`` at its end, ``knot`` where it was changed, held or repeated."""

    points: tuple[Point, ...]
    rung: Rung
    lost: bool = False
    knot: Point | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """A ladder in px: lifelines at ``lanes``, and everything on and beside them.

    ``middle`` is where the middlebox is, if it did anything; ``folds`` are the heights at which
    time is folded, ``leaders`` lines from a remark to its host's lifeline.
    """

    width: float
    height: float
    top: float
    lanes: dict[str, float]
    middle: float | None
    strokes: tuple[Stroke, ...]
    texts: tuple[Text, ...]
    folds: tuple[float, ...]
    leaders: tuple[tuple[float, float, float], ...]


@dataclass(slots=True)
class _Heights:
    """The heights of everything, by its place in the exchange; ``moments`` by time in ms."""

    sent: dict[int, float] = field(default_factory=dict)
    landed: dict[tuple[int, int], float] = field(default_factory=dict)
    remarks: dict[int, float] = field(default_factory=dict)
    rules: dict[int, float] = field(default_factory=dict)
    moments: list[tuple[float, float]] = field(default_factory=list)
    folds: list[tuple[float, float]] = field(default_factory=list)
    bottom: float = 0.0


def lay_out(exchange: Exchange) -> Layout:
    """Return the layout of ``exchange``, stretched only as far as its texts need."""
    folded = replace(exchange, rungs=fold_alike(exchange.rungs, exchange.together_ms))
    layout: Layout | None = None
    for stretch in STRETCHES:
        layout = _Drawing(folded, stretch).layout()
        if not overlaps(layout) and not crossings(layout):
            break
    assert layout is not None  # noqa: S101  there is at least one stretch
    return layout


def overlaps(layout: Layout) -> list[tuple[str, str]]:
    """Return the pairs of texts that overlap."""
    return [
        (text.text, other.text)
        for place, text in enumerate(layout.texts)
        for other in layout.texts[place + 1 :]
        if _boxes_meet(text.corners, other.corners)
    ]


def crossings(layout: Layout) -> list[tuple[str, str]]:
    """Return the texts that an arrow crosses, each with the arrow's label."""
    return [
        (text.text, stroke.rung.label)
        for text in layout.texts
        for stroke in layout.strokes
        if _crosses(text.corners, stroke.points)
    ]


class _Drawing:
    """One attempt at a layout of an exchange."""

    def __init__(self, exchange: Exchange, stretch: float) -> None:
        self.exchange = exchange
        self.fall = ONE_WAY_PX * stretch
        self.step = STEP_PX * stretch
        self.lanes, self.inner, self.width = _place_lanes(exchange)
        self.middle = sum(self.inner) / 2
        self.texts: list[Text] = []

    def layout(self) -> Layout:
        exchange = self.exchange
        heights = self._heights()
        strokes = [s for n, f in enumerate(exchange.rungs) for s in self._strokes(n, f, heights)]
        outside = min(self.lanes.values()), max(self.lanes.values())
        leaders = []
        self._write_heads()
        for at_ms, y in heights.moments:
            self.texts.append(Text("time", _time(at_ms), PAD_PX + TIME_PX, y + 4, "end"))
        for place, remark in enumerate(exchange.remarks):
            y = heights.remarks[place]
            left = remark.host in exchange.left
            x = outside[0] - NEAR_PX if left else outside[1] + NEAR_PX
            text = remark_text(exchange, remark.host, remark.text)
            self.texts.append(Text("remark", text, x, y + 4, "end" if left else "start"))
            leaders.append((outside[0] - 9 if left else outside[1] + 9, self.lanes[remark.host], y))
        for place, rule in enumerate(exchange.rules):
            text = shorten_px(rule.text, RULE_LIMIT_PX)
            self.texts.append(Text("rule", text, self.middle, heights.rules[place] + 4))
        self._write_labels(strokes)
        for y, passed_ms in heights.folds:
            self._write_fold(y, passed_ms, strokes)
        return Layout(self.width, heights.bottom + PAD_PX, PAD_PX + HEAD_PX, self.lanes,
                      self.middle if exchange.touched else None, tuple(strokes), tuple(self.texts),
                      tuple(y for y, _ in heights.folds), tuple(leaders))  # fmt: skip

    def _write_heads(self) -> None:
        names = dict(self.lanes)
        if self.exchange.touched:
            names["middlebox"] = self.middle
        for host, x in names.items():
            below = self.exchange.below.get(host, "")
            y = PAD_PX + (13 if below else 20)
            self.texts.append(Text("host", host, x, y, bold=True))
            if below:
                self.texts.append(Text("address", below, x, y + 15))
        self.texts.append(Text("time", "ms", PAD_PX + TIME_PX, PAD_PX + 13, "end"))

    def _heights(self) -> _Heights:
        """Return the vertical position of every event."""
        exchange, heights = self.exchange, _Heights()
        events = sorted(_events(exchange), key=lambda event: event[0])
        spans = moments((at_ms for at_ms, *_ in events), exchange.together_ms)
        base = PAD_PX + HEAD_PX + 16.0
        bottom, before_ms = base, None
        for first_ms, last_ms in spans:
            simultaneous = [event for event in events if first_ms <= event[0] <= last_ms]
            if before_ms is not None:
                waited_ms = first_ms - before_ms
                folded = waited_ms > FOLD_FROM * exchange.one_way_ms
                scaled = ONE_WAY_PX * waited_ms / exchange.one_way_ms
                least = bottom + (FOLD_PX if folded else LEAST_MOMENT_PX)
                base = least if folded else max(least, base + scaled)
                for _, kind, place, _ in simultaneous:
                    if kind == "landed" and place in heights.sent and not folded:
                        base = max(base, heights.sent[place] + self.fall)
                        break
                if folded:
                    heights.folds.append((bottom + (base - bottom) / 2, waited_ms))
            bottom = self._stack(simultaneous, base, heights)
            known = [at_ms for at_ms, *_ in simultaneous if at_ms >= 0]
            if known:
                heights.moments.append((known[0], base))
            before_ms = last_ms
        heights.bottom = bottom + 16.0
        return heights

    def _stack(
        self, simultaneous: Sequence[tuple[float, str, int, int]], base: float, heights: _Heights
    ) -> float:
        """Place the events of one moment below ``base``; return their lowest position."""
        exchange = self.exchange
        floor = bottom = base
        arrows: dict[bool, tuple[float, str, str]] = {}
        remarks: dict[bool, float] = {}
        last: dict[str, float] = {}
        for _, kind, place, landing in simultaneous:
            if kind == "rule":
                y = floor if bottom == base else bottom + RULE_PX
                heights.rules[place] = y
                floor = y + RULE_PX
            elif kind == "remark":
                host = exchange.remarks[place].host
                side = host in exchange.left
                y = max(floor, remarks.get(side, -math.inf) + REMARK_PX, last.get(host, floor))
                heights.remarks[place] = remarks[side] = last[host] = y
            else:
                rung = exchange.rungs[place]
                host = rung.sender if kind == "sent" else rung.landings[landing].host
                side = host in exchange.left
                above, before, whose = arrows.get(side, (-math.inf, "", ""))
                turns = before == "landed" and kind == "sent" and whose == host
                y = max(floor, above + (TURN_PX if turns else self.step), last.get(host, floor))
                if kind == "sent":
                    heights.sent[place] = y
                    if not rung.landings:
                        bottom = max(bottom, y + self.fall / 2)
                else:
                    y = max(y, heights.sent[place] + self.fall)
                    heights.landed[place, landing] = y
                arrows[side] = y, kind, host
                last[host] = y
            bottom = max(bottom, y)
        return bottom

    def _strokes(self, place: int, rung: Rung, heights: _Heights) -> Iterator[Stroke]:
        start = self.lanes[rung.sender], heights.sent[place]
        middle = self._middle_of(start[0], self.lanes[rung.receiver])
        share = abs(middle - start[0]) / abs(self.lanes[rung.receiver] - start[0])
        knot = middle, start[1] + self.fall * share
        if not rung.landings:
            yield Stroke((start, knot), rung, lost=True)
        for number_of, landing in enumerate(rung.landings):
            end = self.lanes[landing.host], heights.landed[place, number_of]
            leaves = middle, end[1] - self.fall * (1 - share)
            if number_of:
                yield Stroke((knot, leaves, end), rung, knot=leaves)
            elif self.exchange.held(rung, landing) and leaves[1] > knot[1] + 2:
                yield Stroke((start, knot, leaves, end), rung, knot=leaves)
            else:
                straight = (start[1] + (end[1] - start[1]) * share) if share < 1 else end[1]
                touched = bool(landing.label) or len(rung.landings) > 1
                knot = middle, straight
                yield Stroke((start, end), rung, knot=knot if touched else None)

    def _middle_of(self, x1: float, x2: float) -> float:
        low, high = sorted((x1, x2))
        return self.middle if low < self.middle < high else (low + high) / 2

    def _write_labels(self, strokes: Sequence[Stroke]) -> None:
        """Write each packet's label along it: near its sender if there is a middlebox."""
        for place, stroke in enumerate(strokes):
            rung = stroke.rung
            again = bool(place) and strokes[place - 1].rung is rung
            other_strokes = [other for other in strokes if other is not stroke]
            if again:
                self._write_along(stroke.points[-2:], "the same again", other_strokes, nearer=False)
                continue
            self._write_along(stroke.points[:2], rung.label, other_strokes, nearer=True)
            changed = rung.landings[0].label if rung.landings else ""
            if changed:
                self._write_along(stroke.points[-2:], changed, other_strokes, nearer=False)

    def _write_along(
        self, points: Sequence[Point], label: str, other_strokes: Sequence[Stroke], *, nearer: bool
    ) -> None:
        """Write ``label`` above a line, or below; ``nearer`` to its start if something cuts it."""
        (x1, y1), (x2, y2) = points[0], points[-1]
        wide = text_px(label) / 2 + 6
        low, high = max(min(x1, x2), self.inner[0]), min(max(x1, x2), self.inner[1])
        if high - low < 2 * wide:
            low, high = min(x1, x2), max(x1, x2)
        if self.exchange.touched and low < self.middle < high:
            starts_left = (x1 < x2) == nearer
            low, high = (low, self.middle) if starts_left else (self.middle, high)
        places = [*_places(low, high, wide), *_places(min(x1, x2), max(x1, x2), wide)]
        degrees = math.degrees(math.atan2(y2 - y1, x2 - x1))
        degrees = degrees - 180 if degrees > 90 else degrees + 180 if degrees < -90 else degrees
        sin, cos = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
        tried: list[tuple[int, int, Text]] = []
        for away, x in product((ABOVE_PX, -BELOW_PX), places):
            y = y1 + (y2 - y1) * (x - x1) / (x2 - x1)
            text = Text("label", label, x + sin * away, y - cos * away, degrees=degrees)
            hits = self._hits(text, other_strokes)
            if not hits:
                self.texts.append(text)
                return
            tried.append((hits, len(tried), text))
        self.texts.append(min(tried)[2])

    def _write_fold(self, y: float, passed_ms: float, strokes: Sequence[Stroke]) -> None:
        """Write the length of a folded wait in the middle; beside the times if it is taken."""
        length = f"{duration(passed_ms)} later"
        free = (
            text
            for x in (self.middle, self.middle - 80, self.middle + 80)
            if not self._hits(text := Text("fold", length, x, y + 4), strokes)
        )
        beside = Text("fold", length, PAD_PX, y + 4, "start")
        self.texts.append(next(free, beside))

    def _hits(self, text: Text, strokes: Iterable[Stroke]) -> int:
        """Return a penalty for the texts and lines that ``text`` would cover."""
        corners = text.corners
        covered = sum(_boxes_meet(corners, other.corners) for other in self.texts)
        crossed = sum(_crosses(corners, stroke.points) for stroke in strokes)
        return covered * COVERED + crossed


def _events(exchange: Exchange) -> Iterator[tuple[float, str, int, int]]:
    """Yield time, kind, place in the exchange, and landing of each event."""
    for place, rule in enumerate(exchange.rules):
        yield rule.at_ms, "rule", place, 0
    for place, remark in enumerate(exchange.remarks):
        yield remark.at_ms, "remark", place, 0
    for place, rung in enumerate(exchange.rungs):
        yield rung.sent_ms, "sent", place, 0
        for number_of, landing in enumerate(rung.landings):
            yield landing.at_ms, "landed", place, number_of


def _place_lanes(exchange: Exchange) -> tuple[dict[str, float], tuple[float, float], float]:
    """Return the lifelines' places, those of the two around the middle, and the whole width."""
    labels = [rung.label for rung in exchange.rungs]
    labels += [landing.label for rung in exchange.rungs for landing in rung.landings]
    widest = max(map(text_px, labels), default=0.0)
    rules = max((text_px(shorten_px(r.text, RULE_LIMIT_PX)) for r in exchange.rules), default=0.0)
    room = widest + LABEL_ROOM_PX
    gap = max(LEAST_GAP_PX, 2 * room if exchange.touched else room + 60, rules + 30)
    beside = {True: 40.0, False: 40.0}
    for remark in exchange.remarks:
        side = remark.host in exchange.left
        text = remark_text(exchange, remark.host, remark.text)
        beside[side] = max(beside[side], WIDER * text_px(text) + NEAR_PX)
    x = PAD_PX + TIME_PX + 22 + beside[True]
    lanes = {}
    for host in exchange.left:
        lanes[host] = x
        x += LANE_PX
    inner_left = x - LANE_PX
    x = inner_left + gap
    for host in exchange.right:
        lanes[host] = x
        x += LANE_PX
    return lanes, (inner_left, inner_left + gap), x - LANE_PX + beside[False] + PAD_PX


def _places(low: float, high: float, half: float) -> Iterator[float]:
    """Yield where the middle of a text may be that is twice as wide as ``half``, the best first."""
    centre = (low + high) / 2
    yield centre
    for step in range(1, int(max((high - low) / 2 - half, 0.0) / SHIFT_PX) + 1):
        yield centre + step * SHIFT_PX
        yield centre - step * SHIFT_PX


def remark_text(exchange: Exchange, host: str, text: str) -> str:
    """Return the text of a remark: with its host if several hosts on its side have remarks."""
    side = exchange.left if host in exchange.left else exchange.right
    several = {remark.host for remark in exchange.remarks if remark.host in side} != {host}
    return shorten_px(f"{host}: {text}" if several else text, REMARK_LIMIT_PX)


def duration(milliseconds: float) -> str:
    """Return a time in the usual unit of its size."""
    for unit, size, least in (("h", 3_600_000, 1), ("min", 60_000, 2), ("s", 1000, 1)):
        if milliseconds >= size * least * 0.995:
            return f"{milliseconds / size:.3g} {unit}"
    return f"{milliseconds:.3g} ms"


def _time(at_ms: float) -> str:
    """Return a moment in ms; a tenth only where there are few."""
    places = 0 if at_ms >= 20 or abs(at_ms - round(at_ms)) < 0.05 else 1
    return f"{at_ms:,.{places}f}"


def _boxes_meet(outline_a: Sequence[Point], outline_b: Sequence[Point]) -> bool:
    """Return whether two convex outlines overlap (separating axis theorem)."""
    for outline in (outline_a, outline_b):
        for (x1, y1), (x2, y2) in pairwise([*outline, outline[0]]):
            across, down = y1 - y2, x2 - x1
            ours = [x * across + y * down for x, y in outline_a]
            theirs = [x * across + y * down for x, y in outline_b]
            if max(ours) <= min(theirs) or max(theirs) <= min(ours):
                return False
    return True


def _crosses(corners: Sequence[Point], points: Sequence[Point]) -> bool:
    return any(_boxes_meet(corners, (start, end)) for start, end in pairwise(points))
