"""Verbs of an experiment: ``plan`` it, ``run`` it, and write its ``report`` anew."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

import click

from analysis.records.metric import Metric
from firstflight.cli.choice import Choice, choice_options
from firstflight.cli.ended import list_pages, say_tally, write_reports
from firstflight.cli.means import MEANS, Means, chosen_store, means_options
from firstflight.cli.metric import metric_option
from firstflight.cli.reports import LANES_PAGE, Presented
from firstflight.cli.services import Services, pass_services
from testbed.base import log, places
from testbed.base.errors import EXIT_OK, ConfigurationError, worst_exit
from testbed.experiment.ids import list_ids
from testbed.experiment.label import label_condition, varying
from testbed.experiment.lanes import name_lanes, read_lanes, split
from testbed.experiment.shards import Shard
from testbed.model import Experiment, Spec, Trial
from testbed.results.manifest import planned_trials
from testbed.results.tally import Tally
from testbed.runner.launch import RunLane, find_lanes, open_lanes, resume_lanes, run_lanes

_log = log.logger(__name__)


@click.command()
@choice_options
@click.option(
    "--jobs", type=click.IntRange(1, 1024), help="Trials at once; default: one for each core."
)
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="DIR",
              help="The new results folder; default: results/<UTC>-<experiment>.")  # fmt: skip
@click.option("--resume", type=click.Path(path_type=Path), metavar="DIR",
              help="Continue this results folder: run what has no ok record.")  # fmt: skip
@means_options
@click.option("--dry-run", is_flag=True, help="Show the trials and run nothing.")
@metric_option
@click.option("--json", "as_json", is_flag=True, help="Write the result as JSON.")
@pass_services
def run(
    services: Services, /, jobs: int | None, output: Path | None, resume: Path | None,
    dry_run: bool, metric: Metric, as_json: bool, **chosen: Any,
) -> int:  # fmt: skip
    """Run the experiment in CONFIG and print its table."""
    means = Means(**{name: chosen.pop(name) for name in MEANS})
    choice = Choice(**chosen)
    given = [*choice.given(), *(["-o"] if output else []), *means.planned()]
    if resume is not None and given:
        options = ", ".join(given)
        raise ConfigurationError([f"--resume {resume} goes on as planned: leave out {options}"])
    catalogue = services.catalogue()
    old = find_lanes(resume) if resume is not None else {}
    experiments = tuple(choice.extend(lane.experiment) for lane in old.values())
    experiments = experiments or split(choice.load(catalogue))
    means.refuse(experiments[0])
    if dry_run:
        _show_plan(experiments, as_json, means.shard)
        return EXIT_OK
    jobs = jobs or len(os.sched_getaffinity(0))
    shown: list[Path] = []

    def show(lane: RunLane) -> None:
        """Print the table before what it was made of is checked: it is there already."""
        if not lane.name and not as_json:
            click.echo(_render(services, lane.folder, None, metric))
            shown.append(lane.folder)

    with places.using_cache(services.cache()):
        store = chosen_store(services, means.no_store)
        if resume is not None:
            folder = resume
            lanes = resume_lanes(services.prepare, old, experiments, jobs, services.now)
        else:
            folder, lanes = open_lanes(
                *(services.prepare, experiments, jobs, services.results, output, services.now),
                shard=means.shard,
                keep_captures=means.keep_captures,
            )
        tallies = run_lanes(*(lanes, services.reports.list_unsettled),
                            partial(services.reports.draw_table, metric=metric), store=store,
                            verify_pct=means.verify_pct, show=show)  # fmt: skip
    return _finish(services, folder, lanes, tallies, metric, as_json, shown=bool(shown))


@click.command()
@choice_options
@click.option("--json", "as_json", is_flag=True, help="Write the trials as JSON.")
@pass_services
def plan(services: Services, /, as_json: bool, **chosen: Any) -> int:
    """Show the trials of the experiment in CONFIG and run nothing."""
    _show_plan(split(Choice(**chosen).load(services.catalogue())), as_json)
    return EXIT_OK


@click.command()
@click.argument("directories", metavar="DIR...", nargs=-1, required=True,
                type=click.Path(path_type=Path))  # fmt: skip
@click.option("--figures", type=click.Path(path_type=Path), metavar="DIR",
              help="Also write each figure of the reports there, as SVG and PDF.")  # fmt: skip
@click.option("--flent", type=click.Path(path_type=Path), metavar="DIR",
              help="Also write each proven load there, as data for flent.")  # fmt: skip
@metric_option
@pass_services
def report(
    services: Services, /, directories: tuple[Path, ...], figures: Path | None, flent: Path | None,
    metric: Metric,
) -> int:  # fmt: skip
    """Write table.csv, summary.json and report.html of the results in DIR anew.

    For a run on several kernels: these files for each kernel, compare.json and compare.html (for
    more than two, compare-NAME for each but the first), and the verdicts on all cells:
    kernels.json, and kernels.md for a mail.  The table is also printed; --metric changes that
    table alone.

    For several folders of server loads of one experiment: these files for each folder, and
    lanes.html in the first, with all of them in one figure.
    """
    for directory in directories:
        compared = write_reports(services, directory, metric)
        if len(directories) > 1:
            click.echo(f"{directory}:")
        click.echo(_render(services, directory, compared, metric))
    folders = [directory / lane for directory in directories
               for lane in read_lanes(directory) or (".",)]  # fmt: skip
    if figures is not None:
        for folder, place in zip(folders, _places(figures, folders), strict=True):
            _log.info("%d figures: %s", services.reports.write_figures(folder, place), place)
    if flent is not None:
        for folder, place in zip(folders, _places(flent, folders), strict=True):
            _log.info("%d files of flent: %s", services.reports.write_flent(folder, place), place)
    if len(directories) > 1:
        page = directories[0] / LANES_PAGE
        story = services.reports.draw_lanes(page, folders)
        if story is not None:
            click.echo(story)
            _log.info("side by side: %s", page)
    return EXIT_OK


def _places(figures: Path, folders: Sequence[Path]) -> list[Path]:
    """Return a folder for files of each of ``folders``: by its name, or also its parent's."""
    if len(folders) == 1:
        return [figures]
    names = [folder.resolve().name for folder in folders]
    if len(set(names)) < len(names):
        names = ["-".join(folder.resolve().parts[-2:]) for folder in folders]
    return [figures / name for name in names]


