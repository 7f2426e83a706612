"""Verb of scenarios: what the protocol promises, performed and judged on one kernel or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from analysis.formats.forms import FORMS, FORMS_HELP
from firstflight.cli.choice import locked_option, names_of
from firstflight.cli.means import no_store_option
from firstflight.cli.new_run import run_new
from firstflight.cli.reports import REPORT_FILE, read_width
from firstflight.cli.services import Services, pass_services
from testbed.base import log
from testbed.base.errors import EXIT_OK, worst_exit
from testbed.base.whole_file import write_whole
from testbed.kernel import KERNELS
from wings.scenarios.choice import ALL, choose_scenarios, plan_lanes
from wings.scenarios.description import KIND
from wings.scenarios.promise import read_promise

PROMISES_PAGE = "promises.html"
STYLES = ("table", "markdown", *FORMS)
"""How the table of promises may be printed."""
_log = log.logger(__name__)


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME|FILE|all]...")
@click.option("--kernel", metavar=names_of(KERNELS), default="virtual", show_default=True,
              help="Kind of kernel.")  # fmt: skip
@click.option("--kernel-version", "versions", metavar="V", multiple=True,
              help="Kernel version; repeatable.  Default: the newest; for all, 7.3 and 6.1."
              )  # fmt: skip
@locked_option
@click.option("--host", is_flag=True, help="Also on this machine's own kernel, as root.")
@click.option("--jobs", type=click.IntRange(1, 1024), help="At once; default: one for each core.")
@no_store_option
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="DIR",
              help="The new results folder; default: results/<UTC>-scenarios.")  # fmt: skip
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write JUnit XML.")
@click.option("--style", type=click.Choice(STYLES), default="table",
              help=f"Print a table, Markdown, {FORMS_HELP}.")  # fmt: skip
@pass_services
def scenario(
    services: Services, /, names: tuple[str, ...], kernel: str, versions: tuple[str, ...],
    host: bool, jobs: int | None, no_store: bool, output: Path | None, junit: Path | None,
    style: str,
) -> int:  # fmt: skip
    """Test promises of TCP packet by packet; without a NAME, list the scenarios.

    FILE is a scenario of your own (wings/scenarios/README.md).  Exit status 1: a promise is broken.
    """
    catalogue = services.catalogue()
    if not names:
        for name, text in catalogue.libraries[KIND.name].items():
            click.echo(f"{name:26} {read_promise(text).title}")
        return EXIT_OK
    conditions = choose_scenarios(names, catalogue)
    experiments = plan_lanes(conditions, kernel, versions, host, ALL in names, catalogue)
    run = run_new(services, experiments, output, jobs=jobs, no_store=no_store)
    # What a kernel lacks is an answer here, and no failure.
    codes = [replace(t, outcomes=t.outcomes | {"unsupported": 0}).exit_code for t in run.tallies]
    if run.interrupted:
        _log.error("interrupted; the records so far are in %s", run.folder)
        return worst_exit(codes)
    lanes = [lane.folder for lane in run.lanes]
    text, exit_code = present_promises(run.folder, lanes, style, junit)
    click.echo(text)
    page = PROMISES_PAGE if len(lanes) > 1 else REPORT_FILE
    _log.info("report: %s", run.folder / page)
    return worst_exit([*codes, exit_code])


def present_promises(
    folder: Path, lanes: Sequence[Path], style: str, junit: Path | None
) -> tuple[str, int]:
    """Judge the scenarios of a run on one kernel or several, in ``style``: one of STYLES.

    Of several, a page with all of them goes into the run's folder.  Return the table for a
    terminal, and the exit code that follows from it.

    Raises:
        StorageError: a file cannot be written.
    """
    from analysis.report.document import write_reports
    from wings.scenarios.analysis.page import render_promises_page
    from wings.scenarios.analysis.promises import make_promises
    from wings.scenarios.analysis.suite import render_junit, suites_of
    from wings.scenarios.analysis.terminal import render_markdown, render_promises

    table = make_promises([write_reports(lane) for lane in lanes])
    if len(lanes) > 1:
        remedy = f"make room or check the permissions of {folder}, then run it again"
        write_whole(folder / PROMISES_PAGE, render_promises_page(table), remedy)
    if junit is not None:
        write_whole(junit, render_junit(table), f"check that {junit.parent} can be written")
    if style in FORMS:
        text = FORMS[style].write(suites_of(table))
    elif style == "markdown":
        text = render_markdown(table)
    else:
        text = render_promises(table, read_width())
    return text.rstrip("\n"), table.exit_code
