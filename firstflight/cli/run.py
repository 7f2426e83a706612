"""Verbs of an experiment: ``plan`` it, ``run`` it, and write its ``report`` anew."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from analysis.records.metric import Metric
from firstflight.cli.choice import Choice, choice_options
from firstflight.cli.doors import Doors, pass_doors
from firstflight.cli.metric import metric_option
from firstflight.cli.reports import LANES_PAGE, REPORT_FILE, Presented, name_comparison
from testbed.base import log, places
from testbed.base.errors import EXIT_INCONCLUSIVE, EXIT_OK, ConfigurationError, worst_exit
from testbed.experiment.label import label, varying
from testbed.experiment.lanes import read_lanes, split
from testbed.experiment.plan import plan_trials
from testbed.launch import RunLane, find_lanes, open_lanes, resume_lanes, run_lanes
from testbed.model import Experiment
from testbed.results.manifest import load_manifest
from testbed.results.tally import Tally

_log = log.logger(__name__)


@click.command()
@choice_options
@click.option(
    "--jobs", type=click.IntRange(1, 1024), help="Trials at once; default: one for each core."
)
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="DIR",
              help="The new results folder; default: results/<UTC>-<experiment>.")  # fmt: skip
@click.option("--resume", type=click.Path(path_type=Path), metavar="DIR",
              help="Go on with this results folder: run what has no ok record.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show the trials and run nothing.")
@metric_option
@click.option("--json", "as_json", is_flag=True, help="Write the result as JSON.")
@pass_doors
def run(
    doors: Doors,
    /,
    jobs: int | None,
    output: Path | None,
    resume: Path | None,
    dry_run: bool,
    metric: Metric,
    as_json: bool,
    **chosen: Any,
) -> int:
    """Run the experiment in CONFIG and print its table."""
    choice = Choice(**chosen)
    if resume is not None and (choice.given() or output):
        given = ", ".join([*choice.given(), *(["-o"] if output else [])])
        raise ConfigurationError([f"--resume {resume} goes on as planned: leave out {given}"])
    catalogue = doors.catalogue()
    old = find_lanes(resume) if resume is not None else {}
    experiments = tuple(choice.extend(lane.experiment) for lane in old.values())
    experiments = experiments or split(choice.load(catalogue))
    if dry_run:
        _show_plan(experiments, as_json)
        return EXIT_OK
    jobs = jobs or len(os.sched_getaffinity(0))
    with places.using_cache(doors.cache()):
        if resume is not None:
            folder, lanes = resume, resume_lanes(doors.prepare, old, experiments, jobs, doors.now)
        else:
            folder, lanes = open_lanes(
                doors.prepare, experiments, jobs, doors.results, output, doors.now
            )
        so_far = partial(doors.reports.draw_table, metric=metric)
        tallies = run_lanes(lanes, doors.reports.list_unsettled, so_far)
    return _finish(doors, folder, lanes, tallies, metric, as_json)


@click.command()
@choice_options
@click.option("--json", "as_json", is_flag=True, help="Write the trials as JSON.")
@pass_doors
def plan(doors: Doors, /, as_json: bool, **chosen: Any) -> int:
    """Show the trials of the experiment in CONFIG and run nothing."""
    _show_plan(split(Choice(**chosen).load(doors.catalogue())), as_json)
    return EXIT_OK


@click.command()
@click.argument("directories", metavar="DIR...", nargs=-1, required=True,
                type=click.Path(path_type=Path))  # fmt: skip
@metric_option
@pass_doors
def report(doors: Doors, /, directories: tuple[Path, ...], metric: Metric) -> int:
    """Write table.csv, summary.json and report.html of the results in DIR anew.

    Of a run on several kernels: those of each, compare.json and compare.html (of more than two,
    compare-NAME for each but the first), and what every cell came to on each: kernels.json, and
    kernels.md for a mail.  The table is printed as well, by --metric; no file depends on that.

    Of several folders, loads of one experiment on servers: those of each, and lanes.html in the
    first, with all of them in one figure.
    """
    for directory in directories:
        compared = _write_reports(doors, directory, metric)
        if len(directories) > 1:
            click.echo(f"{directory}:")
        click.echo(_render(doors, directory, compared, metric))
    if len(directories) > 1:
        folders = [directory / lane for directory in directories
                   for lane in read_lanes(directory) or (".",)]  # fmt: skip
        page = directories[0] / LANES_PAGE
        click.echo(doors.reports.draw_lanes(page, folders))
        _log.info("side by side: %s", page)
    return EXIT_OK


def _finish(
    doors: Doors,
    folder: Path,
    lanes: Sequence[RunLane],
    tallies: Sequence[Tally],
    metric: Metric,
    as_json: bool,
) -> int:
    """Write the reports, print the table or the JSON, and say what is left to do."""
    code = worst_exit(tally.exit_code for tally in tallies)
    compared = None
    if not tallies[-1].interrupted:
        compared = _write_reports(doors, folder, metric)
        code = worst_exit([code, compared.exit_code if compared else EXIT_OK])
        if not as_json:
            click.echo(_render(doors, folder, compared, metric))
    ended = {}
    for lane, tally in zip(lanes, tallies, strict=False):  # an interrupted run began fewer
        _say(lane, tally, folder)
        ended[lane.name] = asdict(tally) | {
            "results": str(lane.folder),
            "exit_code": tally.exit_code,
        }
    if not tallies[-1].interrupted:
        _log.info("report: %s", ", ".join(str(path) for path in _reports(folder, lanes)))
    if as_json:
        document: dict[str, Any] = ended.get("") or {
            "results": str(folder),
            "exit_code": code,
            "lanes": ended,
            "comparison": compared.document if compared else None,
            "kernels": compared.kernels if compared else None,
        }
        click.echo(json.dumps(document, indent=2))
    return code


def _write_reports(doors: Doors, folder: Path, metric: Metric) -> Presented | None:
    """Write the reports of a run, and of its lanes what they came to side by side.

    Only the text that is returned depends on the metric.
    """
    names = read_lanes(folder)
    for lane in [folder / name for name in names] or [folder]:
        doors.reports.write(lane)
    if not names:
        return None
    first = load_manifest(folder / names[0]).experiment
    if first.kind == "server_load":
        doors.reports.draw_lanes(folder / LANES_PAGE, [folder / name for name in names])
    return doors.reports.compare_lanes(folder, names, metric)


def _reports(folder: Path, lanes: Sequence[RunLane]) -> list[Path]:
    """Return the pages to look at: a run's report, or those of its lanes and what they came to."""
    found = [lane.folder / REPORT_FILE for lane in lanes]
    if len(found) == 1:
        return found
    joint = [folder / LANES_PAGE] if lanes[0].manifest.experiment.kind == "server_load" else []
    names = [lane.name for lane in lanes]
    compared = [folder / f"{name_comparison(names, name)}.html" for name in names[1:]]
    return [*found, *compared, *joint]


