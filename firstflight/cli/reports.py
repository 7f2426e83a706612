"""Reports of results, written and shown for the verbs; only who draws charts pays for them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.records.metric import PLT, Metric
from firstflight.cli.kernel_verdicts import find_kernel_verdicts
from testbed.base.errors import EXIT_INCOMPLETE, EXIT_OK
from testbed.base.whole_file import write_whole
from testbed.base.wings import provided
from testbed.model import Experiment, Record

if TYPE_CHECKING:
    from analysis.records.results import Results
    from analysis.report.publications import Rebuilt

WIDTH = 100
"""Columns of a table where standard output is no terminal."""
REPORT_FILE = "report.html"
LANES_PAGE = "lanes.html"


@dataclass(frozen=True, slots=True)
class Presented:
    """Lanes compared, for a terminal and for programs, and the exit code of the run.

    ``document`` is the comparison of two lanes, ``kernels`` what the cells of all came to.
    """

    text: str
    document: Mapping[str, Any] | None
    exit_code: int
    kernels: Mapping[str, Any] | None = None


def name_comparison(lanes: Sequence[str], name: str) -> str:
    """Return the stem of the files that compare the lane ``name`` with the first of ``lanes``."""
    return "compare" if len(lanes) == 2 else f"compare-{name}"


def read_width() -> int:
    """Columns that a table may have."""
    return shutil.get_terminal_size((WIDTH, 24)).columns


class Reports:
    """The analysis of a run."""

    def __init__(self) -> None:
        """Keep what was just written, so that its table is printed without reading it again."""
        self._written: dict[Path, Results] = {}

    def write(self, folder: Path) -> None:
        """Write table, summary and report of results into their folder."""
        from analysis.report.document import write_reports

        self._written[folder] = write_reports(folder)

    def render(self, folder: Path, metric: Metric = PLT) -> str:
        """The table of results for a terminal, and how they compare with those committed."""
        from analysis.records.results import read_results
        from analysis.report.terminal import render_table
        from analysis.verdicts.committed import hold_against_committed

        read = self._written.pop(folder, None) or read_results(folder)
        return render_table(folder, read_width(), read, metric) + hold_against_committed(read)

    def compare_lanes(self, folder: Path, lanes: Sequence[str], metric: Metric = PLT) -> Presented:
        """Compare the first lane of a run with each other one; pages and JSON go into its folder.

        A change is a result and no failure; a cell without a number is incomplete.  The files are
        by page load time, the text is by ``metric``.
        """
        from analysis.verdicts.compare.comparison import LANES_EFFECT_PCT, CompareOptions
        from analysis.verdicts.compare.documents import describe_comparison, write_files
        from analysis.verdicts.compare.folders import compare_results
        from analysis.verdicts.compare.sentences import render_text

        options = CompareOptions(across=("all",), min_effect_pct=LANES_EFFECT_PCT,
                                 attribute=True)  # fmt: skip
        base, *further = (folder / name for name in lanes)
        comparisons = [compare_results(base, folder_new, options) for folder_new in further]
        remedy = f"make room or check the permissions of {folder}, then compare again"
        documents = [describe_comparison(comparison) for comparison in comparisons]
        for folder_new, comparison, document in zip(further, comparisons, documents, strict=True):
            stem = name_comparison(lanes, folder_new.name)
            text = json.dumps(document, sort_keys=True, indent=1, allow_nan=False)
            write_whole(folder / f"{stem}.json", f"{text}\n", remedy)
            write_files(comparison, html=folder / f"{stem}.html")
        complete = all(cell.has_numbers for comparison in comparisons for cell in comparison.cells)
        code = EXIT_OK if complete else EXIT_INCOMPLETE
        if metric == PLT:
            shown = comparisons
        else:
            metric_options = replace(options, metric=metric)
            shown = [compare_results(base, folder_new, metric_options) for folder_new in further]
        texts = [render_text(comparison, read_width()) for comparison in shown]
        kernels, verdicts = None, find_kernel_verdicts()
        of_kernels = all(comparison.kernels is not None for comparison in comparisons)
        if verdicts and of_kernels and all(
            cell.attribution for comparison in comparisons for cell in comparison.cells
        ):  # fmt: skip
            kernels, text = verdicts.write(folder, comparisons, shown)
            texts = texts if len(texts) == 1 else [text]
        alone = documents[0] if len(documents) == 1 else None
        return Presented("\n".join(texts), alone, code, kernels)

    def write_figures(self, folder: Path, figures: Path) -> int:
        """Write each figure of a report as SVG and PDF into ``figures``; return how many."""
        from analysis.records.results import read_results
        from analysis.report.figures import write_figures

        return len(write_figures(read_results(folder), figures))

    def write_flent(self, folder: Path, files: Path) -> int:
        """Write each load that counts as data of flent into ``files``; return how many."""
        from analysis.records.results import read_results
        from analysis.report.flent import write_flent

        return write_flent(read_results(folder), files)

    def draw_lanes(self, page: Path, folders: Sequence[Path]) -> str | None:
        """Write a page with the loads of all ``folders`` in one figure; return its story.

        Without a wing that provides ``lanes`` there is no page, and no story.

        Raises:
            ConfigurationError: they are not the loads of one experiment on servers.
            StorageError: a folder cannot be read, or the page not be written.
        """
        from analysis.records.results import read_results

        write: Callable[[Path, Sequence[Results]], Rebuilt]
        for drawing in provided("lanes"):
            write = drawing.load()
            return "\n".join(write(page, [read_results(folder) for folder in folders]).story)
        return None

    def draw_table(
        self, experiment: Experiment, records: Sequence[Record], metric: Metric = PLT
    ) -> str:
        """The table of the records so far, for a terminal."""
        from analysis.report.terminal import render_so_far

        return render_so_far(experiment, records, read_width(), metric)

    def list_unsettled(self, experiment: Experiment, records: Sequence[Record]) -> tuple[str, ...]:
        """The cells whose intervals are wider than ``until_ci_pct``."""
        from analysis.report.settling import list_unsettled

        return list_unsettled(experiment, records)
