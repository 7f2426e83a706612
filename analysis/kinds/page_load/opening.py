"""Openings of connections: of each condition what visits sent before their first requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from analysis.records.cells import Cell
from analysis.words import MISSING
from testbed.model import VisitProof

FIRST_THEN = " →\N{NO-BREAK SPACE}"
_COUNTED = {"TCP": "tcp", "QUIC": "quic", "Hellos": "hellos", "Hello bytes": "hello_bytes",
            "Resumed": "resumed", "With early data": "early", "Early requests": "early_requests",
            "Early bytes": "early_bytes", "Round trips": "round_trips", "Bytes up": "up_bytes",
            "Bytes down": "down_bytes"}  # fmt: skip
"""Numbers of a visit (``testbed.model.VisitProof``) by their headings."""


@dataclass(frozen=True, slots=True)
class Openings:
    """Headings, and of each condition with such a proof a text below each.

    A text is that of the first visit, and of the last where that is another: ``0 → 6``.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, tuple[str, ...]], ...]


def describe_openings(cells: Sequence[Cell]) -> Openings | None:
    """Return medians over the proven loads of ``cells``; ``None`` where no proof has visits.

    What no visit has, such as early data, has no column.
    """
    texts: list[tuple[Cell, dict[str, str]]] = []
    for cell in cells:
        visits = [r.proof.visits for r in cell.proven if r.proof is not None and r.proof.visits]
        if visits:
            first, last = ([each[end] for each in visits] for end in (0, -1))
            pairs = zip(_texts(first).items(), _texts(last).values(), strict=True)
            row = {name: a if a == b else f"{a}{FIRST_THEN}{b}" for (name, a), b in pairs}
            texts.append((cell, row))
    if not texts:
        return None
    headings = [name for name in texts[0][1] if any(row[name] != "0" for _, row in texts)]
    rows = tuple((cell, tuple(row[name] for name in headings)) for cell, row in texts)
    return Openings(tuple(headings), rows)


def _texts(visits: Sequence[VisitProof]) -> dict[str, str]:
    numbers = {
        name: _median([getattr(visit, field) for visit in visits])
        for name, field in _COUNTED.items()
    }
    groups = sorted({group.upper() for visit in visits for group in visit.agreed})
    return numbers | {"Group": ", ".join(groups) or MISSING}


def _median(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{median(known):,.1f}".removesuffix(".0") if known else MISSING
