"""The analysis behind ``baseline`` and ``history``; each verb pays only for what it needs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from testbed.doors import Draft, Regression


def open_regression() -> Regression:
    """The real one."""
    return Regression(
        _draft_baseline, _describe_baseline, _add_history, _list_history, _write_trend
    )


def _draft_baseline(results: Path, target: Path, drop_cells: bool) -> Draft:
    from analysis.baseline import draft_baseline

    draft = draft_baseline(results, target, drop_cells=drop_cells)
    return Draft(draft.files, draft.changes, draft.origin)


def _describe_baseline(folder: Path) -> str:
    from analysis.baseline import describe_baseline

    return describe_baseline(folder)


def _add_history(history: Path, results: Path, baseline: Path | None) -> str:
    from analysis.history.keeping import keep_run

    return keep_run(history, results, baseline)


def _list_history(history: Path) -> list[dict[str, Any]]:
    from analysis.history.database import open_history
    from analysis.history.runs import read_runs

    with open_history(history) as connection:
        return [asdict(run) for run in read_runs(connection)]


def _write_trend(history: Path, page: Path, last: int) -> str:
    from analysis.history.page import write_trend

    return write_trend(history, page, last)
