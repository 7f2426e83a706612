"""Figures of a report as files for papers: each as SVG, and as PDF of the same size."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from analysis.formats.pdf import print_page
from analysis.plot.chart import Plot, draw
from analysis.records.cells import cells_of
from analysis.records.results import Results
from analysis.report.drawings import make_sections
from analysis.report.publications import find_publication, rebuild
from analysis.tables.table import make_table
from testbed.base.errors import StorageError
from testbed.base.whole_file import write_whole

SIZE = re.compile(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"')


def write_figures(results: Results, folder: Path) -> tuple[str, ...]:
    """Write each figure of the report of ``results`` into ``folder``; return their names.

    All SVG are written before the first PDF.  Colours are the light ones.

    Raises:
        ConfigurationError: the records must not be pooled, or the manifest is not a run's.
        StorageError: a file cannot be written.
        MissingError: there is no Chromium to print with.
    """
    remedy = f"make room or check the permissions of {folder}"
    drawn = {name: draw(chart) for name, chart in _charts(results)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make {folder}: {error.strerror}; {remedy}") from None
    for name, svg in drawn.items():
        write_whole(folder / f"{name}.svg", f"{svg}\n", remedy)
    with tempfile.TemporaryDirectory(prefix="figures-") as pages:
        page = Path(pages) / "figure.html"
        for name, svg in drawn.items():
            page.write_text(_page_of(svg), encoding="utf-8")
            print_page(page, folder / f"{name}.pdf")
    return tuple(drawn)


def _charts(results: Results) -> Iterator[tuple[str, Plot]]:
    """Yield what the report draws, in its order, by the names of files."""
    rebuilt = rebuild(results)
    for figure in rebuilt.figures if rebuilt else ():
        yield figure.name, figure.chart
    for section in make_sections(make_table(cells_of(results), find_publication(results))):
        for place, drawing in enumerate(section.drawings, start=1):
            title = re.sub(r"[^a-z0-9]+", "-", drawing.title.lower()).strip("-")
            yield "-".join(filter(None, (section.anchor, str(place), title))), drawing.chart


def _page_of(svg: str) -> str:
    """Return a page that is as large as ``svg``."""
    size = SIZE.search(svg)
    assert size is not None  # noqa: S101 - every drawing has one
    look = f"@page {{ size: {size[1]}px {size[2]}px; margin: 0 }} body {{ margin: 0 }}"
    return (
        f'<!DOCTYPE html><meta charset="utf-8"><style>{look} svg {{ display: block }}</style>{svg}'
    )