def _render(doors: Doors, folder: Path, compared: Presented | None, metric: Metric) -> str:
    text = compared.text if compared else doors.reports.render(folder, metric)
    return text.rstrip("\n")


def _say(lane: RunLane, tally: Tally, run_folder: Path) -> None:
    """Log the tally of a lane, and what is left to do."""
    name = f"kernel {lane.name}: " if lane.name else ""
    if tally.interrupted:
        _log.error("interrupted: %s%s; go on with --resume %s", name, tally.sentence(), run_folder)
        return
    _log.info("%s%s; results in %s", name, tally.sentence(), lane.folder)
    if tally.unsettled:
        _log.info(
            "%d intervals are wider than asked: %s; collect more with --resume %s --max-n N",
            len(tally.unsettled),
            "; ".join(tally.unsettled),
            run_folder,
        )
    if tally.exit_code not in (EXIT_OK, EXIT_INCONCLUSIVE):
        _log.info("run what is not ok again with --resume %s", run_folder)


def _show_plan(experiments: Sequence[Experiment], as_json: bool) -> None:
    first = experiments[0]
    if first.until_ci_pct is not None:
        _log.info(
            "the trials before the first look; repetitions are added until every interval is "
            "within +-%g %%, up to %d",
            first.until_ci_pct,
            first.max_repetitions,
        )
    trials = [trial for experiment in experiments for trial in plan_trials(experiment)]
    if as_json:
        click.echo(json.dumps([{"id": trial.id, **asdict(trial)} for trial in trials], indent=2))
        return
    names = varying([trial.condition for trial in trials])
    for trial in trials:
        kernel = f" kernel_version={trial.kernel_version}" if len(experiments) > 1 else ""
        warm_up = " warm-up" * trial.warm_up
        click.echo(f"{trial.id} {kernel} {label(trial, names)} seed={trial.seed}{warm_up}")
