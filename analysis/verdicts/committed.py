"""A run held against the baseline of its experiment, load by load, to the bit.

Only loads that are committed are compared: of a run of twenty seeds perhaps one.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from analysis.records.cells import experiment_of
from analysis.records.results import Results, judge, read_results
from analysis.verdicts.compare.comparison import VIRTUAL, Part
from analysis.verdicts.compare.environments import differing_parts
from analysis.verdicts.compare.exact import pair_records
from analysis.words import clean, count

BASELINES = Path(__file__).parents[1] / "baselines"
MAX_PARTS = 12
VALUE_LENGTH = 24
"""Characters of a value; a digest is longer, a package's version is not cut."""


def hold_against_committed(results: Results, baselines: Path = BASELINES) -> str:
    """Say whether the proven loads in ``results`` are the committed ones to the bit.

    Where the environments differ, each part that does is named on a line of its own.  Empty where
    the repository holds none of these trials, and in real time, where no bit repeats.

    Raises:
        ConfigurationError, StorageError: the committed results cannot be read.
    """
    name = str(experiment_of(results.manifest).get("name"))
    folders = [path for path in sorted(baselines.iterdir()) if path.name == name]
    if not folders or results.identity.kernel != VIRTUAL:
        return ""
    committed = read_results(folders[0])
    theirs = {record.trial_id: record for record in committed.records}
    pairs = [
        pair_records(theirs[record.trial_id], record)
        for record in results.records
        if record.trial_id in theirs and judge(record)[0] == "ok"
    ]
    if not pairs:
        return ""
    where = folders[0].relative_to(baselines.parent.parent)
    same = sum(pair.same for pair in pairs)
    parts = differing_parts(committed, results)
    command = f"./run.sh compare {where} {clean(str(results.folder))}"
    if parts:
        return _another_environment(parts, same, len(pairs), f"{command} --across all")
    if same == len(pairs):
        return f"Same to the bit as the committed results in {where}: {count(same, 'load')}.\n"
    return (
        f"{len(pairs) - same} of {count(len(pairs), 'load')} differ from the committed results in "
        f"an equal environment: determinism is broken. See: {command}\n"
    )


def _another_environment(parts: Sequence[Part], same: int, loads: int, command: str) -> str:
    lines = [
        f"{same} of {count(loads, 'load')} are the same to the bit as the committed results. The "
        "environments differ in:"
    ]
    lines += [f"  {_name_part(part)}" for part in parts[:MAX_PARTS]]
    if len(parts) > MAX_PARTS:
        lines.append(f"  and {count(len(parts) - MAX_PARTS, 'more part')}")
    return "\n".join([*lines, f"To see what moved: {command}"]) + "\n"


def _name_part(part: Part) -> str:
    there, here = _shown(part.base), _shown(part.new)
    if there == here:  # both are cut, and what differs comes later
        return f"{clean(part.name)}: differs"
    return f"{clean(part.name)}: {there} there, {here} here"


def _shown(value: str | None) -> str:
    if value is None:
        return "absent"
    if " " not in value and len(value) > 2 * VALUE_LENGTH:  # a digest
        return clean(value[:VALUE_LENGTH])
    return textwrap.shorten(clean(value), 2 * VALUE_LENGTH, placeholder="...")
