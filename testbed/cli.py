"""The command line: what each verb does."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC
from pathlib import Path
from typing import Any

import click

from testbed import log, places
from testbed.choice import Choice, choice_options
from testbed.cli_crosscheck import crosscheck
from testbed.cli_machine import clean, doctor
from testbed.cli_pages import pages
from testbed.cli_serve import serve
from testbed.doors import Doors
from testbed.environment import differences
from testbed.errors import EXIT_INCONCLUSIVE, EXIT_OK, ConfigurationError
from testbed.exits import run_command
from testbed.label import label, varying
from testbed.manifest import Manifest, load_manifest, make_manifest
from testbed.model import Experiment
from testbed.plan import plan_trials
from testbed.progress import open_display
from testbed.run import run_experiment
from testbed.store import create_results
from testbed.tally import Tally

_log = log.logger(__name__)
pass_doors = click.make_pass_decorator(Doors)


def main(arguments: Sequence[str], doors: Doors) -> int:
    """Do what ``arguments`` say and return the process's exit code; none rebuild Table 1."""
    return run_command(testbed, args=list(arguments) or ["run"], prog_name="testbed", obj=doors)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def testbed() -> None:
    """Reproducible page loads: real TCP, real browsers, virtual time.

    Without a verb: `run configs/paper-table1.toml`, Table 1 of the TCP Fast Open paper.
    """


@click.command()
@choice_options
@click.option("--jobs", type=click.IntRange(1, 1024), help="Trials at once; default: one a core.")
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="DIR",
              help="The new results folder; default: results/<UTC>-<experiment>.")  # fmt: skip
@click.option("--resume", type=click.Path(path_type=Path), metavar="DIR",
              help="Go on with this results folder: run what has no ok record.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show the trials and run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Write the result as JSON.")
@pass_doors
def run(
    doors: Doors,
    /,
    jobs: int | None,
    output: Path | None,
    resume: Path | None,
    dry_run: bool,
    as_json: bool,
    **chosen: Any,
) -> int:
    """Run the experiment in CONFIG and print its table."""
    choice = Choice(**chosen)
    if resume is not None and (choice.given() or output):
        given = ", ".join([*choice.given(), *(["-o"] if output else [])])
        raise ConfigurationError([f"--resume {resume} goes on as planned: leave out {given}"])
    catalogue = doors.catalogue()
    old = load_manifest(resume) if resume is not None else None
    experiment = choice.load(catalogue) if old is None else choice.extend(old.experiment)
    if dry_run:
        _show_plan(experiment, as_json)
        return EXIT_OK
    jobs = jobs or len(os.sched_getaffinity(0))
    with places.using_cache(doors.cache()):
        means, environment = doors.prepare(experiment, jobs)
        if old is not None:
            _same_environment(resume, old, differences(environment, old.environment))
        now = doors.now().astimezone(UTC)
        manifest = make_manifest(
            experiment, environment, plan_trials(experiment), now, tuple(sys.argv[1:])
        )
        folder = resume or create_results(doors.results, experiment.name, now, output)
        tally = run_experiment(
            folder,
            manifest,
            means,
            open_display(),
            resume=old is not None,
            list_unsettled=doors.analysis.list_unsettled,
        )
    return _tell(doors, folder, tally, as_json)


@click.command()
@choice_options
@click.option("--json", "as_json", is_flag=True, help="Write the trials as JSON.")
@pass_doors
def plan(doors: Doors, /, as_json: bool, **chosen: Any) -> int:
    """Show the trials of the experiment in CONFIG and run nothing."""
    _show_plan(Choice(**chosen).load(doors.catalogue()), as_json)
    return EXIT_OK


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@pass_doors
def report(doors: Doors, /, directory: Path) -> int:
    """Write table.csv, summary.json and report.html of the results in DIR anew."""
    doors.analysis.write_reports(directory)
    click.echo(doors.analysis.render_terminal(directory).rstrip("\n"))
    return EXIT_OK


def _tell(doors: Doors, folder: Path, tally: Tally, as_json: bool) -> int:
    """Write the reports, print the table or the JSON, and say what is left to do."""
    if tally.interrupted:
        _log.error("interrupted: %s; go on with --resume %s", tally.sentence(), folder)
    else:
        doors.analysis.write_reports(folder)
        if not as_json:
            click.echo(doors.analysis.render_terminal(folder).rstrip("\n"))
        _log.info("%s; results in %s", tally.sentence(), folder)
        if tally.unsettled:
            _log.info(
                "%d intervals are wider than asked: %s; collect more with --resume %s --max-n N",
                len(tally.unsettled),
                "; ".join(tally.unsettled),
                folder,
            )
        if tally.exit_code not in (EXIT_OK, EXIT_INCONCLUSIVE):
            _log.info("run what is not ok again with --resume %s", folder)
    if as_json:
        result = asdict(tally) | {"results": str(folder), "exit_code": tally.exit_code}
        click.echo(json.dumps(result, indent=2))
    return tally.exit_code


def _show_plan(experiment: Experiment, as_json: bool) -> None:
    trials = plan_trials(experiment)
    if experiment.until_ci_pct is not None:
        _log.info(
            "the trials before the first look; repetitions are added until every interval is "
            "within +-%g %%, up to %d",
            experiment.until_ci_pct,
            experiment.max_repetitions,
        )
    if as_json:
        click.echo(json.dumps([{"id": trial.id, **asdict(trial)} for trial in trials], indent=2))
        return
    names = varying([trial.condition for trial in trials])
    for trial in trials:
        warm_up = " warm-up" * trial.warm_up
        click.echo(f"{trial.id}  {label(trial, names)} seed={trial.seed}{warm_up}")


def _same_environment(resume: Path | None, old: Manifest, differing: list[str]) -> None:
    if differing:
        raise ConfigurationError(
            [
                f"--resume {resume}: this environment is another than that of the results "
                f"({old.environment.id}); results are never mixed: make it the same, or start anew",
                *(f"differs: {difference}" for difference in differing),
            ]
        )


for _command in (run, plan, report, crosscheck, pages, serve, clean, doctor):
    testbed.add_command(_command)
