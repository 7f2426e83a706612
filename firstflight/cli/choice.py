"""Choice of an experiment on the command line: the file, and the options that change it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from testbed.base import places
from testbed.base.errors import ConfigurationError
from testbed.experiment.config import Catalogue, load_experiment
from testbed.experiment.options import Override, parse_override, select
from testbed.model import FIRST_LOOK, Experiment

Command = Callable[..., Any]

_OPTIONS: tuple[Callable[[Command], Command], ...] = (
    click.argument("config", required=False, type=click.Path(path_type=Path)),
    click.option("--kernel", metavar="NAME", help="Kind of kernel, such as virtual."),
    click.option("--kernel-version", metavar="V", help="Which pinned version of it."),
    click.option("--client", metavar="NAME", help="Client that loads the pages."),
    click.option("--protocol", metavar="NAME", help="h1, h2 or as-recorded, for TLS origins."),
    click.option("--only", metavar="KEY=VALUE,...", help="Only the conditions that match."),
    click.option("--set", "sets", metavar="KEY=VALUE", multiple=True,
                 help="Set any knob, in TOML syntax; a list sweeps it.  Repeatable."),
    click.option("-n", "repetitions", metavar="N", help="Repetitions: seeds SEED..SEED+N-1."),
    click.option("--until-ci", metavar="PCT",
                 help="Instead of a fixed N: repeat until every 95 % interval is within +- PCT %."),
    click.option("--max-n", metavar="N", help="With --until-ci: at most N repetitions."),
    click.option("--seed", metavar="N", help="The first seed."),
)  # fmt: skip

_KNOBS = {
    "--kernel": "kernel.name",
    "--kernel-version": "kernel.version",
    "--client": "client",
    "--protocol": "protocol",
    "-n": "repetitions",
    "--until-ci": "until_ci_pct",
    "--max-n": "max_repetitions",
    "--seed": "seed",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """An experiment as the command line names it; ``None`` is what it does not say."""

    config: Path | None
    kernel: str | None
    kernel_version: str | None
    client: str | None
    protocol: str | None
    only: str | None
    sets: tuple[str, ...]
    repetitions: str | None
    until_ci: str | None
    max_n: str | None
    seed: str | None

    def given(self) -> tuple[str, ...]:
        """Return what the command line says at all, beside the bound of a run, for a message."""
        words = ["CONFIG"] if self.config else []
        words += [
            option
            for option, value in self._values().items()
            if value is not None and option != "--max-n"
        ]
        words += ["--only"] if self.only else []
        return tuple([*words, "--set"] if self.sets else words)

    def load(self, catalogue: Catalogue) -> Experiment:
        """Return the experiment; without a file it is the paper's table.

        Raises:
            ConfigurationError: with every problem.
        """
        overrides: list[Override] = []
        problems: list[str] = []
        for text in self.sets:
            try:
                overrides.append(parse_override(text))
            except ConfigurationError as error:
                problems += error.problems
        # Options of their own come last: the more special name wins over --set.
        overrides += [
            Override(_KNOBS[option], value, f"{option} {value}")
            for option, value in self._values().items()
            if value is not None
        ]
        try:
            experiment = load_experiment(self.config or places.DEFAULT_CONFIG, catalogue, overrides)
        except ConfigurationError as error:
            raise ConfigurationError([*problems, *error.problems]) from None
        if problems:
            raise ConfigurationError(problems)
        return experiment if self.only is None else select(experiment, self.only)

    def extend(self, experiment: Experiment) -> Experiment:
        """Return ``experiment``, which was planned before, with another bound if one is given.

        Raises:
            ConfigurationError: it has no bound, or the new one is no number that may be.
        """
        if self.max_n is None:
            return experiment
        if experiment.until_ci_pct is None:
            raise ConfigurationError(
                [f"--max-n {self.max_n}: {experiment.name} was planned without --until-ci: it has "
                 "a fixed number of repetitions; start anew"]
            )  # fmt: skip
        if not (self.max_n.isdecimal() and int(self.max_n) >= FIRST_LOOK):
            raise ConfigurationError(
                [f"--max-n {self.max_n}: not a whole number from {FIRST_LOOK}"]
            )
        return replace(experiment, max_repetitions=int(self.max_n))

    def _values(self) -> dict[str, str | None]:
        return {
            "--kernel": self.kernel,
            "--kernel-version": self.kernel_version,
            "--client": self.client,
            "--protocol": self.protocol,
            "-n": self.repetitions,
            "--until-ci": self.until_ci and self.until_ci.removesuffix("%"),
            "--max-n": self.max_n,
            "--seed": self.seed,
        }


def choice_options(command: Command) -> Command:
    """Give ``command`` the arguments that make a Choice."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
