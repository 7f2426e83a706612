"""A comparison in sentences, the same ones in every form of output; plain ASCII."""

from __future__ import annotations

from analysis.regression.compare.comparison import CellFinding, Comparison, Verdict
from analysis.stats.estimates import LEVEL
from analysis.words import clean, count
from testbed.wire.difference import describe_difference

SHOWN_PARTS = 6
VALUE_LENGTH = 40
PLAIN = str.maketrans({
    "\u2212": "-", "\u2013": "-", "\u2026": "...", "\u00b1": "+-",
    "\u201c": '"', "\u201d": '"', "\u00a0": " ",
})  # fmt: skip
HEADINGS: dict[Verdict, str] = {
    "different": "DIFFERENT",
    "inconclusive": "INCONCLUSIVE",
    "same": "SAME",
}


def plain(text: str) -> str:
    """``text`` in ASCII: what has no plain counterpart becomes an escape."""
    return text.translate(PLAIN).encode("ascii", "backslashreplace").decode()


def headline(comparison: Comparison) -> str:
    """The verdict and how many cells have which."""
    counts = {verdict: n for verdict, n in comparison.counts.items() if n}
    found = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
    return f"{HEADINGS[comparison.verdict]}: {count(len(comparison.cells), 'cell')}, {found}."


def rule(comparison: Comparison) -> str:
    """What decided."""
    if comparison.kernel == "virtual":
        if not comparison.parts and not comparison.knobs:
            return "Virtual kernel, equal environments: every bit must be the same."
        return (
            f"Virtual kernel: exact; a load time that moved by {comparison.min_effect_pct:g} % "
            "or more is different."
        )
    return (
        f"{comparison.kernel.capitalize()} kernel: different needs p <= {comparison.alpha:g} "
        f"(Mann-Whitney, Kolmogorov-Smirnov; Holm over all tests of all cells) and "
        f"{comparison.min_effect_pct:g} %."
    )


def under_test(comparison: Comparison) -> list[str]:
    """What differs on purpose, one line each; digests are cut."""
    knobs = [
        f"Under test: {name} ({clean(base)} in BASE, {clean(new)} in NEW)."
        for name, (base, new) in comparison.knobs.items()
    ]
    parts = [
        f"Under test: {part.name} ({_cut(part.base)} in BASE, {_cut(part.new)} in NEW)."
        for part in comparison.parts[:SHOWN_PARTS]
    ]
    rest = comparison.parts[SHOWN_PARTS:]
    more = [f"Under test: {count(len(rest), 'more part')} of the environment."] if rest else []
    return [*knobs, *parts, *more]


def name_cell(comparison: Comparison, cell: CellFinding) -> str:
    """A cell by the axes that tell it from others, as ``page=wsj rtt_ms=20``."""
    return " ".join(f"{name}={_knob(cell.axes.get(name))}" for name in comparison.names)


def verdict_words(comparison: Comparison, cell: CellFinding) -> str:
    """``slower``, ``faster`` or another word for a difference, else the verdict."""
    if cell.verdict != "different":
        return cell.verdict
    word = {"changed": "different"}.get(cell.direction or "changed", cell.direction or "")
    return f"{word} (allowed)" if comparison.counted(cell) == "same" else word


def size_of(cell: CellFinding) -> str:
    """How much later, with the interval: ``+12.3 ms (+0.85 %, 95 % interval +10.0..+14.1 ms)``."""
    if cell.effect is None:
        return ""
    effect = cell.effect
    inner = [f"{effect.pct:+.2f} %"] if effect.pct is not None else []
    if effect.interval_ms is not None:
        low, high, level = effect.interval_ms.low, effect.interval_ms.high, effect.interval_ms.level
        sure = f"{min(level, LEVEL) * 100:.0f} %"
        inner.append(f"{sure} interval {low:+.1f}..{high:+.1f} ms")
    told = f"{effect.ms:+.3f} ms" if abs(effect.ms) < 1.0 else f"{effect.ms:+.1f} ms"
    return f"{told} ({', '.join(inner)})" if inner else told


def sentence(comparison: Comparison, cell: CellFinding) -> str:
    """Everything about a cell but its packets, in one line."""
    size = size_of(cell)
    parts = [f"{verdict_words(comparison, cell)}{f', {size}' if size else ''}", clean(cell.reason)]
    if cell.more_runs and f"{cell.more_runs} more" not in cell.reason:
        parts.append(f"{count(cell.more_runs, 'more run')} on each side would tell")
    return f"{name_cell(comparison, cell)}: {'; '.join(parts)}."


def packet_lines(cell: CellFinding) -> list[str]:
    """The first packet that differs, in lines; or why none is shown; empty where none was asked."""
    if cell.packets is not None:
        return [f"Seed {cell.packets_seed}:", *describe_difference(cell.packets).splitlines()]
    return [f"No packet to show: {clean(cell.packets_note)}."] if cell.packets_note else []


def _knob(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else clean(str(value))


def _cut(value: str | None) -> str:
    if value is None:
        return "absent"
    words = clean(value)
    return words if len(words) <= VALUE_LENGTH else f"{words[:VALUE_LENGTH]}..."
