"""What all comparisons of two kernels share in words: their names, and columns side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from analysis.records.results import Identity
from analysis.report.rendering import TEMPLATES, open_templates
from analysis.words import clean

GAP = "  "


@dataclass(frozen=True, slots=True)
class Presented:
    """A comparison for a terminal, for programs, as a page of its own, and as an exit code."""

    text: str
    document: dict[str, Any]
    page: str
    exit_code: int


def kernel_name(identity: Identity) -> str:
    """Return a kernel's name for a heading, as ``virtual 7.3``."""
    return clean(f"{identity.kernel or 'none'} {identity.kernel_version or ''}")


def align(columns: Sequence[Sequence[str]]) -> list[str]:
    """Return ``columns`` as lines, every cell at the right end of its column."""
    widths = [max(map(len, column)) for column in columns]
    rows = zip(*columns, strict=True)
    return [
        GAP.join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def render_crosscheck_page(body: str, base: Identity, other: Identity, **values: Any) -> str:
    """Return a page without external resources; ``body`` is the template of its main part.

    ``values`` are what the templates ask for: ``lead`` is a sentence under the heading.
    """
    return (
        open_templates()
        .get_template("crosscheck-page.html.jinja")
        .render(
            body=body,
            identities=((base, kernel_name(base)), (other, kernel_name(other))),
            base=kernel_name(base),
            other=kernel_name(other),
            style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
            **values,
        )
    )
