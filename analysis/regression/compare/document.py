"""A comparison as JSON-ready values, unrounded; a missing value is ``None``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from analysis.regression.compare.comparison import CellFinding, Comparison
from analysis.regression.compare.packets import describe_difference
from analysis.regression.compare.phrases import headline, name_cell

SCHEMA_VERSION = 1


def describe_comparison(comparison: Comparison) -> dict[str, Any]:
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


def _cell(comparison: Comparison, cell: CellFinding) -> dict[str, Any]:
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
