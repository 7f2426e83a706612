"""A comparison in words: sentences and columns that every form shares, and the terminal's text.

The terminal shows the worst cells first and the verdict last; sentences are plain ASCII.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, get_args

from analysis.formats.lines import join_lines, wrap
from analysis.records.accounts import describe_moved
from analysis.records.kind import default_beside, is_default
from analysis.records.metric import Metric
from analysis.records.results import Identity
from analysis.stats.estimates import LEVEL, Interval
from analysis.tables.columns import Column, axis_columns, render_columns
from analysis.verdicts.compare.attribution import Attributed
from analysis.verdicts.compare.clocks import REASONS
from analysis.verdicts.compare.comparison import (
    EXIT_CODES,
    VIRTUAL,
    CellFinding,
    Comparison,
    Direction,
    Side,
    Verdict,
)
from analysis.verdicts.compare.draws import DEALS
from analysis.verdicts.compare.estimated import DISTANCE, RANKS
from analysis.verdicts.compare.kernels import Overview, Parting, Saving
from analysis.verdicts.compare.kind import verdicts_of
from analysis.words import capitalised, clean, count
from testbed.capture.difference import describe_difference
from testbed.experiment.label import label_axes

_T = TypeVar("_T")
WIDTH = 100
MIN_WIDTH = 20
MAX_ROWS = 60
MAX_SENTENCES = 10
MAX_PACKETS = 3
SHOWN_PARTS = 6
VALUE_LENGTH = 40
MISSING = "-"
HEADINGS: dict[Verdict, str] = {"different": "DIFFERENT", "inconclusive": "INCONCLUSIVE",
                                "same": "SAME"}  # fmt: skip
DRAWN: dict[Verdict, str] = {"different": "beyond the spread of draws",
                             "inconclusive": "of too few draws or no number",
                             "same": "within the spread of draws"}  # fmt: skip
PARTINGS: dict[Parting, str] = {"acknowledgement": "TCP acknowledges at another time in {}",
                                "request": "the client asks in another order in {}",
                                "other": "another packet comes in {}",
                                "none": "the packets come in the same order in {}"}  # fmt: skip
SIZES: dict[Direction, str] = {"slower": "larger", "faster": "smaller"}
"""Of what is no time."""
SHORT: dict[Parting, str] = {"acknowledgement": "ack", "request": "request"}


def render_text(comparison: Comparison, width: int = WIDTH) -> str:
    """Return the comparison in lines of at most ``width`` characters, all of them ASCII.

    Columns that do not fit are left out, tests and intervals first; packets are never cut.
    """
    room = max(width, MIN_WIDTH)
    cells = (*comparison.worst_first, *comparison.gains)
    lines = render_columns(columns_of(comparison, cells[:MAX_ROWS]), room)
    if len(cells) > MAX_ROWS:
        lines.append(f"... and {len(cells) - MAX_ROWS} more rows: see --json")
    lines.append("")
    shown = [cell for cell in cells if cell.verdict != "same" or cell.packets is not None]
    for place, cell in enumerate(shown[:MAX_SENTENCES]):
        lines += wrap(sentence(comparison, cell), room)
        lines += _packets(cell, room) if place < MAX_PACKETS else []
    if len(shown) > MAX_SENTENCES:
        lines.append(f"... and {len(shown) - MAX_SENTENCES} more: see --json")
    notes = [*notes_of(comparison), headline(comparison)]
    lines += [part for note in notes for part in wrap(note, room)]
    return join_lines(lines)


def columns_of(comparison: Comparison, cells: Sequence[CellFinding]) -> list[Column]:
    """Return the columns of the table of ``cells``, the verdict last."""
    metric, signed = comparison.metric, _signed(comparison)
    effects = [cell.effect for cell in cells]
    changes = [cell.change for cell in cells]
    columns = axis_columns(comparison.names, [cell.axes for cell in cells])
    columns += [
        Column(metric.with_unit("base"), [median_of(comparison, cell.base) for cell in cells], 2),
        Column(metric.with_unit("new"), [median_of(comparison, cell.new) for cell in cells], 2),
        Column(metric.with_unit("diff"), _numbers(effects, lambda e: e.ms, signed), 1),
        Column("diff %", _numbers(effects, lambda e: e.pct, "+.2f")),
    ]
    if comparison.kernel != VIRTUAL or comparison.drawn:
        intervals = [_interval(e.interval_ms if e else None, signed) for e in effects]
        columns.append(Column(metric.with_unit("interval"), intervals, 3))
    if comparison.kernel != VIRTUAL and not comparison.clocks_differ:
        columns += [
            Column("p MW", [_p_value(cell, RANKS) for cell in cells], 4),
            Column("p KS", [_p_value(cell, DISTANCE) for cell in cells], 4),
        ]
    if comparison.drawn:
        columns.append(Column("p", [_p_value(cell, DEALS) for cell in cells], 4))
    if any(changes):
        intervals = [_interval(c.pct.interval if c else None, "+.2f") for c in changes]
        columns += [
            *([Column("interval %", intervals, 4)] if {*intervals} != {MISSING} else []),
            Column("packets", [_pair(c.packets if c else None) for c in changes], 3),
            Column("resent", [_pair(c.retransmits if c else None) for c in changes], 3),
            Column("parts at", [first_packet(cell) for cell in cells], 1),
        ]
    if any(cell.attribution for cell in cells):
        words = [cell.attribution.words if cell.attribution else MISSING for cell in cells]
        columns.append(Column("effect", words, 2, left=True))
    columns += _clock_columns(cells)
    if any(moves := [moved_of(cell) for cell in cells]):
        columns.append(Column("spent on", [each or MISSING for each in moves], 5, left=True))
    columns.append(Column("n", [_counts(cell) for cell in cells], 3))
    verdicts = [verdict_words(comparison, cell) for cell in cells]
    return [*columns, Column("verdict", verdicts, left=True)]


def _clock_columns(cells: Sequence[CellFinding]) -> list[Column]:
    """What accounts for a difference between virtual and real time; all in ms."""
    clocks = [cell.clocks for cell in cells]
    if not any(clocks):
        return []
    return [
        Column("CPU <=", _numbers(clocks, lambda c: c.cpu_ms, ".0f"), 1),
        Column("all CPU", _numbers(clocks, lambda c: c.new.all_ms, ".0f"), 4),
        Column("unwaited", _numbers(clocks, lambda c: c.new.unwaited_ms, ".1f"), 4),
        Column("in base", _numbers(clocks, lambda c: c.base.unwaited_ms, ".1f"), 4),
        Column("link <=", _numbers(clocks, lambda c: c.link_ms, ".1f"), 3),
        Column("late", _numbers(clocks, lambda c: c.new.worst_lateness_ms, ".2f"), 3),
        Column("slack <=", _numbers(clocks, lambda c: c.slack_ms, ".1f"), 3),
    ]


def headline(comparison: Comparison) -> str:
    """Return the verdict and how many cells have which."""
    counts = {verdict: n for verdict, n in comparison.counts.items() if n}
    words = {verdict: f"{n} {_within(comparison, verdict)}" for verdict, n in counts.items()}
    other = sum(cell.verdict == "same" and not all(t.same for t in cell.trials)
                for cell in comparison.cells)  # fmt: skip
    if other:
        words["same"] += f" ({other} with other bits)"
    gains = [comparison.counted(cell) for cell in comparison.gains]
    told = [f"{gains.count(v)} {_within(comparison, v)}" for v in EXIT_CODES if v in gains]
    tally = ", ".join(words.values())
    tally += f"; {count(len(gains), 'gain')}, {', '.join(told)}" if gains else ""
    return f"{_heading(comparison)}: {count(len(comparison.cells), 'cell')}, {tally}."


def _heading(comparison: Comparison) -> str:
    """Return the verdict; of two pages under test also which one is faster, if one is in all."""
    heading, pages = HEADINGS[comparison.verdict], comparison.knobs.get("page")
    ways = {c.direction or "changed" for c in comparison.cells if c.verdict == "different"}
    if pages is None or comparison.verdict != "different" or ways not in ({"faster"}, {"slower"}):
        return heading
    (way,) = ways
    word = way if comparison.metric.is_time else SIZES[way]
    return f"{clean(pages[1])} IS {word.upper()}"


def _within(comparison: Comparison, verdict: Verdict) -> str:
    return DRAWN[verdict] if comparison.drawn else verdict


def notes_of(comparison: Comparison) -> list[str]:
    """Return what a reader must know beside the cells: what is under test, and what decided."""
    missed = f"The kernel in NEW has not all of what was changed: {comparison.misses}."
    return [*_judged_by(comparison.metric), *summary(comparison), *attributed(comparison),
            *([missed] if comparison.misses else []), *under_test(comparison), *comparison.notes,
            *_ranks_of(comparison), rule(comparison)]  # fmt: skip


def _judged_by(metric: Metric) -> list[str]:
    """Return a sentence that names the metric where it is not the page load time."""
    if is_default(metric):
        return []
    grain = f"; two that are within {metric.with_unit(f'{metric.grain:g}')} may be equal"
    usual = default_beside(metric).label
    return [
        f"Loads are judged by {metric.label} ({metric.name}), not by {usual}"
        f"{grain * bool(metric.grain)}."
    ]


def rule(comparison: Comparison) -> str:
    """Return what decided."""
    least = f"{comparison.min_effect_pct:g} %"
    bits = "Virtual kernel, equal environments: every bit must be the same."
    exact = comparison.kernel == VIRTUAL and not comparison.parts and not comparison.knobs
    own_rule = verdicts_of(comparison.kind).rule
    if own_rule:
        return bits if exact else own_rule
    if comparison.clocks_differ:
        browser = any(cell.clocks and cell.clocks.cpu_ms is not None for cell in comparison.cells)
        explained = ", or within that and the browser's busy main thread (explained)" * browser
        return (
            "Virtual against real time: same needs the whole interval of the difference within "
            f"{least} (agrees){explained}."
        )
    if comparison.drawn:
        return (
            f"Other environments, so seeds are draws: different needs p <= {comparison.alpha:g} "
            f"(seeds dealt anew, corrected for all cells and gains) and {least}; an interval is of "
            "its own row alone."
        )
    if comparison.kernel == VIRTUAL:
        if exact:
            return bits
        return (
            f"Virtual kernel: exact; a {comparison.metric.word} that moved by {least} or more is "
            "different."
        )
    return (
        f"{comparison.kernel.capitalize()} kernel: different needs p <= {comparison.alpha:g} "
        f"(Mann-Whitney, Kolmogorov-Smirnov; Holm over all tests of all cells) and {least}."
    )


def _ranks_of(comparison: Comparison) -> list[str]:
    """Return whether the new environment is as one more draw of every cell."""
    if comparison.uniform is None:
        return []
    verb = "are" if comparison.uniform > comparison.alpha else "are not"
    return [f"Ranks of NEW's draws among BASE's {verb} uniform (p = {comparison.uniform:.2g})."]


def under_test(comparison: Comparison) -> list[str]:
    """Return what differs on purpose, one line each; digests are cut."""
    kernels, parts = comparison.kernels, comparison.parts
    lines = [
        f"Under test: {name} ({clean(base)} in BASE, {clean(new)} in NEW)."
        for name, (base, new) in comparison.knobs.items()
    ]
    if kernels is not None:
        base, new = name_kernel(kernels.base), name_kernel(kernels.new)
        lines.append(f"Under test: kernel ({base} in BASE, {new} in NEW).")
        parts = tuple(part for part in parts if not part.name.startswith("kernel."))
    lines += [
        f"Under test: {part.name} ({_cut(part.base)} in BASE, {_cut(part.new)} in NEW)."
        for part in parts[:SHOWN_PARTS]
    ]
    rest = parts[SHOWN_PARTS:]
    more = [f"Under test: {count(len(rest), 'more part')} of the environment."] if rest else []
    return [*lines, *more]


def name_kernel(identity: Identity) -> str:
    """Return a kernel's name, as ``virtual 7.3``."""
    return clean(f"{identity.kernel or 'none'} {identity.kernel_version or ''}")


