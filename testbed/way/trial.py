"""Trial, performed where its kernel runs: by what performs its kind, down to an observation.

Standard library only: this is what a guest executes.  ``testbed.way.judge`` turns what it leaves
behind (``observation.json`` and the capture) into a Record on the host.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module

from testbed.base.errors import MissingError, TestbedError
from testbed.client import CLIENTS
from testbed.client.interface import LoadTimeoutError
from testbed.kinds.workspace import Site
from testbed.model import OBSERVATION_FILE, TRIAL_FILE, Kind, Outcome, Trial

_PERFORMERS: dict[Kind, str] = {
    "page_load": "testbed.kinds.page_load.performance",
    "server_load": "testbed.kinds.server_load.performance",
    "scenario": "testbed.kinds.scenario.performance",
    "command": "testbed.kinds.command.performance",
}


@contextmanager
def prepared(client: str | None, site: Site) -> Iterator[Site]:
    """Do of the page loads of ``client`` what needs neither page nor condition; the undo ends it.

    What cannot be done is an obstacle to every trial that the site is for.
    """
    with ExitStack() as undo:
        there = site
        if client is not None:
            load = import_module(_PERFORMERS["page_load"])
            try:
                there = undo.enter_context(load.prepared(client, site))
            except (TestbedError, OSError) as error:
                there = replace(site, obstacle=error)
        yield there


def import_common() -> None:
    """Import what short trials need, page loads and scenarios, so that none of them has to."""
    for kind in ("page_load", "scenario"):
        import_module(_PERFORMERS[kind])
    tuple(CLIENTS.values())  # a client's module is imported when it is first asked for


def perform(trial: Trial, site: Site) -> dict[str, object]:
    """Perform ``trial`` and return the observation; what went wrong is part of it."""
    observation: dict[str, object] = {}
    performer = import_module(_PERFORMERS[trial.kind])
    try:
        if site.obstacle is not None:
            raise site.obstacle
        performer.perform(trial, site, observation)
    except (TestbedError, OSError) as error:
        observation["error"] = str(error)
        observation["outcome"] = _outcome(error)
    return observation


def _outcome(error: Exception) -> Outcome:
    """Return what an error means for the trial: not possible here, too slow, or a fault."""
    if isinstance(error, LoadTimeoutError):
        return "timeout"
    return "unsupported" if isinstance(error, MissingError) else "failed"


def main(site: Site) -> None:
    """Perform the trial described in ``site.out`` and leave the observation beside it."""
    trial = Trial.from_dict(json.loads((site.out / TRIAL_FILE).read_text()))
    started = time.monotonic()
    observation = perform(trial, site)
    observation["virtual_s"] = time.monotonic() - started
    partial = site.out / f"{OBSERVATION_FILE}.partial"
    partial.write_text(json.dumps(observation, sort_keys=True))
    partial.rename(site.out / OBSERVATION_FILE)
