"""Trial, performed where its kernel runs: by what performs its kind, down to an observation.

Standard library only: this is what a guest executes.  ``testbed.runner.judge`` turns what it leaves
behind (``observation.json`` and the capture) into a Record on the host.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from importlib import import_module

from testbed.base.errors import MissingError, TestbedError
from testbed.client import CLIENTS
from testbed.client.interface import LoadTimeoutError
from testbed.kinds import KINDS, read_trial
from testbed.kinds.workspace import Site
from testbed.model import OBSERVATION_FILE, TRIAL_FILE, Opening, Outcome, Trial

CALLS = 1000


@contextmanager
def prepared(opening: Opening, site: Site) -> Iterator[Site]:
    """Do of trials with a client's ``opening`` what needs no more of them; the undo ends it.

    What cannot be done is an obstacle to every trial that the site is for.
    """
    with ExitStack() as undo:
        there = site
        if opening.client:
            from testbed.kinds.page_lab import begun_early  # nothing that other trials need

            try:
                there = undo.enter_context(begun_early(opening, site))
            except (TestbedError, OSError) as error:
                there = replace(site, obstacle=error)
        yield there


def import_common() -> None:
    """Import what short trials need, so that none of them has to."""
    for kind in KINDS.values():
        if kind.short:
            import_module(kind.performance)
    tuple(CLIENTS.values())  # a client's module is imported when it is first asked for


def perform(trial: Trial, site: Site) -> dict[str, object]:
    """Perform ``trial`` and return the observation; what went wrong is part of it."""
    observation: dict[str, object] = {"trial": asdict(trial)}
    performer = import_module(KINDS[trial.kind].performance)
    try:
        if site.obstacle is not None:
            raise site.obstacle
        performer.perform(trial, site, observation)
    except (TestbedError, OSError) as error:
        observation["error"] = str(error)
        observation["outcome"] = _outcome(error)
    return observation


def price_system_call() -> float:
    """Return what a system call costs by the clock of this kernel, in ns: the mean of many."""
    began_ns = time.monotonic_ns()
    for _ in range(CALLS):
        os.getppid()
    return (time.monotonic_ns() - began_ns) / CALLS


def _outcome(error: Exception) -> Outcome:
    """Return what an error means for the trial: not possible here, too slow, or a fault."""
    if isinstance(error, LoadTimeoutError):
        return "timeout"
    return "unsupported" if isinstance(error, MissingError) else "failed"


def main(site: Site) -> None:
    """Perform the trial described in ``site.out`` and leave the observation beside it."""
    trial = read_trial(json.loads((site.out / TRIAL_FILE).read_text()))
    started = time.monotonic()
    observation = perform(trial, site)
    if getattr(trial.condition, "jitter", "none") != "none":
        observation["system_call_ns"] = price_system_call()
    observation["virtual_s"] = time.monotonic() - started
    partial = site.out / f"{OBSERVATION_FILE}.partial"
    partial.write_text(json.dumps(observation, sort_keys=True))
    partial.rename(site.out / OBSERVATION_FILE)
