"""Verb of scenarios: what the protocol promises, performed and judged on one kernel or several."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from firstflight.cli.choice import locked_option, names_of
from firstflight.cli.means import chosen_store, no_store_option
from firstflight.cli.reports import PROMISES_PAGE, REPORT_FILE, STYLES
from firstflight.cli.services import Services, pass_services
from testbed.base import log, places
from testbed.base.errors import EXIT_OK, ConfigurationError, worst_exit
from testbed.base.suggest import did_you_mean
from testbed.experiment.config import Catalogue, describe_no_version
from testbed.kernel import KERNELS
from testbed.kinds.scenario.description import KIND
from testbed.kinds.scenario.promise import PromiseError, read_promise
from testbed.kinds.scenario.spec import Scenario
from testbed.model import Experiment
from testbed.way.launch import open_lanes, run_lanes

ALL = "all"
TITLE = "What Fast Open and TLS early data promise"
_log = log.logger(__name__)


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME|FILE|all]...")
@click.option("--kernel", metavar=names_of(KERNELS), default="virtual", show_default=True,
              help="Kind of kernel.")  # fmt: skip
@click.option("--kernel-version", "versions", metavar="V", multiple=True,
              help="Which version; repeatable.  By default the newest; for all, 7.3 and 6.1."
              )  # fmt: skip
@locked_option
@click.option("--host", is_flag=True, help="And on this machine's own kernel, as root.")
@click.option("--jobs", type=click.IntRange(1, 1024), help="At once; default: one for each core.")
@no_store_option
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="DIR",
              help="The new results folder; default: results/<UTC>-scenarios.")  # fmt: skip
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write JUnit XML.")
@click.option("--style", type=click.Choice(STYLES), default="table",
              help="Print a table, Markdown, KTAP as kernel tests do, TAP 13 as netdev's CI reads "
                   "it, a run for its results.json, or KCIDB's JSON.")  # fmt: skip
@pass_services
def scenario(
    services: Services,
    /,
    names: tuple[str, ...],
    kernel: str,
    versions: tuple[str, ...],
    host: bool,
    jobs: int | None,
    no_store: bool,
    output: Path | None,
    junit: Path | None,
    style: str,
) -> int:
    """Test promises of TCP packet by packet; without a NAME, list the scenarios.

    FILE is a scenario of your own (docs/scenarios.md).  Exit status 1: a promise is broken.
    """
    catalogue = services.catalogue()
    if not names:
        for name, text in catalogue.libraries[KIND.name].items():
            click.echo(f"{name:26} {read_promise(text).title}")
        return EXIT_OK
    conditions = choose_scenarios(names, catalogue)
    experiments = plan_lanes(conditions, kernel, versions, host, ALL in names, catalogue)
    with places.using_cache(services.cache()):
        folder, lanes = open_lanes(
            services.prepare, experiments, jobs or len(os.sched_getaffinity(0)), services.results,
            output, services.now,
        )  # fmt: skip
        tallies = run_lanes(
            *(lanes, services.reports.list_unsettled, services.reports.draw_table),
            store=chosen_store(services, no_store),
        )
    # What a kernel lacks is an answer here, and no failure.
    codes = [replace(t, outcomes=t.outcomes | {"unsupported": 0}).exit_code for t in tallies]
    if tallies[-1].interrupted:
        _log.error("interrupted; the records so far are in %s", folder)
        return worst_exit(codes)
    promises = services.reports.present_promises(
        folder, [lane.folder for lane in lanes], style, junit
    )
    click.echo(promises.text)
    page = PROMISES_PAGE if len(lanes) > 1 else REPORT_FILE
    _log.info("report: %s", folder / page)
    return worst_exit([*codes, promises.exit_code])


def choose_scenarios(names: Sequence[str], catalogue: Catalogue) -> tuple[Scenario, ...]:
    """Return the scenarios that ``names`` are, each once: of the catalogue, files, or all.

    Raises:
        ConfigurationError: with every name that is none, and all that is wrong in the files.
    """
    known = catalogue.libraries[KIND.name]
    chosen: dict[str, str] = {}
    problems: list[str] = []
    for name in names:
        if name == ALL:
            chosen |= known
        elif name in known:
            chosen[name] = known[name]
        elif name.endswith(".toml"):
            try:
                chosen[Path(name).stem] = Path(name).read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                problems.append(f"cannot read {name}: {getattr(error, 'strerror', error)}")
        else:
            near = did_you_mean(name, known)
            problems.append(
                f"no scenario is named {name!r}{near}; ./run.sh scenario lists them, and a file "
                "of your own ends in .toml"
            )
    for name, text in chosen.items():
        try:
            read_promise(text)
        except PromiseError as error:
            problems += [f"{name}: {problem}" for problem in error.problems]
    if problems:
        raise ConfigurationError(problems)
    return tuple(Scenario(name, text) for name, text in chosen.items())


def plan_lanes(
    conditions: tuple[Scenario, ...],
    kernel: str,
    versions: Sequence[str],
    host: bool,
    everything: bool,
    catalogue: Catalogue,
) -> tuple[Experiment, ...]:
    """Return an experiment for each kernel.

    Raises:
        ConfigurationError: there is no such kernel, or no such version of it.
    """
    known = catalogue.kernels.get(kernel)
    if not known:
        near = did_you_mean(kernel, catalogue.kernels)
        allowed = ", ".join(sorted(catalogue.kernels))
        raise ConfigurationError([f"--kernel {kernel}: no such kernel{near}; allowed: {allowed}"])
    problems = [
        f"--kernel-version {version}: {describe_no_version(kernel, version, known)}"
        for version in versions
        if version not in known
    ]
    if problems:
        raise ConfigurationError(problems)
    regular = tuple(version for version in known if version in catalogue.regular) or known
    chosen_versions = tuple(dict.fromkeys(versions)) or (regular if everything else known[:1])
    kernels = [(kernel, version) for version in chosen_versions]
    if host and kernel != "host":
        kernels += [("host", version) for version in catalogue.kernels["host"][:1]]
    return tuple(
        Experiment(
            "scenarios", TITLE, conditions, kernel=name, kernel_version=version,
            warmup_blocks=0, kind=KIND.name,
        )
        for name, version in kernels
    )  # fmt: skip
