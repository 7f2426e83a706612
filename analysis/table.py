"""The results table: off/on pairs where Fast Open was swept, else one row per condition.

The shape is that of Table 1 of the TCP Fast Open paper (CoNEXT 2011): load time without and
with the mechanism, and the improvement in percent of the time without.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from analysis.cells import Axes, Cell, Key, Spread, key_of, spread_of, unusual_axes, varying_axes
from analysis.coverage import Coverage
from analysis.reference import Published, Reference

PAIR_AXIS = "tfo"
ALWAYS_SHOWN = ("page", "rtt_ms")
SHOWN_UNLESS_DEFAULT = ("protocol", "tls_version", "randomness", "allow_misses")


@dataclass(frozen=True, slots=True)
class Pair:
    """The same condition without and with Fast Open; an arm may be missing."""

    axes: Axes
    off: Cell | None
    on: Cell | None
    paper: Published | None

    @property
    def arms(self) -> tuple[tuple[str, Cell | None], ...]:
        """Both arms by the name that messages use."""
        return ("off", self.off), ("on", self.on)

    @property
    def seeds(self) -> frozenset[tuple[int, int]]:
        """The (seed, repetition) that are proven in both arms: only these are compared."""
        off = self.off.plt_by_seed if self.off else {}
        on = self.on.plt_by_seed if self.on else {}
        return frozenset(off.keys() & on.keys())

    @property
    def plt_off(self) -> Spread | None:
        """Load times in ms without Fast Open, over the common seeds if there are any."""
        return self._arm(self.off)

    @property
    def plt_on(self) -> Spread | None:
        """Load times in ms with Fast Open, over the common seeds if there are any."""
        return self._arm(self.on)

    @property
    def improvement_pct(self) -> Spread | None:
        """Each common seed's own improvement in percent of the time without Fast Open."""
        if self.off is None or self.on is None:
            return None
        off, on = self.off.plt_by_seed, self.on.plt_by_seed
        return spread_of(
            (off[seed] - on[seed]) / off[seed] * 100.0 for seed in self.seeds if off[seed] > 0
        )

    @property
    def coverage(self) -> Coverage:
        """How the server answered in both arms."""
        return sum((cell.coverage for _, cell in self.arms if cell), Coverage())

    @property
    def status(self) -> str:
        """``proven`` when both arms are; else what happened, arm by arm."""
        words = [(name, cell.status if cell else "not planned") for name, cell in self.arms]
        wrong = [f"{name}: {word}" for name, word in words if word != "proven"]
        return "; ".join(wrong) or "proven"

    @property
    def problems(self) -> tuple[str, ...]:
        """What lab and wire held against either arm."""
        return tuple(
            f"{name}: {problem}" for name, cell in self.arms if cell for problem in cell.problems
        )

    def _arm(self, cell: Cell | None) -> Spread | None:
        if cell is None or not self.seeds:
            return cell.plt_ms if cell else None
        times = cell.plt_by_seed
        return spread_of(times[seed] for seed in self.seeds)


@dataclass(frozen=True, slots=True)
class Table:
    """All rows of an experiment: pairs where Fast Open was swept, else cells."""

    cells: tuple[Cell, ...]
    pairs: tuple[Pair, ...]
    axes: tuple[str, ...]

    @property
    def paired(self) -> bool:
        """Whether the rows are off/on pairs."""
        return bool(self.pairs)

    @property
    def coverage(self) -> Coverage:
        """How the server answered, over all cells."""
        return sum((cell.coverage for cell in self.cells), Coverage())


def make_table(cells: Sequence[Cell], reference: Reference | None) -> Table:
    """Arrange ``cells`` as rows.

    The axes are page, RTT, whatever else varies, and how pages were replayed if not as recorded.
    """
    varying = varying_axes(cells)
    unusual = unusual_axes(cells, SHOWN_UNLESS_DEFAULT)
    paired = PAIR_AXIS in varying
    axes = (
        *ALWAYS_SHOWN,
        *(n for n in varying if n not in ALWAYS_SHOWN and n != PAIR_AXIS),
        *(n for n in unusual if n not in varying),
    )
    return Table(tuple(cells), _pairs(cells, reference) if paired else (), axes)


