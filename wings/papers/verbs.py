"""The verbs of many results: ``history`` over time, ``site`` over kernels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from analysis.records.metric import Metric
from analysis.tables.columns import Column
from analysis.words import clean
from firstflight.cli.baseline import baseline_of
from firstflight.cli.listing import print_columns
from firstflight.cli.metric import metric_option
from firstflight.cli.services import Services, pass_services
from testbed.base.errors import EXIT_OK
from testbed.experiment.lanes import read_lanes
from wings.papers.history.database import open_history
from wings.papers.history.page import write_trend
from wings.papers.history.runs import KeptRun, keep_run, read_runs
from wings.papers.site.pages import INDEX, write_site

HISTORY_FILE = "history.sqlite"
TREND_FILE = "history.html"
_folder = click.Path(path_type=Path)


@click.group()
def history() -> None:
    """History of runs: add, list, page."""


_history_option = click.option("--history", "database", type=_folder, metavar="FILE",
                               help="The database; default: results/history.sqlite.")  # fmt: skip


@history.command()
@click.argument("results", metavar="RESULTS...", nargs=-1, required=True, type=_folder)
@click.option("--baseline", "against", type=_folder, metavar="DIR",
              help="Baseline to compare with; default: that of its experiment.")  # fmt: skip
@_history_option
@pass_services
def add(services: Services, /, results: tuple[Path, ...], against: Path | None,
        database: Path | None) -> int:  # fmt: skip
    """Add RESULTS to the history; adding a folder twice changes nothing.

    A run on several kernel versions is added once for each of them.
    """
    lanes = [folder / lane for folder in results for lane in read_lanes(folder) or (".",)]
    for folder in lanes:
        base = against or baseline_of(services, folder)
        outcome = keep_run(_database(services, database), folder, base)
        click.echo(outcome)
    return EXIT_OK


@history.command("list")
@click.option("--json", "as_json", is_flag=True, help="Write the runs as JSON.")
@_history_option
@pass_services
def list_runs(services: Services, /, as_json: bool, database: Path | None) -> int:
    """List the runs, the oldest first."""
    with open_history(_database(services, database)) as connection:
        runs = read_runs(connection)
    if as_json:
        click.echo(json.dumps([asdict(run) for run in runs], indent=2))
    else:
        print_columns(_columns(runs))
    return EXIT_OK


@history.command()
@click.option("-o", "output", type=_folder, metavar="FILE",
              help="Where to; default: results/history.html.")  # fmt: skip
@click.option("--last", type=click.IntRange(1, 10000), default=100, show_default=True,
              help="Runs of each lane to show.")  # fmt: skip
@metric_option
@_history_option
@pass_services
def page(services: Services, /, output: Path | None, last: int, metric: Metric,
         database: Path | None) -> int:  # fmt: skip
    """Write the trend page: every cell over the runs, as one HTML file."""
    target = output or services.results / TREND_FILE
    click.echo(write_trend(_database(services, database), target, last, metric))
    return EXIT_OK


def _columns(runs: Sequence[KeptRun]) -> list[Column]:
    kernels = [clean(f"{run.kernel} {run.kernel_version}") for run in runs]
    started = [clean(run.created_utc[:19].replace("T", " ")) for run in runs]
    return [
        Column("run, UTC", started, left=True),
        Column("experiment", [clean(run.experiment) for run in runs], left=True),
        Column("kernel", kernels, left=True),
        Column("verdict", [run.verdict or "not compared" for run in runs], left=True),
        Column("git", [clean(run.git_revision[:12]) for run in runs], 1, left=True),
    ]


def _database(services: Services, chosen: Path | None) -> Path:
    return chosen or services.results / HISTORY_FILE


@click.command()
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=_folder)
@click.option("-o", "output", type=_folder, metavar="OUT",
              help="The new or empty folder; default: the first DIR's name and -site, here."
              )  # fmt: skip
@click.option("--steps", "stated", metavar="FILE",
              type=click.Path(path_type=Path, dir_okay=False),
              help="The commits of the steps, as TOML; default: steps.toml in any DIR."
              )  # fmt: skip
def site(directories: tuple[Path, ...], output: Path | None, stated: Path | None) -> int:
    """Make a static web site of the results in DIR...: kernels by page loads and promises.

    DIR is a results folder of page loads or scenarios, or a run on several kernels.  The site has
    one figure over the releases, the matrix, and a page for each load and promise with its proof
    and a copy of its packets.  It needs no server, and loads nothing from elsewhere.
    """
    out = output or Path(f"{directories[0].resolve().name}-site")
    click.echo(f"{out / INDEX}: {write_site(directories, out, stated)}")
    return EXIT_OK
