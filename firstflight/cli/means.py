"""Means of a run on the command line: which part of the plan, by which machines, what is kept."""

from __future__ import annotations

import click

from firstflight.cli.choice import join_options
from firstflight.cli.services import Services
from testbed.base.errors import ConfigurationError
from testbed.experiment.shards import parse_shard, parse_share, refuse_shard
from testbed.model import Experiment
from testbed.results.manifest import KEPT_LEAST_FIRST, KeepCaptures
from testbed.results.store import VARIABLE, TrialStore, open_store
from testbed.runner.stored import VERIFY_PCT

MEANS = ("shard", "overlap", "no_store", "verify", "keep")
"""The options by the names of click's parameters."""

no_store_option = click.option(
    "--no-store", is_flag=True,
    help=f"Measure everything; take nothing from the store of results ({VARIABLE}).",
)  # fmt: skip
means_options = join_options(
    click.option("--shard", metavar="K/N",
                 help="Only part K of N of the plan; ./run.sh merge puts the parts together."),
    click.option("--overlap", metavar="PCT",
                 help="Share of trials that two machines run, and that must be equal to the bit, "
                      "taken from the next part."),
    no_store_option,
    click.option("--verify", metavar="PCT",
                 help="Share of the loads taken from the store that run again, and must be equal "
                      f"to the bit; default: {VERIFY_PCT:g}%."),
    click.option("--keep", metavar="captures=WHICH",
                 help="Which packet captures to keep: "
                      f"[{'|'.join(KEPT_LEAST_FIRST)}]; fragile are those of loads that failed or "
                      "waited for a timer.  Default: all."),
)  # fmt: skip
"""The options that make Means."""


class Means:
    """How a run is done, as the command line says; ``None`` is what it does not say."""

    def __init__(
        self, shard: str | None, overlap: str | None, no_store: bool,
        verify: str | None, keep: str | None,
    ) -> None:  # fmt: skip
        """Read what was typed.

        Raises:
            ConfigurationError: with every problem.
        """
        problems: list[str] = []
        self.no_store = no_store
        self._planned = {"--shard": shard, "--overlap": overlap, "--keep": keep}
        try:
            self.shard = parse_shard(shard, overlap)
        except ConfigurationError as error:
            problems += error.problems
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


def chosen_store(services: Services, no_store: bool) -> TrialStore | None:
    """Open the store of results; ``None``: there is none, or ``--no-store`` was said.

    Raises:
        ConfigurationError, MissingError, StorageError: it cannot be reached.
    """
    return None if no_store else open_store(services.cache())


def _parse_kept(text: str | None, problems: list[str]) -> KeepCaptures:
    """Return of which loads captures are kept; what is wrong is a new problem."""
    wanted = {f"captures={name}": name for name in KEPT_LEAST_FIRST}
    if text is not None and text not in wanted:
        problems.append(f"--keep {text}: write one of {', '.join(wanted)}")
    return wanted.get(text or "", "all")
