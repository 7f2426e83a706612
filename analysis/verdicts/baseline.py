"""Baselines: results folders that are committed, without the machine's facts.

``compare`` reads them as any results folder.  Their kind of trial says whether packets are kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from analysis.records.cells import Cell, cells_of, experiment_of, facts_of, key_of, varying_axes
from analysis.records.kept import find_kept
from analysis.records.results import Results, read_results
from analysis.tables.summary import captures_of
from analysis.verdicts.compare.comparison import EVERYTHING, CompareOptions
from analysis.verdicts.compare.folders import compare_results
from analysis.verdicts.compare.kind import verdicts_of
from analysis.verdicts.compare.matching import list_apart
from analysis.verdicts.compare.sentences import label_cell, render_text
from analysis.words import count
from testbed.base.errors import ConfigurationError
from testbed.model import Record
from testbed.results.lazy import whole
from testbed.results.manifest import MANIFEST_FILE
from testbed.results.records import RECORDS_FILE, write_record

KEPT_FACTS = ("git_dirty", "git_revision")
"""Of the machine and the work tree; the rest neither counts nor belongs into a repository."""
KEPT_PARTS = ("schema", "experiment", "environment", "trials", "created_utc")
"""Of the manifest: not the arguments, which hold paths."""
MAX_NAMED = 20
WIDTH = 100
"""Columns of what changes."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A baseline that may be written: its files by name, what it would change, and its origin.

    ``captures`` are those that the kind of trial keeps, by their places in the folder.  ``changes``
    is for people; ``origin`` names the results, in one line for the log of reasons.
    """

    files: dict[str, str]
    changes: str
    origin: str
    captures: dict[str, bytes] = field(default_factory=dict)


def draft_baseline(results: Path, target: Path, *, drop_cells: bool = False) -> Draft:
    """Make a baseline of ``results``, to be written to ``target``; nothing is written here.

    Every cell must be proven in full.  The experiment must be that of the baseline in ``target``,
    if there is one, and have all of its cells unless ``drop_cells`` is given: then a knob that the
    experiment has got since, or has at another value, does not keep its cells from being compared.

    Raises:
        ConfigurationError: with everything that speaks against it.
        StorageError: a folder cannot be read.
    """
    new = read_results(results)
    cells = cells_of(new)
    old = read_results(target) if (target / MANIFEST_FILE).is_file() else None
    problems = [*_unproven(results, cells)]
    if old is not None:
        problems += _another_experiment(new, old, target)
        problems += () if drop_cells else _lost(cells, cells_of(old), target)
    if problems:
        raise ConfigurationError(problems)
    changes = "There was no such baseline before."
    if old is not None:
        # A baseline is of another day: whatever the tree holds by now may differ from it.
        apart = list_apart(cells_of(old), cells) if drop_cells else []
        compared = compare_results(target, results, CompareOptions(across=(*EVERYTHING, *apart)))
        changes = render_text(compared, WIDTH)
    files = {
        MANIFEST_FILE: json.dumps(trim_manifest(new.manifest), indent=2, ensure_ascii=False) + "\n",
        RECORDS_FILE: "".join(write_record(whole(trim_record(r))).decode() for r in new.records),
    }
    return Draft(files, changes.rstrip("\n"), _origin(new, cells), _read_captures(new))


def _read_captures(results: Results) -> dict[str, bytes]:
    """Return the captures of all trials whose kind keeps them.

    Raises:
        ConfigurationError: one is missing, or not what it was.
    """
    captures = {}
    for record in results.records:
        keeps = verdicts_of(record.trial.kind).keeps_captures
        for name in captures_of(record) if keeps else ():
            path, problem = find_kept(results.folder, record, name)
            if path is None:
                raise ConfigurationError([problem])
            captures[f"trials/{record.trial_id}/{name}"] = path.read_bytes()
    return captures


def trim_manifest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of ``manifest`` that are kept: KEPT_PARTS, and of the facts KEPT_FACTS."""
    kept = {name: manifest[name] for name in KEPT_PARTS if name in manifest}
    facts = facts_of(manifest)
    known = {name: facts[name] for name in KEPT_FACTS if name in facts}
    return {**kept, "environment": {**kept.get("environment", {}), "facts": known}}


def trim_record(record: Record) -> Record:
    """Return the record without what the trial cost, the machine, and what its kind leaves out."""
    return verdicts_of(record.trial.kind).trim(replace(record, cost=None, machine={}))


def describe_baseline(folder: Path) -> str:
    """Return one line about the baseline in ``folder``.

    Raises:
        ConfigurationError, StorageError: it is none.
    """
    results = read_results(folder)
    return f"{folder.name}: {_origin(results, cells_of(results))}"


def _origin(results: Results, cells: tuple[Cell, ...]) -> str:
    facts = facts_of(results.manifest)
    revision = facts.get("git_revision", "unknown")[:12]
    changed = " with uncommitted changes" if facts.get("git_dirty") == "yes" else ""
    return (
        f"{count(len(results.records), 'trial')} in {count(len(cells), 'cell')} of "
        f"{results.manifest.get('created_utc', 'an unknown time')}, "
        f"{results.identity.kernel} kernel {results.identity.kernel_version}, "
        f"git {revision}{changed}, environment {results.identity.environment}"
    )


def _unproven(results: Path, cells: tuple[Cell, ...]) -> Iterator[str]:
    if not any(cell.records for cell in cells):
        yield f"{results} holds no trial that has ended: run it to its end first (--resume)"
        return
    names = varying_axes(cells)
    wrong = [cell for cell in cells if cell.status != "proven"]
    for cell in wrong[:MAX_NAMED]:
        yield (
            f"{results}: {_name(cell, names)}: {_counts(cell)}; a baseline holds proven "
            f"numbers only: look into the reasons, then ./run.sh run --resume {results}"
        )
    if len(wrong) > MAX_NAMED:
        yield f"{results}: and {count(len(wrong) - MAX_NAMED, 'more cell')} like these"


def _counts(cell: Cell) -> str:
    return ", ".join(f"{number} {outcome}" for outcome, number in cell.outcomes.items())


def _another_experiment(new: Results, old: Results, target: Path) -> Iterator[str]:
    ours, theirs = (str(experiment_of(each.manifest).get("name")) for each in (new, old))
    if ours != theirs:
        yield (
            f"{new.folder} holds the experiment {ours}, the baseline {target.name} is of "
            f"{theirs}: give it a name of its own with --name {ours}"
        )
    ours, theirs = (str(each.identity.kernel) for each in (new, old))
    if new.records and ours != theirs:
        yield (
            f"{new.folder} was measured on the {ours} kernel, the baseline {target.name} on the "
            f"{theirs} kernel, and these are never compared as equals: give it a name of its own, "
            f"such as --name {target.name}-{ours}"
        )


def _lost(cells: tuple[Cell, ...], old: tuple[Cell, ...], target: Path) -> Iterator[str]:
    ours = {key_of(cell.axes) for cell in cells}
    names = varying_axes(old)
    lost = [_name(cell, names) for cell in old if key_of(cell.axes) not in ours]
    if lost:
        more = f" and {len(lost) - MAX_NAMED} more" if len(lost) > MAX_NAMED else ""
        yield (
            f"the baseline {target.name} would lose {count(len(lost), 'cell')}: "
            f"{'; '.join(lost[:MAX_NAMED])}{more}; run the whole experiment, or give "
            "--drop-cells if they are to go"
        )


def _name(cell: Cell, names: Sequence[str]) -> str:
    return label_cell(dict.fromkeys(("page", *names)), cell.axes)