def label_cell(names: Iterable[str], axes: Mapping[str, Any]) -> str:
    """Return a cell by ``names`` of its axes, as ``page=wsj rtt_ms=20``."""
    return clean(label_axes({name: axes.get(name) for name in names}))


def name_cell(comparison: Comparison, cell: CellFinding) -> str:
    """Return a cell by the axes that distinguish it."""
    return label_cell(comparison.names, cell.axes)


def verdict_words(comparison: Comparison, cell: CellFinding) -> str:
    """Return ``slower``, ``faster`` or another word for a difference, else the verdict."""
    word: str = cell.word or cell.verdict
    if cell.verdict == "same" and comparison.drawn:
        return "within"
    if cell.verdict != "different":
        return word
    if cell.word is None and cell.direction in ("slower", "faster"):
        word = cell.direction if comparison.metric.is_time else SIZES[cell.direction]
    return f"{word} (allowed)" if comparison.counted(cell) == "same" else word


def size_of(comparison: Comparison, cell: CellFinding) -> str:
    """Return how much later: ``+12.3 ms (+0.85 %, 95 % interval +10.0..+14.1 ms)``."""
    if cell.effect is None:
        return ""
    effect = cell.effect
    inner = [f"{effect.pct:+.2f} %"] if effect.pct is not None else []
    if effect.interval_ms is not None:
        level = f"{min(effect.interval_ms.level, LEVEL) * 100:.0f} %"
        interval = _interval(effect.interval_ms, _signed(comparison))
        inner.append(f"{level} interval {comparison.metric.with_unit(interval)}")
    places = comparison.metric.places if abs(effect.ms) >= 1.0 else max(3, comparison.metric.places)
    size = comparison.metric.with_unit(f"{effect.ms:+.{places}f}")
    return f"{size} ({', '.join(inner)})" if inner else size


