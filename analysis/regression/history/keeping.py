"""A results folder into the history, with the verdict on it."""

from __future__ import annotations

from pathlib import Path

from analysis.records.results import read_results
from analysis.regression.history.database import open_history
from analysis.regression.history.runs import add_run
from analysis.regression.history.verdicts import find_verdicts


def keep_run(history: Path, results: Path, baseline: Path | None) -> str:
    """Add ``results`` to ``history`` with the verdict against ``baseline``; say what came of it.

    Raises:
        ConfigurationError: the results must not be pooled, or hold nothing; a newer history.
        StorageError: something cannot be read or written.
    """
    found = read_results(results)
    verdicts = find_verdicts(found, baseline) if baseline is not None else None
    with open_history(history, create=True) as connection:
        what = add_run(connection, found, verdicts)
    said = "no baseline to hold it against"
    if verdicts is not None:
        why = f" ({verdicts.why})" if verdicts.why else ""
        said = f"{verdicts.overall} against the baseline{why}"
    return f"{results}: {what}; {said}"
