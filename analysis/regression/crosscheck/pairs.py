"""The cells that two results folders of different kernels share, if they may be compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis.records.cells import Cell, cells_of, key_of, varying_axes
from analysis.records.results import Results
from testbed.base.errors import ConfigurationError

VIRTUAL = "virtual"


@dataclass(frozen=True, slots=True)
class Pairing:
    """Two results folders and their common cells, in the order of the base.

    ``axes`` are those on which the cells differ; ``notes`` say what else a reader must know.
    """

    base: Results
    other: Results
    cells: tuple[tuple[Cell, Cell], ...]
    axes: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def virtual(self) -> bool:
        """Whether both kernels ran in virtual time."""
        return {r.identity.kernel for r in (self.base, self.other)} == {VIRTUAL}


def pair_results(one: Results, other: Results) -> Pairing:
    """Pair the cells of two folders.  The base is ``one``, unless only ``other`` is virtual.

    Raises:
        ConfigurationError: one has no records, both are of one kernel, their pages differ, or no
            cell is in both.
    """
    empty = [r.folder for r in (one, other) if not r.records]
    if empty:
        raise ConfigurationError(
            [f"{folder} has no record to compare yet; go on with run --resume" for folder in empty]
        )
    swap = other.identity.kernel == VIRTUAL != one.identity.kernel
    base, real = (other, one) if swap else (one, other)
    left, right = (
        {key_of(cell.axes): cell for cell in cells_of(results)} for results in (base, real)
    )
    shared = [key for key in left if key in right]
    problems = [*_same_kernel(base, real), *_other_pages(base, real)]
    if not shared:
        problems.append(f"{base.folder} and {real.folder} have no cell in common")
    if problems:
        raise ConfigurationError(problems)
    return Pairing(
        base,
        real,
        tuple((left[key], right[key]) for key in shared),
        varying_axes([left[key] for key in shared]) or ("page",),
        _notes(base, real, len(left) + len(right) - 2 * len(shared)),
    )


def _same_kernel(base: Results, real: Results) -> list[str]:
    names = [f"{r.identity.kernel} {r.identity.kernel_version}" for r in (base, real)]
    if names[0] != names[1]:
        return []
    return [f"{base.folder} and {real.folder} are both of kernel {names[0]}: nothing to compare"]


def _other_pages(base: Results, real: Results) -> list[str]:
    ours, theirs = _pages(base.manifest), _pages(real.manifest)
    return [
        f"page {name} is not the same in both: {ours[name]!s:.16} and {theirs[name]!s:.16}"
        for name in sorted(ours.keys() & theirs.keys())
        if ours[name] != theirs[name]
    ]


def _pages(manifest: Mapping[str, Any]) -> dict[str, Any]:
    environment = manifest.get("environment")
    pages = environment.get("pages") if isinstance(environment, Mapping) else None
    return dict(pages) if isinstance(pages, Mapping) else {}


def _notes(base: Results, real: Results, alone: int) -> tuple[str, ...]:
    versions = (base.identity.clients, real.identity.clients)
    notes = [
        f"{name} is {versions[0][name]} on one kernel and {versions[1][name]} on the other."
        for name in sorted(versions[0].keys() & versions[1].keys())
        if versions[0][name] != versions[1][name]
    ]
    if alone:
        notes.append(f"{alone} cells are in one of the folders only and are left out.")
    return tuple(notes)
