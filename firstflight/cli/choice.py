"""Choice of an experiment on the command line: the file, and the options that change it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click

from testbed.base import places
from testbed.base.debian import locked_only
from testbed.base.errors import ConfigurationError
from testbed.client import CLIENTS
from testbed.experiment.config import Catalogue, load_experiment
from testbed.experiment.options import Override, parse_override, select
from testbed.kernel import KERNELS
from testbed.model import FIRST_LOOK, Experiment, Protocol

Command = Callable[..., Any]


def join_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return what gives a command all of ``options``, which its help then has in this order."""

    def give(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return give


def names_of(names: Iterable[str]) -> str:
    """Return the values of an option, as its help lists them and completion offers them."""
    return f"[{'|'.join(names)}]"


def _hold_locks(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.with_resource(locked_only())


def _join(_context: click.Context, _option: click.Parameter, texts: Sequence[str]) -> str | None:
    """Return what several options of one name say as one list."""
    return ",".join(texts) if texts else None


locked_option = click.option(
    "--locked", is_flag=True, expose_value=False, callback=_hold_locks,
    help="Fail if a locked package or kernel source is no longer available; by default the "
         "newest version takes its place, and the run says so.",
)  # fmt: skip
"""For verbs that assemble a root or build a kernel."""

_LAB_OPTIONS = (
    click.argument("config", required=False, type=click.Path(path_type=Path)),
    click.option("--kernel", metavar=names_of(KERNELS), help="Kind of kernel."),
    click.option("--kernel-version", metavar="V",
                 help="Version of the kernel: a pinned one, or one of yours (kernel add)."),
    locked_option,
    click.option("--link", metavar="NAME,...",
                 help="Link profile (links list) in place of the file's values; several are "
                      "swept."),
    click.option("--protocol", metavar=names_of(get_args(Protocol)), help="Protocol of TLS "
                                                                          "origins."),
    click.option("--only", metavar="KEY=VALUE,...", multiple=True, callback=_join,
                 help="Only matching conditions; a key given twice matches either value.  "
                      "Repeatable."),
    click.option("--set", "sets", metavar="KEY=VALUE", multiple=True,
                 help="Set any knob, in TOML syntax; a list sweeps it.  Repeatable."),
    click.option("--seed", metavar="N", help="The first seed."),
)  # fmt: skip
_LOAD_OPTIONS = (
    *_LAB_OPTIONS[:4],
    click.option("--client", metavar=names_of(CLIENTS), help="Client that loads the pages."),
    *_LAB_OPTIONS[4:8],
    click.option("-n", "repetitions", metavar="N", help="Repetitions: seeds SEED..SEED+N-1."),
    click.option("--until-ci", metavar="PCT",
                 help="Instead of a fixed N: repeat until every 95 % interval is within +- PCT %."),
    click.option("--max-n", metavar="N", help="With --until-ci: at most N repetitions."),
    *_LAB_OPTIONS[8:],
)  # fmt: skip

_KNOBS = {"kernel": ("--kernel", "kernel.name"),
          "kernel_version": ("--kernel-version", "kernel.version"),
          "client": ("--client", "client"), "link": ("--link", "link"),
          "protocol": ("--protocol", "protocol"), "repetitions": ("-n", "repetitions"),
          "until_ci": ("--until-ci", "until_ci_pct"), "max_n": ("--max-n", "max_repetitions"),
          "seed": ("--seed", "seed")}  # fmt: skip
"""Options that set one knob each: option and knob by the name of click's parameter."""


class Choice:
    """An experiment as the command line names it; ``None`` is what it does not say."""

    def __init__(
        self, config: Path | None, only: str | None, sets: tuple[str, ...], **typed: str | None
    ) -> None:
        self.config, self.only, self.sets = config, only, sets
        self.max_n = typed.get("max_n")
        self._typed = {name: value for name, value in typed.items() if value is not None}
        if self._typed.get("until_ci", "").endswith("%"):
            self._typed["until_ci"] = self._typed["until_ci"].removesuffix("%")
        if "," in self._typed.get("link", ""):
            self._typed["link"] = json.dumps(re.split(r"\s*,\s*", self._typed["link"]))

    def given(self) -> tuple[str, ...]:
        """Return what the command line says at all, beside the bound of a run, for a message."""
        words = ["CONFIG"] if self.config else []
        words += [option for name, (option, _) in _KNOBS.items()
                  if name in self._typed and name != "max_n"]  # fmt: skip
        words += ["--only"] if self.only else []
        return tuple([*words, "--set"] if self.sets else words)

    def load(self, catalogue: Catalogue, fixed: Sequence[Override] = ()) -> Experiment:
        """Return the experiment; without a file it is the paper's table.

        ``fixed`` is what the verb itself sets, whatever else is asked for.

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
            Override(knob, self._typed[name], f"{option} {self._typed[name]}")
            for name, (option, knob) in _KNOBS.items()
            if name in self._typed
        ]
        overrides += fixed
        try:
            experiment = load_experiment(self.config or places.DEFAULT_CONFIG, catalogue, overrides)
        except ConfigurationError as error:
            raise ConfigurationError([*problems, *error.problems]) from None
        if problems:
            raise ConfigurationError(problems)
        if experiment.reference is not None:
            # Imported here: who compares with no publication does not pay for it.
            from analysis.report.publications import publications

            if known := publications():
                known.check(experiment.reference, experiment.kind, catalogue.names())
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


choice_options = join_options(*_LOAD_OPTIONS)
"""The arguments that make a Choice."""
sweep_options = join_options(*_LOAD_OPTIONS[1:])
"""Those that change an experiment, but not the argument that names it."""
lab_options = join_options(*_LAB_OPTIONS)
"""Those of them that choose a lab, and not who loads what how often."""
