"""Page of an experiment on several kernels: their loads in one figure, each judged by itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analysis import plot
from analysis.records.results import Results
from analysis.report.document import find_reference
from analysis.report.drawings import Drawing
from analysis.report.rendering import TEMPLATES, open_templates
from analysis.reproductions.lanes import draw_lanes, name_lanes
from analysis.reproductions.rebuilt import Rebuilt
from testbed.base.whole_file import write_whole


def write_lanes_page(path: Path, every: Sequence[Results]) -> Rebuilt:
    """Write the page to ``path`` and return what is on it.

    Raises:
        ConfigurationError: the results are not the loads of one experiment on servers.
        StorageError: it cannot be written.
    """
    lanes = name_lanes(every)
    rebuilt = draw_lanes(lanes, find_reference)
    drawings = [Drawing(figure.chart, figure.caption, figure.title) for figure in rebuilt.figures]
    page = (
        open_templates()
        .get_template("lanes.html.jinja")
        .render(
            lanes=lanes,
            rebuilt=rebuilt,
            drawings=drawings,
            figures=(),
            style=plot.style_sheet() + (TEMPLATES / "report.css").read_text(encoding="utf-8"),
        )
    )
    write_whole(path, page, f"make room or check the permissions of {path.parent}")
    return rebuilt
