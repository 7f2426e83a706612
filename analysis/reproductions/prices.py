"""Prices of computing in virtual time, as every figure of a server under load says it."""

from __future__ import annotations

from analysis.records.cells import experiment_of
from analysis.records.results import Results
from analysis.words import clean
from testbed.model import in_real_time

PRICED = "In virtual time computing is priced by a model: {} (docs/server-load.md)."
CHOSEN = "its proportions are chosen, not measured"


def note_prices(results: Results) -> str:
    """Return a sentence on the price list of computing in virtual time; empty in real time."""
    experiment = experiment_of(results.manifest)
    if in_real_time(str(experiment.get("kernel"))):
        return ""
    origin = clean(str(experiment.get("prices_from") or ""))
    return PRICED.format(f"its prices are {origin}" if origin else CHOSEN)
