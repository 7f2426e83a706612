"""Figures of a report as files, each as SVG and as PDF, for papers and slides."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from analysis import plot
from analysis.plot.printing import print_page
from analysis.records.cells import cells_of
from analysis.records.results import Results
from analysis.report.document import find_reference
from analysis.report.drawings import list_plots
from analysis.reproductions import rebuild
from analysis.tables.table import make_table
from testbed.base.errors import StorageError
from testbed.base.whole_file import write_whole

PAGE = (
    '<!DOCTYPE html><meta charset="utf-8"><style>@page {{ size: {width}px {height}px; margin: 0 }} '
    "body {{ margin: 0 }} svg {{ display: block }}</style>{svg}"
)
SIZE = re.compile(r'<svg[^>]* width="([0-9.]+)" height="([0-9.]+)"')
UNFIT = re.compile(r"[^a-z0-9.]+")


def write_figures(results: Results, folder: Path, find_browser: Callable[[], Path]) -> int:
    """Write every figure that ``results`` have into ``folder``; return how many.

    ``find_browser`` finds the headless Chromium that prints PDF.  A name is the section in the
    report and what the figure is of: ``load-times-wsj-rtt-20-ms.svg``.

    Raises:
        StorageError: ``folder`` cannot be written.
        MissingError: there is no headless Chromium to print PDF; all SVG files are written.
        CommandError: it failed.
    """
    figures = dict(_list_figures(results))
    remedy = f"make room or check the permissions of {folder}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make {folder}: {error.strerror}; {remedy}") from error
    for name, svg in figures.items():
        write_whole(folder / f"{name}.svg", svg, remedy)
    browser = str(find_browser())
    for name, svg in figures.items():
        size = SIZE.search(svg)
        assert size is not None  # noqa: S101 - plot.draw writes it
        with tempfile.TemporaryDirectory(prefix="figure-") as scratch:
            page = Path(scratch, f"{name}.html")
            # A pixel more, since a fraction of one would begin a second sheet.
            width, height = (int(float(number)) + 1 for number in size.groups())
            page.write_text(PAGE.format(width=width, height=height, svg=svg), encoding="utf-8")
            print_page(page, folder / f"{name}.pdf", browser)
    return len(figures)


def _list_figures(results: Results) -> Iterator[tuple[str, str]]:
    """Yield name and SVG of each figure: of the rebuilt publication, then of what was swept."""
    reference = find_reference(results)
    table = make_table(cells_of(results), reference)
    rebuilt = rebuild(results, reference)
    for figure in rebuilt.figures if rebuilt else ():
        yield _name("rebuilt", figure.title), plot.draw(figure.chart)
    for anchor, title, drawn in list_plots(table):
        yield _name(anchor, title), plot.draw(drawn)


def _name(*parts: str) -> str:
    return UNFIT.sub("-", "-".join(part for part in parts if part).lower()).strip("-.")
