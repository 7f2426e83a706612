"""Accounts of loads: what their times were spent on, in the mean, and what moved between two.

A mean, and no median: the means of all owners (``testbed.model.owners``) add up to that of the load
times.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from statistics import fmean

from testbed.model import Record
from testbed.model.owners import OWNERS

LEAST_SHARE, LEAST_MS = 0.1, 0.05
"""An owner moved that changed by so large a part of the difference, and by so many ms."""
WHOLE_MS = 10.0
"""From here on ms are told without decimals."""


def mean_account(
    records: Iterable[Record], blocks: Collection[tuple[int, int]] = ()
) -> dict[str, float]:
    """Return the mean ms of each owner, in their order; empty where no record has an account.

    With ``blocks`` only of records with one of these (seed, repetition).
    """
    accounts = [r.proof.account for r in records if r.proof is not None and r.proof.account
                if not blocks or (r.trial.seed, r.trial.repetition) in blocks]  # fmt: skip
    owners = OWNERS if accounts else ()
    return {owner: fmean(each.get(owner, 0.0) for each in accounts) for owner in owners}


def differences_ms(base: Mapping[str, float], new: Mapping[str, float]) -> dict[str, float]:
    """Return by how many ms each owner grew; empty where an account is."""
    return {owner: new[owner] - base[owner] for owner in OWNERS if base and new}


def moved(differences: Mapping[str, float]) -> dict[str, float]:
    """Return those of ``differences`` that are at least a tenth of their sum, the largest first."""
    least_ms = max(LEAST_SHARE * abs(sum(differences.values())), LEAST_MS)
    named = {owner: ms for owner, ms in differences.items() if abs(ms) >= least_ms}
    return dict(sorted(named.items(), key=lambda item: -abs(item[1])))


def describe_moved(differences: Mapping[str, float]) -> str:
    """Return what moved in plain ASCII: ``+38 ms: +31 recovery, +7 window``; empty if nothing."""
    owners, total = moved(differences), sum(differences.values())
    places = 0 if abs(total) >= WHOLE_MS else 2
    named = ", ".join(f"{ms:+.{places}f} {owner}" for owner, ms in owners.items())
    return f"{total:+.{places}f} ms: {named}" if named else ""


def column_of(owner: str, arm: str = "") -> str:
    """Return the column of an owner's ms, of one ``arm`` of a pair: ``path_look_up_off_ms``."""
    return "_".join(re.findall(r"\w+", f"path {owner} {arm} ms".lower()))