def _pairs(cells: Sequence[Cell], reference: Reference | None) -> tuple[Pair, ...]:
    arms: dict[Key, dict[bool, Cell]] = {}
    for cell in cells:
        key = key_of(cell.axes, without=(PAIR_AXIS,))
        arms.setdefault(key, {})[bool(cell.axes[PAIR_AXIS])] = cell
    pairs = []
    for pair in arms.values():
        axes = {n: v for n, v in next(iter(pair.values())).axes.items() if n != PAIR_AXIS}
        published = reference.find(axes) if reference else None
        pairs.append(Pair(axes, pair.get(False), pair.get(True), published))
    return tuple(pairs)


def table_rows(table: Table) -> list[dict[str, Any]]:
    """Return the rows of ``table.csv`` with exact numbers; a missing value is ``None``."""
    if table.paired:
        return [_pair_row(pair, table.axes) for pair in table.pairs]
    return [_cell_row(cell, table.axes) for cell in table.cells]


def render_csv(table: Table) -> str:
    """Return ``table.csv``: ms to the nanosecond, percent to four places, missing values empty."""
    rows = table_rows(table)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if rows:
        writer.writerow(rows[0])
    for row in rows:
        writer.writerow(_format(name, value) for name, value in row.items())
    return text.getvalue()


def _pair_row(pair: Pair, axes: Sequence[str]) -> dict[str, Any]:
    gain, paper = pair.improvement_pct, pair.paper
    return {
        **{name: pair.axes.get(name) for name in axes},
        "plt_off_ms": pair.plt_off.median if pair.plt_off else None,
        "plt_on_ms": pair.plt_on.median if pair.plt_on else None,
        "improvement_pct": gain.median if gain else None,
        "paper_plt_off_s": paper.plt_off_s if paper else None,
        "paper_plt_on_s": paper.plt_on_s if paper else None,
        "paper_improvement_pct": paper.improvement_pct if paper else None,
        **_spread_columns("plt_off", "ms", pair.plt_off),
        **_spread_columns("plt_on", "ms", pair.plt_on),
        **_spread_columns("improvement", "pct", gain),
        "n": len(pair.seeds),
        "planned_off": pair.off.planned if pair.off else 0,
        "planned_on": pair.on.planned if pair.on else 0,
        "proven_off": len(pair.off.proven) if pair.off else 0,
        "proven_on": len(pair.on.proven) if pair.on else 0,
        **_coverage_columns(pair.coverage),
        "status": pair.status,
        "problems": " | ".join(pair.problems),
    }


def _cell_row(cell: Cell, axes: Sequence[str]) -> dict[str, Any]:
    plt = cell.plt_ms
    return {
        **{name: cell.axes.get(name) for name in axes},
        "plt_ms": plt.median if plt else None,
        **_spread_columns("plt", "ms", plt),
        "planned": cell.planned,
        "proven": len(cell.proven),
        **_coverage_columns(cell.coverage),
        "status": cell.status,
        "problems": " | ".join(cell.problems),
    }


def _spread_columns(name: str, unit: str, spread: Spread | None) -> dict[str, float | None]:
    return {
        f"{name}_min_{unit}": spread.low if spread else None,
        f"{name}_max_{unit}": spread.high if spread else None,
    }


def _coverage_columns(coverage: Coverage) -> dict[str, int]:
    return {
        "requests_exact": coverage.exact,
        "requests_inexact": coverage.inexact,
        "requests_missed": coverage.missed,
        "requests_not_made": coverage.not_made,
    }


def _format(column: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return trimmed(float(value), 4 if column.endswith("_pct") else 6)
    # Surrogates cannot be written, and a line break would end the row for simpler readers.
    text = str(value).encode("utf-8", "replace").decode()
    return " ".join(text.split())


def trimmed(value: float, places: int) -> str:
    """Return ``value`` with at most ``places`` decimals and no trailing zeros."""
    text = f"{value:.{places}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text
