"""What a visitor sees of a run's loads: which moments the report has, and what to know of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.kinds.page_load.records import MILESTONES, PAINT_GRAIN_MS
from analysis.records.cells import Cell, describe_absence, further_metrics
from analysis.records.metric import Metric

_BY_NAME = {metric.name: metric for metric in MILESTONES}
FIRST_PAINT, CONTENTFUL, LARGEST = (_BY_NAME[name] for name in ("fp_ms", "fcp_ms", "lcp_ms"))
PAINTS = (FIRST_PAINT, CONTENTFUL, LARGEST)


@dataclass(frozen=True, slots=True)
class Visitor:
    """The moments of a table, sentences about them, and one to try ``--metric`` with."""

    metrics: tuple[Metric, ...]
    notes: tuple[str, ...]
    example: Metric


def describe_visitor(cells: Sequence[Cell]) -> Visitor | None:
    """Return what visitors see in ``cells``; ``None`` where no browser gave it."""
    seen = further_metrics(cells)
    if not seen:
        return None
    notes = []
    shown = seen
    loads = [record.measured for cell in cells for record in cell.proven]
    if FIRST_PAINT in seen and all(FIRST_PAINT.of(load) == CONTENTFUL.of(load) for load in loads):
        shown = tuple(metric for metric in seen if metric != FIRST_PAINT)
        notes.append("What was painted first was text or a picture in every load.")
    if any(metric in seen for metric in PAINTS):
        notes.append(
            f"The browser rounds paints to {PAINT_GRAIN_MS:g} ms: a difference that is no larger "
            "may be none."
        )
    if LARGEST in seen:
        notes.append(
            "The largest contentful paint and the layout shift count only on pages with real "
            "contents. On those that are made from sizes, as the recordings of 2013 are, pictures "
            "are one pixel large."
        )
    records = [record for cell in cells for record in cell.proven]
    for metric in seen:
        told = sum(1 for r in records if r.proof is not None and metric.name in r.proof.as_told)
        if told:
            notes.append(
                f"The {metric.label} is as the browser says in {told} of {len(records)} loads: "
                "nothing else shows it."
            )
    # Each client once: what gives one of these moments gives all that a page has.
    for metric in seen:
        notes += [each for each in describe_absence(cell.by(metric) for cell in cells)
                  if each not in notes]  # fmt: skip
    return Visitor(shown, tuple(notes), CONTENTFUL if CONTENTFUL in seen else seen[0])
