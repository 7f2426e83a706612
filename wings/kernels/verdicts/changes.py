"""Changes of a kernel that ``kernel try`` has tried: a summary of each, small enough to commit.

`wings/kernels/changes` has a file for each set: what the document of its run (`kernels.json`, of
megabytes) says of every kernel, in a line.

    python -P -m wings.kernels.verdicts.changes RESULTS SET
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from analysis.records.cells import experiment_of, facts_of
from analysis.records.results import read_results
from testbed.base.whole_file import write_whole

KEPT = Path("wings", "kernels", "changes")
"""Where the sets are, below the repository's root."""
DOCUMENT = "kernels.json"
_MOVED = frozenset({"slower", "faster", "broken", "inconclusive"})


@dataclass(frozen=True, slots=True)
class TriedChange:
    """A changed kernel, and what its cells came to beside those of the base.

    Attributes:
        name: the kernel's.
        counts: how many cells came to what, by verdict.
        together: what all drawn cells of each client came to together.
        answer: the sentence that ``kernel try`` begins with.
        extreme_pct: the largest change of a cell, in percent of the base.
        extreme_cell: that cell, by the knobs that tell cells apart.
        differs: the first packet that differs there, in the base and in this kernel.
        misses: what of the patch the kernel has not.
    """

    name: str
    counts: Mapping[str, int]
    together: Sequence[str]
    answer: str
    extreme_pct: float
    extreme_cell: str
    differs: Sequence[str]
    misses: str

    @property
    def moved(self) -> int:
        """How many cells are slower, faster or broken, or cannot be told."""
        return sum(n for verdict, n in self.counts.items() if verdict in _MOVED)

    @property
    def found(self) -> bool:
        """Whether anything is said to have moved."""
        return bool(self.moved or _MOVED.intersection(self.together))


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """Changes of one base, tried in one run: where, with how many loads, and what they came to."""

    kernel: str
    experiment: str
    revision: str
    environment: str
    loads: int
    changes: tuple[TriedChange, ...]


def read_changes(folder: Path) -> list[TriedChange]:
    """Return what the results in ``folder`` say of each changed kernel.

    Raises:
        OSError, ValueError: they have no such document.
    """
    return [_read(kernel) for kernel in _read_document(folder)["kernels"]]


def _read_document(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / DOCUMENT).read_text("utf-8"))
    return document


def _read(kernel: Mapping[str, Any]) -> TriedChange:
    extreme = max(kernel["cells"], key=lambda cell: (abs(_change(cell)), bool(cell["evidence"])))
    return TriedChange(
        name=kernel["name"], counts=kernel["counts"],
        together=[family["verdict"] for family in kernel["families"]], answer=kernel["answer"],
        extreme_pct=_change(extreme), extreme_cell=extreme["name"],
        differs=[line.strip()
                 for line in extreme["evidence"] if line.startswith(("  base #", "  new  #"))],
        misses=kernel["misses"]
    )  # fmt: skip


def _change(cell: Mapping[str, Any]) -> float:
    attribution = cell["attribution"] or {}
    pct = attribution.get("pct")
    return pct["value"] if pct else 0.0


def condense(folder: Path) -> ChangeSet:
    """Return what is kept of the results in ``folder``.

    Raises:
        ConfigurationError, StorageError, OSError, ValueError: they cannot be read.
    """
    document = _read_document(folder)
    base = read_results(folder / document["base_name"])
    facts = facts_of(base.manifest)
    changed = "+" if facts.get("git_dirty") == "yes" else ""
    changes = tuple(map(_read, document["kernels"]))
    return ChangeSet(document["base_name"], str(experiment_of(base.manifest)["name"]),
                     facts.get("git_revision", "unknown")[:12] + changed,
                     str(base.identity.environment), len(base.records) * (1 + len(changes)),
                     changes)  # fmt: skip


def read_kept(name: str, folder: Path) -> ChangeSet:
    """Return the set ``name`` of those in ``folder``."""
    plain = json.loads((folder / f"{name}.json").read_text("utf-8"))
    changes = tuple(TriedChange(**each) for each in plain.pop("changes"))
    return ChangeSet(**plain, changes=changes)


def write_kept(kept: ChangeSet, name: str, folder: Path) -> None:
    """Write the set ``name`` of those in ``folder`` anew: each change on a line of its own."""
    document = asdict(kept)
    changes = ",\n".join(map(json.dumps, document.pop("changes")))
    head = json.dumps(document).removesuffix("}")
    path = folder / f"{name}.json"
    write_whole(path, f'{head}, "changes": [\n{changes}\n]}}\n', f"{path.name} is as it was")


if __name__ == "__main__":
    _, source, target = sys.argv
    write_kept(condense(Path(source)), target, Path(__file__).parents[3] / KEPT)