def sentence(comparison: Comparison, cell: CellFinding) -> str:
    """Return everything about a cell but its packets, in one line."""
    size = size_of(comparison, cell)
    parts = [f"{verdict_words(comparison, cell)}{f', {size}' if size else ''}", clean(cell.reason)]
    if cell.more_runs and f"{cell.more_runs} more" not in cell.reason:
        parts.append(f"{count(cell.more_runs, 'more run')} on each side would tell")
    if spent := moved_of(cell):
        parts.append(f"the mean load spent {spent}")
    return f"{name_cell(comparison, cell)}: {'; '.join(parts)}."


def moved_of(cell: CellFinding) -> str:
    """Return on what loads spend longer, as ``+38 ms: +31 recovery, +7 window``; or nothing."""
    return describe_moved(cell.moved_ms)


def packet_lines(cell: CellFinding) -> list[str]:
    """Return the first packet that differs, in lines, or why none is shown; empty if unasked."""
    if cell.packets is not None:
        return [f"Seed {cell.packets_seed}:", *describe_difference(cell.packets).splitlines()]
    return [f"No packet to show: {clean(cell.packets_note)}."] if cell.packets_note else []


def first_packet(cell: CellFinding) -> str:
    """Return the number of the first packet that is another one and its kind, as ``#7 ack``.

    A packet that comes much later or sooner is another one too.  Where only other fields or times
    differ, it is the number of the first such packet, in brackets.
    """
    difference = cell.packets
    if difference is None or cell.change is None:
        return MISSING
    number = f"#{difference.telling.number}"
    if not (difference.order or difference.jump):
        return f"({number})"
    return f"{number} {SHORT.get(cell.change.parting or 'none', '')}".rstrip()


