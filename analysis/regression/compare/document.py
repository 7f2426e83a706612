"""A comparison as JSON-ready values, unrounded; a missing value is ``None``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, TypedDict

from analysis.records.cells import Axes
from analysis.regression.compare.comparison import (
    CellFinding,
    Chance,
    Comparison,
    Direction,
    Effect,
    Part,
    Side,
    TrialPair,
    Verdict,
)
from analysis.regression.compare.phrases import headline, name_cell
from testbed.wire.difference import PacketDifference, describe_difference

SCHEMA_VERSION = 1
_Fields = dict[str, Any]
"""Of the class that it is annotated with, by name."""


class BothValues(TypedDict):
    """A knob that is under test."""

    base: str
    """Its value in the base."""
    new: str
    """Its value in the new results."""


class UnderTest(TypedDict):
    """What differs between the two folders because it is under test (`--across`)."""

    environment: list[Annotated[_Fields, Part]]
    """Parts of the environment."""
    knobs: dict[str, BothValues]
    """Knobs, by name."""


class CellDocument(TypedDict):
    """The verdict on one cell."""

    name: str
    """The cell in words, by the knobs that tell cells apart."""
    condition: Axes
    """The knobs that both sides share, by name ([knobs](knobs.md))."""
    verdict: Verdict
    """What was found."""
    counts_as: Verdict
    """The verdict as it counts: a faster cell as `same` with `--allow-faster`."""
    direction: Direction | None
    """Which way a different cell moved; `changed`: other packets or another outcome, without a load
    time to show it."""
    reason: str
    """The verdict's reason, in a sentence."""
    more_runs: int | None
    """How many more repetitions on each side would tell, as far as can be said."""
    effect: Annotated[_Fields | None, Effect]
    """By how much load times moved; null without load times on both sides."""
    tests: dict[str, Annotated[_Fields, Chance]]
    """In real time, the significance that each test found, by its name."""
    base: Annotated[_Fields | None, Side]
    """The cell in the base."""
    new: Annotated[_Fields | None, Side]
    """The cell in the new results; null where they do not have it."""
    trials: list[Annotated[_Fields, TrialPair]]
    """In virtual time, the trials that both sides have, each with `difference_ms`: the new page
    load time - the base's."""
    packets: Annotated[_Fields | None, PacketDifference]
    """In virtual time, the first packet that differs; also as `text`, with its trial's `seed`."""
    packets_note: str | None
    """Why no packet is shown."""


class ComparisonDocument(TypedDict):
    """Two results folders compared."""

    schema: int
    """The schema of this document."""
    verdict: Verdict
    """The gravest verdict that counts."""
    exit_code: int
    """The exit code of `compare`."""
    headline: str
    """The verdict in a sentence."""
    base: str
    """The folder of the base."""
    new: str
    """The folder of the new results."""
    kernel: str
    """The kernel of both: `virtual` or `host`."""
    alpha: float
    """How often chance alone may be called a difference, over all cells, in real time."""
    min_effect_pct: float
    """The least change that matters, of the base's median load time."""
    allow_faster: bool
    """Whether faster cells count as `same`."""
    counts: dict[Verdict, int]
    """How many cells count as what, by verdict."""
    under_test: UnderTest
    """What differs because it is under test."""
    cells: list[CellDocument]
    """Every cell of the base, in the order of its table."""
    added: list[Axes]
    """The conditions that only the new results have."""
    notes: list[str]
    """What else to know, in sentences."""


def describe_comparison(comparison: Comparison) -> ComparisonDocument:
    """Return everything that was found; ``cells`` are in the order of the base's table."""
    return {
        "schema": SCHEMA_VERSION,
        "verdict": comparison.verdict,
        "exit_code": comparison.exit_code,
        "headline": headline(comparison),
        "base": comparison.base,
        "new": comparison.new,
        "kernel": comparison.kernel,
        "alpha": comparison.alpha,
        "min_effect_pct": comparison.min_effect_pct,
        "allow_faster": comparison.allow_faster,
        "counts": comparison.counts,
        "under_test": {
            "environment": [asdict(part) for part in comparison.parts],
            "knobs": {
                name: {"base": base, "new": new} for name, (base, new) in comparison.knobs.items()
            },
        },
        "cells": [_cell(comparison, cell) for cell in comparison.cells],
        "added": list(comparison.added),
        "notes": list(comparison.notes),
    }


def _cell(comparison: Comparison, cell: CellFinding) -> CellDocument:
    packets = asdict(cell.packets) if cell.packets is not None else None
    if packets is not None and cell.packets is not None:
        packets |= {"seed": cell.packets_seed, "text": describe_difference(cell.packets)}
    return {
        "name": name_cell(comparison, cell),
        "condition": cell.axes,
        "verdict": cell.verdict,
        "counts_as": comparison.counted(cell),
        "direction": cell.direction,
        "reason": cell.reason,
        "more_runs": cell.more_runs,
        "effect": asdict(cell.effect) if cell.effect else None,
        "tests": {name: asdict(chance) for name, chance in cell.chances.items()},
        "base": asdict(cell.base) if cell.base else None,
        "new": asdict(cell.new) if cell.new else None,
        "trials": [{**asdict(pair), "difference_ms": pair.difference_ms} for pair in cell.trials],
        "packets": packets,
        "packets_note": cell.packets_note,
    }
