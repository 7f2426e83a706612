"""Entry point of the bench: measure what was asked for, print the table, write the JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from bench import (
    bootstrap,
    cost,
    generator,
    growth,
    host_link,
    host_load,
    importing,
    reporting,
    server_price,
    sweeps,
    table1,
    verdicts,
    visit_cost,
)
from bench.result import Result, all_met, table, write_json
from bench.work import Work, read_machine
from firstflight.cli.exits import run_command
from testbed.base import log, places
from testbed.base.errors import EXIT_OK, EXIT_OUT_OF_TOLERANCE, ConfigurationError, TestbedError
from testbed.base.scratch import scratch_folder
from testbed.base.suggest import did_you_mean

LONG = frozenset({"table1-chromium-n20", "sweeps", "growth", "false-alarms", "planted-regressions"})
# Where standard output is no terminal.
WIDTH = 150
Measure = Callable[[Work], Result]

MEASUREMENTS: dict[str, Measure] = {
    "cost": cost.measure, "visit-cost": visit_cost.measure, "table1-graph": table1.measure_graph,
    "table1-chromium": table1.measure_chromium, "table1-default": table1.measure_default,
    "table1-chromium-n20": table1.measure_seeds, "host-lab": host_link.measure_lab,
    "host-rtt": host_link.measure_round_trips, "host-goodput": host_link.measure_goodput,
    "host-load": host_load.measure, "generator": generator.measure,
    "server-price": server_price.measure, "nginx-price": server_price.measure_nginx,
    "report": reporting.measure, "growth": growth.measure, "sweeps": sweeps.measure,
    "notebooks": sweeps.measure_notebooks, "false-alarms": verdicts.measure_false_alarms,
    "planted-regressions": verdicts.measure_plants, "importing": importing.measure,
    "bootstrap-again": bootstrap.measure_again, "bootstrap-fresh": bootstrap.measure_fresh,
}  # fmt: skip
"""Every measurement by its name, in the order in which they are made."""

_log = log.logger("testbed.bench")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", multiple=True, metavar="NAME",
              help="Only this measurement, or all whose names begin so.  Repeatable.")  # fmt: skip
@click.option("--quick", is_flag=True, help="Fewer repetitions; a third of the table.")
@click.option("--full", is_flag=True, help="Run all 480 loads and all sweeps, not a share of them.")
@click.option("--fresh", is_flag=True, help="Also bootstrap a clone into an empty cache.")
@click.option("--list", "listing", is_flag=True, help="List the measurements' names.")
@click.option("-o", "output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="The JSON; default: results/bench-<UTC>.json.")  # fmt: skip
def bench(
    only: tuple[str, ...], quick: bool, full: bool, fresh: bool, listing: bool, output: Path | None
) -> int:
    """Measure the numbers to reach; exit status 1 when one is missed."""
    if listing:
        click.echo("\n".join(MEASUREMENTS))
        return EXIT_OK
    names = select(only, tuple(MEASUREMENTS))
    machine, now = read_machine(), datetime.now(UTC)
    if not machine.idle:
        _log.warning("the machine is not idle (load %.2f): times will be high", machine.load)
    results = []
    with places.using_cache(places.cache()), scratch_folder("bench") as scratch:
        work = Work(
            scratch,
            machine,
            quick=quick,
            # Who names a long measurement wants it measured.
            full=full or bool(LONG & set(only)),
            fresh=fresh or "bootstrap-fresh" in only,
        )
        for name in names:
            _log.info("bench: %s", name)
            results.append(attempt(name, MEASUREMENTS[name], work))
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print(table(results, machine))
    path = output or places.RESULTS / f"bench-{now:%Y%m%dT%H%M%SZ}.json"
    written = write_json(path, results, machine, now, quick)
    _log.info("written: %s", ", ".join(map(str, written)))
    return EXIT_OK if all_met(results) else EXIT_OUT_OF_TOLERANCE


def attempt(name: str, measure: Measure, work: Work) -> Result:
    """Measure and return the result; one that fails is a target missed, and the others go on."""
    try:
        return measure(work)
    except TestbedError as error:
        _log.error("bench: %s: %s", name, error)
        first = str(error).partition("\n")[0][:200]
        details = {"error": str(error)}
        return Result(name, "to be measured", "failed", "missed", 0, first, details=details)


def select(only: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return the names that ``only`` asks for, in their order; all for none.

    Raises:
        ConfigurationError: nothing has such a name.
    """
    problems = [
        f"--only {prefix}: no such measurement{did_you_mean(prefix, names)}"
        for prefix in only
        if not any(name.startswith(prefix) for name in names)
    ]
    if problems:
        raise ConfigurationError(problems)
    # A full name selects itself alone: table1-chromium does not select table1-chromium-n20.
    selections = [
        {prefix} if prefix in names else {name for name in names if name.startswith(prefix)}
        for prefix in only
    ]
    return tuple(name for name in names if not only or any(name in each for each in selections))


def main() -> int:
    """Run the command; return the exit code."""
    return run_command(bench, prog_name="bench")


if __name__ == "__main__":
    sys.exit(main())
