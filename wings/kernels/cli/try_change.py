"""The verb ``kernel try``: what a patch does to page load times, in one command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click

from analysis.records.metric import Metric
from firstflight.cli.choice import Choice, sweep_options
from firstflight.cli.ended import write_reports
from firstflight.cli.means import no_store_option
from firstflight.cli.metric import metric_option
from firstflight.cli.new_run import run_new
from firstflight.cli.services import Services, pass_services
from testbed.base import log, places
from testbed.base.errors import (
    EXIT_INCOMPLETE,
    EXIT_OUT_OF_TOLERANCE,
    ConfigurationError,
    TrialError,
    worst_exit,
)
from testbed.base.scratch import scratch_folder
from testbed.experiment.lanes import split
from testbed.experiment.options import Override
from wings.kernels.cli.source import KernelSource, keep_kernels, source_options
from wings.kernels.own.build import write_source
from wings.kernels.own.definition import OwnKernel, forget_own
from wings.kernels.own.function_coverage import (
    functions_run,
    instrument,
    list_functions,
    makefile_of,
    say_coverage,
)
from wings.kernels.verdicts.printed import STYLES, STYLES_HELP, show_verdicts
from wings.kernels.verdicts.table import FailOn, FailRule, attribute_lanes

CONFIG = places.CONFIGS / "kernel-try.toml"
_log = log.logger(__name__)

_file = click.Path(path_type=Path, dir_okay=False)


@click.command("try")
@click.argument("patches", metavar="[PATCH]...", nargs=-1, type=click.Path(path_type=Path))
@source_options
@click.option(
    "--against",
    metavar="REV",
    help="With --git: what it is compared with; default: HEAD, or the parent of REV.",
)
@click.option("--name", default="try", show_default=True, help="Keep the kernel under this name.")
@click.option("--experiment", type=_file, default=CONFIG, metavar="CONFIG",
              help="The cells to load; default: configs/kernel-try.toml.")  # fmt: skip
@sweep_options
@click.option("--jobs", type=click.IntRange(1, 1024), help="Trials at once.")
@no_store_option
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="DIR",
              help="The new results folder; default: results/<UTC>-<experiment>.")  # fmt: skip
@click.option("--fail-on", type=click.Choice(get_args(FailOn)), default="slower", show_default=True,
              help="Exit with 1 if a cell is slower, or has any other packet.")  # fmt: skip
@click.option("--min-effect", "least_pct", type=float, default=0.0, metavar="PCT",
              help="By how many percent a cell must be slower to fail.")  # fmt: skip
@click.option("--style", type=click.Choice(STYLES), default="table", show_default=True,
              help=STYLES_HELP)  # fmt: skip
@metric_option
@click.option(
    "--what", "covered", metavar="FILE", multiple=True,
    help="Also list the functions of this source file that no cell runs; repeatable."
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Write the verdicts as JSON.")
@click.option("--junit", type=_file, metavar="FILE", help="Write JUnit XML as well.")
@click.option("--markdown", type=_file, metavar="FILE", help="Write text for a mail as well.")
@pass_services
def try_command(services: Services, /, patches: tuple[Path, ...], git: Path | None,
                revision: str | None, base: str | None, fragments: tuple[Path, ...], series: bool,
                each: bool, reverse: bool, fuzz: int, against: str | None, name: str,
                experiment: Path, jobs: int | None, no_store: bool, output: Path | None,
                fail_on: FailOn, least_pct: float, style: str, metric: Metric,
                covered: tuple[str, ...], as_json: bool, junit: Path | None, markdown: Path | None,
                **chosen: Any) -> int:  # fmt: skip
    """Say what PATCH does to page load times: build, load, compare, cell by cell.

    PATCH is a patch or a mailbox of patches.  With --git it may be left out: then a commit is
    compared with its parent, or a changed work tree with its last commit.

    Exit code: 0 no cell fails, 1 one does, 5 inconclusive, 2 and 3 PATCH cannot be tried.
    """
    source = KernelSource(git, revision, base, fragments, series, each, reverse, fuzz)
    kernels = source.define(name, patches)
    first = _first(source, kernels[0], against, bool(patches or fragments))
    kept = [*([first] if first else []), *kernels]
    keep_kernels(services, kept, replaced=True)
    lanes = [first.name if first else base or kernels[0].base, *(kernel.name for kernel in kernels)]
    fixed = [Override("kernel.versions", json.dumps(lanes), "the kernels to compare")]
    choice = Choice(config=experiment, **chosen)
    planned = split(choice.load(services.catalogue(), fixed))
    run = run_new(services, planned, output, jobs=jobs, metric=metric, no_store=no_store,
                  copies=False)  # fmt: skip
    run.say_tallies()
    # What is not proven is a verdict, too: on the new kernel alone it fails, on both it does not.
    codes = [tally.exit_code for tally in run.tallies if tally.exit_code != EXIT_OUT_OF_TOLERANCE]
    if run.interrupted:
        return worst_exit(codes)
    write_reports(services, run.folder, metric)
    attribution, rule = attribute_lanes(run.folder, metric), FailRule(fail_on, least_pct)
    show_verdicts(attribution, rule, style, as_json, junit, markdown)
    if covered:
        for sentence in _find_coverage(services, kernels[-1], covered, choice):
            click.echo(sentence, err=as_json or style != "table")
    # What a kernel broke is no gap in the results: a verdict says so.
    broken = any("broken" in lane.counts for lane in attribution.lanes)
    if broken and run.tallies[0].exit_code != EXIT_INCOMPLETE:
        codes = [code for code in codes if code != EXIT_INCOMPLETE]
    return worst_exit([*codes, attribution.exit_code(rule)])


def _first(
    source: KernelSource, kernel: OwnKernel, against: str | None, changed: bool
) -> OwnKernel | None:
    """Return the kernel to compare with where it is of the same git tree; ``None``: it is a base.

    ``changed`` says that patches or options are tried on the tree, and not the tree itself.
    """
    if source.git is None or kernel.git is None:
        if against is not None:
            raise ConfigurationError(
                [f"--against {against} names a revision of a git tree: give --git DIR, too, or "
                 "compare with another kernel by --base"]
            )  # fmt: skip
        return None
    name = f"{kernel.name}-base"
    if against is None and changed:
        return replace(kernel, name=name, patches=(), options=())
    parent = f"{kernel.git.commit}^" if kernel.git.revision != "work tree" else kernel.git.commit
    other = KernelSource(source.git, against or parent, kernel.base, source.fragments, False, False)
    return other.define(name, ())[0]


def _find_coverage(
    services: Services, kernel: OwnKernel, files: Sequence[str], choice: Choice
) -> list[str]:
    """Load each cell once on ``kernel``, and say which functions of ``files`` none has run.

    Raises:
        ConfigurationError: the source has no such files.
        TestbedError: the kernel cannot be built so, or a load has no console.
    """
    cache = services.cache()
    with places.using_cache(cache), scratch_folder("kernel") as scratch:
        source, results = scratch / "source", scratch / "results"
        source.mkdir()
        write_source(kernel, {*files, *map(makefile_of, files)}, source, cache, _log.info)
        functions = {file: list_functions((source / file).read_text()) for file in files
                     if (source / file).is_file()}  # fmt: skip
        name = f"{kernel.name[:35]}-what"  # 40 at most, and never the kernel's own
        counted = instrument(kernel, files, source, name)
        keep_kernels(services, [counted], replaced=True)
        try:
            fixed = [Override("kernel.version", name, "the kernel that says what runs")]
            planned = replace(choice.load(services.catalogue(), fixed), repetitions=1)
            run = run_new(services, (planned,), results, copies=False)
        finally:
            forget_own(name, places.data())
        if run.interrupted:
            raise TrialError("interrupted before all cells had run")
        consoles = sorted(results.glob("trials/*/console.log"))
        ran = functions_run(path.read_text("latin-1") for path in consoles)
    return say_coverage(functions, ran)