def summary(comparison: Comparison) -> list[str]:
    """Return what two kernels under test make of all cells together, in sentences."""
    kernels, cells = comparison.kernels, comparison.cells
    if kernels is None:
        return []
    lines = []
    if comparison.overview is not None:
        faster, slower = (
            sum(c.verdict == "different" and c.direction == way for c in cells)
            for way in ("faster", "slower")
        )
        equal = sum(bool(c.trials) and all(p.base_ms == p.new_ms for p in c.trials) for c in cells)
        lines.append(
            f"{faster + slower} of {count(len(cells), 'cell')} changed by "
            f"{comparison.min_effect_pct:g} % or more: {faster} faster on "
            f"{name_kernel(kernels.new)}, {slower} slower; {equal} equal to the bit in "
            f"{comparison.metric.word}."
        )
        if len(comparison.overviews) > 1:
            what = capitalised(comparison.metric.label)
            lines.append(f"{what} changed by {_spread(comparison.overview)}.")
        lines += [_describe_client(comparison, *each) for each in comparison.overviews.items()]
    for word, n in comparison.words.items():
        reason = REASONS.get(word, "").format(comparison.metric.words, comparison.min_effect_pct)
        why = f": {reason}" if reason else ""
        is_are = "is" if n == 1 else "are"
        lines.append(f"{count(n, 'cell')} of {len(cells)} {is_are} '{word}'{why}.")
    lines += _saved(comparison, kernels.savings)
    missing = sum(not cell.has_numbers for cell in cells)
    if missing:
        what = "proven load" if is_default(comparison.metric) else comparison.metric.label
        lines.append(f"{count(missing, 'cell')} without a {what} on one of the kernels.")
    return lines


