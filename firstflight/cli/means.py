"""Means of a run on the command line: which part of the plan, by which machines, what is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from firstflight.cli.services import Services
from testbed.base.errors import ConfigurationError
from testbed.experiment.shards import parse_shard, parse_share, refuse_shard
from testbed.model import Experiment, in_real_time
from testbed.results.manifest import KEPT_LEAST_FIRST, KeepCaptures
from testbed.results.store import VARIABLE, TrialStore, open_store
from testbed.way.cluster import OVERLAP_PCT
from testbed.way.launch import RunLane, run_here, run_on
from testbed.way.local import Perform
from testbed.way.stored import VERIFY_PCT

Command = Callable[..., Any]
MEANS = ("shard", "on", "overlap", "no_store", "verify", "keep")
"""The options by the names of click's parameters."""

no_store_option = click.option(
    "--no-store", is_flag=True,
    help=f"Measure everything; take nothing from the store of results ({VARIABLE}).",
)  # fmt: skip
_OPTIONS = (
    click.option("--shard", metavar="K/N",
                 help="Only part K of N of the plan; ./run.sh merge puts the parts together."),
    click.option("--on", metavar="dask://HOST:PORT",
                 help="Run the trials on the workers of this Dask cluster."),
    click.option("--overlap", metavar="PCT",
                 help="Share of trials that two machines run, and that must be equal to the bit: "
                      "with --shard taken from the next part; with --on by default "
                      f"{OVERLAP_PCT:g}%."),
    no_store_option,
    click.option("--verify", metavar="PCT",
                 help="Share of the loads taken from the store that run again, and must be equal "
                      f"to the bit; default: {VERIFY_PCT:g}%."),
    click.option("--keep", metavar="captures=WHICH",
                 help="Which packet captures to keep: "
                      f"[{'|'.join(KEPT_LEAST_FIRST)}]; fragile are those of loads that failed or "
                      "waited for a timer.  Default: all."),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Opened:
    """What a run is done with: what performs a lane's trials, and where results are kept."""

    performing: Callable[[RunLane], Perform]
    store: TrialStore | None


class Means:
    """How a run is done, as the command line says; ``None`` is what it does not say."""

    def __init__(
        self, shard: str | None, on: str | None, overlap: str | None, no_store: bool,
        verify: str | None, keep: str | None,
    ) -> None:  # fmt: skip
        """Read what was typed.

        Raises:
            ConfigurationError: with every problem.
        """
        problems: list[str] = []
        self.on, self._no_store = on, no_store
        self._planned = {"--shard": shard, "--keep": keep}
        if on is None:
            self._planned["--overlap"] = overlap
        try:
            self.shard = parse_shard(shard, overlap if on is None else None)
        except ConfigurationError as error:
            problems += error.problems
        self._overlap_pct = OVERLAP_PCT
        if on is not None and overlap is not None:
            self._overlap_pct = parse_share("--overlap", overlap, problems)
        self.verify_pct = VERIFY_PCT
        if verify is not None:
            self.verify_pct = parse_share("--verify", verify, problems)
        self.keep_captures = _parse_kept(keep, problems)
        if problems:
            raise ConfigurationError(problems)

    def planned(self) -> tuple[str, ...]:
        """Return the options given that a resumed run has from its beginning."""
        return tuple(name for name, value in self._planned.items() if value is not None)

    def refuse(self, experiment: Experiment) -> None:
        """Let only an experiment pass that can be run so.

        Raises:
            ConfigurationError: with every problem.
        """
        if self.shard is not None:
            refuse_shard(self.shard, experiment)
        if self.on is not None and in_real_time(experiment.kernel):
            raise ConfigurationError(
                [f"--on {self.on}: kernel {experiment.kernel} measures in real time, where "
                 "machines differ; a cluster is for the virtual kernel"]
            )  # fmt: skip

    @contextmanager
    def opened(self, services: Services) -> Iterator[Opened]:
        """Connect to the engine, if there is one, and open the store, for the time of the block.

        Raises:
            ConfigurationError, MissingError, StorageError: one of them cannot be reached.
        """
        with ExitStack() as undo:
            performing: Callable[[RunLane], Perform] = run_here
            if self.on is not None:
                pool = undo.enter_context(services.pool(self.on))
                performing = partial(run_on, pool, overlap_pct=self._overlap_pct)
            yield Opened(performing, chosen_store(services, self._no_store))


def chosen_store(services: Services, no_store: bool) -> TrialStore | None:
    """Open the store of results; ``None``: there is none, or ``--no-store`` was said.

    Raises:
        ConfigurationError, MissingError, StorageError: it cannot be reached.
    """
    return None if no_store else open_store(services.cache())


def means_options(command: Command) -> Command:
    """Give ``command`` the options that make Means."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _parse_kept(text: str | None, problems: list[str]) -> KeepCaptures:
    """Return of which loads captures are kept; what is wrong is a new problem."""
    wanted = {f"captures={name}": name for name in KEPT_LEAST_FIRST}
    if text is not None and text not in wanted:
        problems.append(f"--keep {text}: write one of {', '.join(wanted)}")
    return wanted.get(text or "", "all")
