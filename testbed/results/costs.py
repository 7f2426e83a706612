"""Costs of trials, ``costs.jsonl``: what each took of the machine that ran it.

They stand beside the records, which are equal to the bit wherever a trial runs.  A line names the
trial and its attempt; one that cannot be read is left out, for no result depends on it.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from testbed.base.errors import storing
from testbed.model import Cost, Record, canonical

COSTS_FILE = "costs.jsonl"


def write_cost(record: Record) -> bytes:
    """Return the line of what ``record`` took; of one that does not know there is none."""
    return write_cost_line(record.trial_id, record.attempt, record.cost)


def write_cost_line(trial_id: str, attempt: int, cost: Cost | None) -> bytes:
    """Return the line of a trial's ``cost``; there is none where that is not known."""
    if cost is None:
        return b""
    line = {"trial_id": trial_id, "attempt": attempt, **asdict(cost)}
    return canonical(line).encode() + b"\n"


def read_costs(directory: Path) -> dict[tuple[str, int], Cost]:
    """Return the costs in the results folder ``directory`` by trial id and attempt.

    Raises:
        StorageError: the file cannot be read.
    """
    path = directory / COSTS_FILE
    costs: dict[tuple[str, int], Cost] = {}
    if not path.exists():
        return costs
    with storing(f"read {path}"), path.open("rb") as lines:
        for line in lines:
            try:
                plain = json.loads(line)
                key = (str(plain.pop("trial_id")), int(plain.pop("attempt")))
                costs[key] = Cost(**{name: float(value) for name, value in plain.items()})
            except (ValueError, TypeError, KeyError, AttributeError):
                continue
    return costs