def attributed(comparison: Comparison) -> list[str]:
    """Return how many cells of two virtual kernels came to what, and what else may be why."""
    verdicts = [cell.attribution.verdict for cell in comparison.cells if cell.attribution]
    if not verdicts:
        return []
    counts = ", ".join(
        f"{verdicts.count(verdict)} {verdict}"
        for verdict in get_args(Attributed)
        if verdict in verdicts
    )
    others = [part.name for part in comparison.parts if not part.name.startswith("kernel.")]
    others += comparison.knobs
    also = (
        f" More than the kernel differs ({', '.join(map(clean, others[:SHOWN_PARTS]))}): it need "
        "not be the kernel's doing."
        if others else ""
    )  # fmt: skip
    return [f"What the cells came to: {counts}.{also}"]


def _describe_client(comparison: Comparison, client: str, overview: Overview) -> str:
    with_unit = comparison.metric.with_unit
    largest = comparison.cells[overview.largest]
    moved = largest.change.ms.value if largest.change else None
    partings = [
        words.format(count(overview.partings[parting], "cell"))
        for parting, words in PARTINGS.items()
        if parting in overview.partings
    ]
    apart = f" Where the loads part first: {', '.join(partings)}." if partings else ""
    return (
        f"{clean(client)}: {_spread(overview)}; most in {name_cell(comparison, largest)}: "
        f"{with_unit(median_of(comparison, largest.base))} in BASE, "
        f"{with_unit(median_of(comparison, largest.new))} in NEW "
        f"({with_unit(_number(moved, _signed(comparison)))}).{apart}"
    )


def _spread(overview: Overview) -> str:
    return (
        f"{overview.median:+.2f} % in the median of {count(overview.cells, 'cell')}, "
        f"from {overview.low:+.2f} to {overview.high:+.2f} %"
    )


def _saved(comparison: Comparison, savings: Sequence[Saving]) -> list[str]:
    gaps = [saving.difference_ms for saving in savings]
    if not gaps:
        return []
    with_unit = comparison.metric.with_unit
    median, low, high = (
        f"{value:{_signed(comparison)}}"
        for value in (statistics.median(gaps), min(gaps), max(gaps))
    )
    return [
        f"What Fast Open saves changed by {with_unit(median)} in the median "
        f"({low} to {with_unit(high)})."
    ]


def median_of(comparison: Comparison, side: Side | None) -> str:
    """Return the median of a side without its unit, or a dash."""
    return _number(side.median_ms if side else None, f".{comparison.metric.places}f")


def _signed(comparison: Comparison) -> str:
    return f"+.{comparison.metric.places}f"


def _number(value: float | None, how: str) -> str:
    return MISSING if value is None else f"{value:{how}}"


def _numbers(values: Sequence[_T | None], ask: Callable[[_T], float | None], how: str) -> list[str]:
    return [_number(None if value is None else ask(value), how) for value in values]


def _interval(interval: Interval | None, how: str = "+.1f") -> str:
    return f"{interval.low:{how}}..{interval.high:{how}}" if interval else MISSING


def _p_value(cell: CellFinding, test: str) -> str:
    return f"{cell.significance[test].corrected:.2g}" if test in cell.significance else MISSING


def _pair(numbers: tuple[int, int] | None) -> str:
    return "{}/{}".format(*numbers) if numbers else MISSING


def _counts(cell: CellFinding) -> str:
    sides = (len(side.values) if side else 0 for side in (cell.base, cell.new))
    return "/".join(map(str, sides))


def _cut(value: str | None) -> str:
    if value is None:
        return "absent"
    words = clean(value)
    return words if len(words) <= VALUE_LENGTH else f"{words[:VALUE_LENGTH]}..."


def _packets(cell: CellFinding, room: int) -> list[str]:
    lines = packet_lines(cell)
    if cell.packets is None:
        lines = [part for line in lines for part in wrap(line, room - 2)]
    return [f"  {line}" for line in lines]
