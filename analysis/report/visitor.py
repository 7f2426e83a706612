"""What a visitor sees of a run's loads: which moments the report has, and what to know of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.records.cells import Cell, describe_absence, further_metrics
from analysis.records.metric import METRICS, PAINT_GRAIN_MS, Metric
from testbed.model import PageLoad

FIRST_PAINT, CONTENTFUL, LARGEST = METRICS["fp_ms"], METRICS["fcp_ms"], METRICS["lcp_ms"]
PAINTS = (FIRST_PAINT, CONTENTFUL, LARGEST)


@dataclass(frozen=True, slots=True)
class Visitor:
    """The moments of a table, sentences about them, and one to try ``--metric`` with."""

    metrics: tuple[Metric, ...]
    notes: tuple[str, ...]
    example: Metric


def describe_visitor(cells: Sequence[Cell]) -> Visitor | None:
    """Return what visitors see in ``cells``; ``None`` where no browser gave it."""
    found = further_metrics(cells)
    if not found or cells[0].kind != "page_load":
        return None
    notes = []
    shown = found
    if FIRST_PAINT in found and _always_contentful(cells):
        shown = tuple(metric for metric in found if metric != FIRST_PAINT)
        notes.append("What was painted first was text or a picture in every load.")
    if any(metric in found for metric in PAINTS):
        notes.append(
            f"The browser rounds paints to {PAINT_GRAIN_MS:g} ms: a difference that is no larger "
            "may be none."
        )
    if LARGEST in found:
        notes.append(
            "The largest contentful paint and the layout shift count only on pages with real "
            "contents. On those that are made from sizes, as the recordings of 2013 are, pictures "
            "are one pixel large."
        )
    # Each client once: what gives one of these moments gives all that a page has.
    for metric in found:
        notes += [each for each in describe_absence(cell.by(metric) for cell in cells)
                  if each not in notes]  # fmt: skip
    return Visitor(shown, tuple(notes), CONTENTFUL if CONTENTFUL in found else found[0])


def _always_contentful(cells: Sequence[Cell]) -> bool:
    loads = [record.measured_as(PageLoad) for cell in cells for record in cell.proven]
    return all(FIRST_PAINT.of(load) == CONTENTFUL.of(load) for load in loads if load)
