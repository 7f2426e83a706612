"""End of a run: reports written, and what is left to do said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analysis.records.metric import Metric
from analysis.tables.kind import tables_of
from firstflight.cli.reports import LANES_PAGE, REPORT_FILE, Presented, name_comparison
from firstflight.cli.services import Services
from testbed.base import log
from testbed.base.errors import EXIT_INCONCLUSIVE, EXIT_OK
from testbed.base.wings import provided
from testbed.experiment.lanes import read_lanes
from testbed.results.manifest import load_manifest
from testbed.results.tally import Tally
from testbed.runner.launch import RunLane

_log = log.logger(__name__)


def write_reports(services: Services, folder: Path, metric: Metric) -> Presented | None:
    """Write the reports of a run, and of its lanes what they came to side by side.

    Only the text that is returned depends on the metric.
    """
    names = read_lanes(folder)
    for lane in [folder / name for name in names] or [folder]:
        services.reports.write(lane)
    if not names:
        return None
    first = load_manifest(folder / names[0]).experiment
    if tables_of(first.kind).on_one_page:
        services.reports.draw_lanes(folder / LANES_PAGE, [folder / name for name in names])
    return services.reports.compare_lanes(folder, names, metric)


def list_pages(folder: Path, lanes: Sequence[RunLane]) -> list[Path]:
    """Return the pages to look at: a run's report, or those of its lanes and what they came to."""
    reports = [lane.folder / REPORT_FILE for lane in lanes]
    if len(reports) == 1:
        return reports
    on_one_page = tables_of(lanes[0].manifest.experiment.kind).on_one_page
    joint = [folder / LANES_PAGE] if on_one_page and any(provided("lanes")) else []
    names = [lane.name for lane in lanes]
    compared = [folder / f"{name_comparison(names, name)}.html" for name in names[1:]]
    return [*reports, *compared, *joint]


def say_tally(lane: RunLane, tally: Tally, run_folder: Path) -> None:
    """Log the tally of a lane, and what is left to do."""
    name = f"{lane.name}: " if lane.name else ""
    if tally.interrupted:
        _log.error("interrupted: %s%s; go on with --resume %s", name, tally.sentence(), run_folder)
        return
    _log.info("%s%s; results in %s", name, tally.sentence(), lane.folder)
    if tally.unsettled:
        _log.info("%d intervals are wider than asked: %s; collect more with --resume %s --max-n N",
                  len(tally.unsettled), "; ".join(tally.unsettled), run_folder)  # fmt: skip
    if tally.exit_code not in (EXIT_OK, EXIT_INCONCLUSIVE):
        _log.info("run what is not ok again with --resume %s", run_folder)
