"""Shards: parts of a plan for as many machines, none of which need know of another.

A plan is put into an order that depends on it alone: the trials of one seed and client together,
because guests go on from an image that is kept for these (``testbed.kernel.run.image``), and among
them by their ids, which are digests, so that each part has long and short loads alike.  A shard is
a piece of that order.  With an overlap it also has the first trials of the shard behind it: what
two machines did alike to the bit, they did alike.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.base.errors import ConfigurationError
from testbed.experiment.ids import list_ids
from testbed.model import Experiment, Trial, in_real_time

MOST = 100_000
_WRITTEN = re.compile(r"(\d{1,6})/(\d{1,6})")


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several parts of a plan."""

    number: int
    """Which part, from 1."""
    of: int
    """How many parts there are."""
    overlap_pct: float = 0.0
    """How much more of the next part it has, in percent of its own trials."""

    def __str__(self) -> str:
        """Return ``3/16``."""
        return f"{self.number}/{self.of}"

    def part_of(self, trials: Sequence[Trial]) -> tuple[Trial, ...]:
        """Return those of a plan's ``trials`` that are its own, in the order of the plan."""
        keys = [
            (t.seed, t.client or "", name) for t, name in zip(trials, list_ids(trials), strict=True)
        ]
        order = sorted(range(len(trials)), key=keys.__getitem__)
        first, behind = (len(order) * n // self.of for n in (self.number - 1, self.number))
        more = math.ceil((behind - first) * self.overlap_pct / 100)
        mine = {
            *order[first:behind],
            *(order[n % len(order)] for n in range(behind, behind + more)),
        }
        return tuple(trial for place, trial in enumerate(trials) if place in mine)


def parse_shard(text: str | None, overlap: str | None) -> Shard | None:
    """Return the shard that ``text`` names, such as ``3/16``, with ``overlap``, such as ``1%``.

    Raises:
        ConfigurationError: with every problem.
    """
    problems = []
    found = None if text is None else _WRITTEN.fullmatch(text.strip())
    number, of = (int(found[1]), int(found[2])) if found else (0, 0)
    if text is not None and not found:
        problems.append(f"--shard {text}: write it as K/N, such as 3/16: part 3 of 16")
    elif text is not None and not 1 <= of <= MOST:
        problems.append(f"--shard {text}: a plan has 1 to {MOST} parts, such as 3/16")
    elif text is not None and not 1 <= number <= of:
        problems.append(f"--shard {text}: the parts of {of} are 1/{of} to {of}/{of}")
    overlap_pct = 0.0
    if overlap is not None:
        overlap_pct = parse_share("--overlap", overlap, problems)
        if text is None:
            problems.append(f"--overlap {overlap}: is for a part of a plan: give --shard K/N, too")
    if problems:
        raise ConfigurationError(problems)
    return Shard(number, of, overlap_pct) if found else None


def parse_share(option: str, text: str, problems: list[str]) -> float:
    """Return the percentage that ``text`` is, ``2%`` or ``2``; what is wrong is a new problem."""
    try:
        share = float(text.strip().removesuffix("%"))
    except ValueError:
        share = math.nan
    if not 0 <= share <= 100:
        problems.append(f"{option} {text}: write it as a share from 0% to 100%, such as 2%")
        return 0.0
    return share


def refuse_shard(shard: Shard, experiment: Experiment) -> None:
    """Let only an experiment pass whose parts can run apart.

    Raises:
        ConfigurationError: with every problem.
    """
    problems = []
    if in_real_time(experiment.kernel):
        problems.append(
            f"--shard {shard}: kernel {experiment.kernel} measures in real time, where machines "
            "differ; parts of a plan are for the virtual kernel"
        )
    if experiment.until_ci_pct is not None:
        problems.append(
            f"--shard {shard}: no part knows the intervals of the whole; give a number of "
            "repetitions (-n) instead of --until-ci"
        )
    if problems:
        raise ConfigurationError(problems)