def _finish(
    services: Services, folder: Path, lanes: Sequence[RunLane], tallies: Sequence[Tally],
    metric: Metric, as_json: bool, *, shown: bool,
) -> int:  # fmt: skip
    """Write the reports, print the table or the JSON, and say what is left to do."""
    code = worst_exit(tally.exit_code for tally in tallies)
    compared = None
    if not tallies[-1].interrupted:
        compared = write_reports(services, folder, metric)
        code = worst_exit([code, compared.exit_code if compared else EXIT_OK])
        if not as_json and not shown:
            click.echo(_render(services, folder, compared, metric))
    ended = {}
    for lane, tally in zip(lanes, tallies, strict=False):  # an interrupted run began fewer
        say_tally(lane, tally, folder)
        ended[lane.name] = asdict(tally) | {
            "results": str(lane.folder),
            "exit_code": tally.exit_code,
        }
    if not tallies[-1].interrupted:
        _log.info("report: %s", ", ".join(str(path) for path in list_pages(folder, lanes)))
    if as_json:
        document: dict[str, Any] = ended.get("") or {
            "results": str(folder), "exit_code": code, "lanes": ended,
            "comparison": compared.document if compared else None,
            "kernels": compared.kernels if compared else None,
        }  # fmt: skip
        click.echo(json.dumps(document, indent=2))
    return code


def _render(services: Services, folder: Path, compared: Presented | None, metric: Metric) -> str:
    text = compared.text if compared else services.reports.render(folder, metric)
    return text.rstrip("\n")


def _show_plan(
    experiments: Sequence[Experiment], as_json: bool, shard: Shard | None = None
) -> None:
    first = experiments[0]
    if first.until_ci_pct is not None:
        _log.info(
            "the trials before the first look; repetitions are added until every interval is "
            "within +-%g %%, up to %d",
            first.until_ci_pct,
            first.max_repetitions,
        )
    lanes = [
        (name, experiment.root, planned_trials(experiment, shard))
        for name, experiment in zip(name_lanes(experiments), experiments, strict=True)
    ]
    for line in _plan_as_json(lanes) if as_json else _plan_as_text(lanes):
        click.echo(line)


_Lane = tuple[str, str, tuple[Trial, ...]]
"""Of a plan: the lane's name, its root, and its trials."""


def _plan_as_json(lanes: Sequence[_Lane]) -> Iterator[str]:
    """Yield a list of all trials in JSON, a line for each."""
    before = "["
    for _, root, trials in lanes:
        conditions = {key: asdict(each) for key, each in _conditions(trials).items()}
        for trial, name in zip(trials, list_ids(trials), strict=True):
            plain = {each.name: getattr(trial, each.name) for each in fields(trial)}
            plain["condition"] = conditions[id(trial.condition)]
            yield before + json.dumps({"id": name, "root": root, **plain})
            before = ","
    yield "]"


def _plan_as_text(lanes: Sequence[_Lane]) -> Iterator[str]:
    """Yield a line for each trial: its id, and what tells it from the others."""
    every = {key: each for _, _, trials in lanes for key, each in _conditions(trials).items()}
    names = varying([*every.values()])
    labels = {key: label_condition(each, names) for key, each in every.items()}
    for lane, _, trials in lanes:
        word = f" {lane}" if lane else ""
        for trial, name in zip(trials, list_ids(trials), strict=True):
            warm_up = " warm-up" * trial.warm_up
            yield f"{name} {word} {labels[id(trial.condition)]} seed={trial.seed}{warm_up}"


def _conditions(trials: Iterable[Trial]) -> dict[int, Spec]:
    """Return the conditions of ``trials`` as objects: repetitions have the same one."""
    return {id(trial.condition): trial.condition for trial in trials}
