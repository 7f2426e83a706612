"""The verb ``saturation``: the rate that a server keeps up with, found by bisection."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import click

from firstflight.cli.choice import Choice, choice_options
from firstflight.cli.services import Services, pass_services
from testbed.base import log, places
from testbed.base.errors import EXIT_OK, ConfigurationError, TrialError
from testbed.experiment.options import Override
from testbed.model import Experiment, Record
from testbed.results.progress import open_display
from testbed.runner.launch import open_lanes, run_next
from wings.server_loads.saturation import BEGIN, plan_search, search_saturation
from wings.server_loads.spec import RATE

_log = log.logger(__name__)


@click.command()
@choice_options
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="DIR",
              help="The new folder; default: results/<UTC>-<experiment>-saturation.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Write the bounds as JSON.")
@pass_services
def saturation(services: Services, /, output: Path | None, as_json: bool, **chosen: Any) -> int:
    """Find the greatest rate that the server in CONFIG keeps up with.

    It bisects with the first condition of the sweep; if mechanisms are swept, that is default.
    Write the result into CONFIG as saturation_per_s; its rates are multiples of that.
    """
    # Whatever rates the file has, the search has its own.
    rate = Override(RATE, str(BEGIN), "saturation")
    sweep = Choice(**chosen).load(services.catalogue(), (rate,))
    if sweep.kernel_versions or sweep.roots:
        raise ConfigurationError(
            [f"{sweep.name}: a search has one kernel and one root; name them with --kernel-version "
             "and --set root=NAME"]
        )  # fmt: skip
    experiment = plan_search(sweep)
    with places.using_cache(services.cache()):
        folder, (lane,) = open_lanes(
            services.prepare, (experiment,), 1, services.results, output, services.now
        )
        display = open_display(partial(services.reports.draw_table, experiment))

        def measure(part: Experiment) -> Record:
            return run_next(lane, part, display, services.now())

        bounds = None
        for bounds in search_saturation(experiment, measure):
            _log.info("between %d and %d connections a second", bounds.kept, bounds.lost)
    services.reports.write(folder)
    _log.info("results in %s", folder)
    if bounds is None:
        raise TrialError(
            f"{sweep.name}: the server keeps up with every possible rate, or with none; set price, "
            "or the cost of a request"
        )
    if as_json:
        click.echo(json.dumps({"results": str(folder), "kept": bounds.kept, "lost": bounds.lost}))
        return EXIT_OK
    click.echo(
        f"kept up with {bounds.kept} connections a second, not with {bounds.lost}: set "
        f"saturation_per_s = {bounds.kept} at the top of the file, or --set "
        f"saturation_per_s={bounds.kept}"
    )
    return EXIT_OK
