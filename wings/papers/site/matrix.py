"""Matrix of kernels: what each of them made of every page load and of every promise.

It is read from results folders alone.  A row is a condition of page loads or a promise, a column a
kernel, and each of their places is filled from one folder: nothing is pooled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from analysis.records.cells import (
    Axes,
    Cell,
    Key,
    cells_of,
    experiment_of,
    find_varying,
    flatten,
    key_of,
)
from analysis.records.kind import records_of
from analysis.records.results import Results, read_results
from analysis.verdicts.compare.comparison import VIRTUAL
from analysis.verdicts.compare.environments import PAGES, differing_parts, kernel_of, parts_of
from analysis.words import clean, count, name_axes
from testbed.base.errors import ConfigurationError, StorageError
from testbed.experiment.lanes import LANES_FILE, read_lanes
from testbed.model import DEFAULT_KIND, Record, digest, stored_kind
from wings.scenarios.analysis.promises import GRAVITY, Finding, PromiseRow, make_promises
from wings.scenarios.analysis.records import KIND as PROMISES

OF_KERNEL = "kernel."
_RELEASE = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?$")
_SHOWN = 16
"""Digits of a digest in a message."""
_LONGEST = 100
"""Characters of a file's name."""
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class KernelColumn:
    """A kernel that has results; ``parts`` are those of its build, ``slug`` names its folder."""

    name: str
    slug: str
    kernel: str
    version: str
    parts: Mapping[str, str]

    @property
    def release(self) -> tuple[int, ...] | None:
        """The numbers of a release in virtual time, by which releases are in order."""
        found = _RELEASE.match(self.version) if self.kernel == VIRTUAL else None
        return tuple(int(part or 0) for part in found.groups()) if found else None


@dataclass(frozen=True, slots=True)
class Found:
    """What a kernel made of a row: a cell of page loads, or the finding on a promise."""

    results: Results
    records: tuple[Record, ...]
    cell: Cell | None = None
    finding: Finding | None = None


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A condition of page loads, or a promise, and what came of it on each kernel, if anything."""

    title: str
    slug: str
    found: tuple[Found | None, ...]
    axes: Axes | None = None
    promise: PromiseRow | None = None

    @property
    def medians(self) -> tuple[float | None, ...]:
        """The median load time on each kernel, in ms; ``None`` where no load counts."""
        cells = (found.cell if found else None for found in self.found)
        return tuple(cell.spread.median if cell and cell.spread else None for cell in cells)


@dataclass(frozen=True)  # no slots: which parts are unequal is worked out once
class Matrix:
    """Kernels as columns, the releases first and in their order; page loads and promises as rows.

    ``names`` are the axes that tell the loads apart.
    """

    columns: tuple[KernelColumn, ...]
    loads: tuple[MatrixRow, ...]
    promises: tuple[MatrixRow, ...]
    names: tuple[str, ...]
    results: tuple[Results, ...]

    @property
    def title(self) -> str:
        """The title of the first experiment, page loads before promises."""
        first = min(self.results, key=lambda each: kind_of(each) == PROMISES)
        experiment = experiment_of(first.manifest)
        return clean(str(experiment.get("title") or experiment.get("name") or "Results"))

    @cached_property
    def unequal(self) -> tuple[str, ...]:
        """What the folders of a kind differ in beside their kernels and pages, in sentences."""
        sentences = []
        for kind in (DEFAULT_KIND, PROMISES):
            folders = [results for results in self.results if kind_of(results) == kind]
            for other in folders[1:]:
                if parts := differing_beside_kernel(folders[0], other):
                    what = ", ".join(map(clean, parts))
                    sentences.append(f"{name_of(other)} from {name_of(folders[0])} in {what}")
        return tuple(sentences)


def read_matrix(directories: Sequence[Path]) -> Matrix:
    """Return the matrix of results folders, and of folders of lanes.

    Raises:
        ConfigurationError: with all that is wrong: no results, neither page loads nor scenarios,
            pages that are other ones, or one trial that came out in two ways.
    """
    problems: list[str] = []
    every = tuple(_read(directories, problems))
    columns = _columns(every)
    identities = list(columns)
    place = {id(results): identities.index(_identity(results)) for results in every}
    problems += [*_other_pages(every), *_doubles(every, place)]
    loads = attempt(lambda: _loads(every, place, len(columns)), problems)
    promises = attempt(lambda: _promises(every, place, len(columns)), problems)
    if problems or loads is None or promises is None:
        raise ConfigurationError(problems)
    return Matrix(tuple(columns.values()), loads[0], promises, loads[1], every)


def kind_of(results: Results) -> str:
    """Return what the trials of a folder do."""
    return stored_kind(experiment_of(results.manifest))


def name_of(results: Results) -> str:
    """Return a folder's name; of a lane with that of its run before it."""
    folder = results.folder.resolve()
    in_run = (folder.parent / LANES_FILE).is_file()
    return clean("/".join(folder.parts[-2 if in_run else -1 :]))


def differing_beside_kernel(base: Results, new: Results) -> tuple[str, ...]:
    """Return the parts of two environments that differ, but for those of kernel and pages."""
    return tuple(part.name for part in differing_parts(base, new)
                 if not part.name.startswith((OF_KERNEL, PAGES)))  # fmt: skip


def make_slug(text: str, taken: Container[str] = ()) -> str:
    """Return a name for a file or folder that ``taken`` does not have."""
    slug = re.sub(r"[^a-z0-9.]+", "-", text.lower())[:_LONGEST].strip("-.") or "row"
    names = (slug, *(f"{slug}-{number}" for number in range(2, 10_000)))
    return next(name for name in names if name not in taken)


def _read(directories: Sequence[Path], problems: list[str]) -> Iterator[Results]:
    """Yield the results of each folder, lane by lane; say what cannot be read or shown."""
    seen: set[Path] = set()
    for directory in directories:
        lanes = attempt(partial(read_lanes, directory), problems)
        for folder in [directory / lane for lane in lanes or ()] or [directory]:
            results = None if lanes is None else attempt(partial(read_results, folder), problems)
            kind = results and attempt(partial(kind_of, results), problems)
            if folder.resolve() in seen:
                problems.append(f"{folder} is named twice")
            elif results and kind in (DEFAULT_KIND, PROMISES):
                yield results
            elif kind:
                problems.append(
                    f"{folder} holds trials of the kind {kind}; a site shows page loads and "
                    "scenarios"
                )
            seen.add(folder.resolve())


def attempt(read: Callable[[], _Read], problems: list[str]) -> _Read | None:
    """Return what ``read`` does, or ``None`` with what speaks against it in ``problems``."""
    try:
        return read()
    except ConfigurationError as error:
        problems += error.problems
    except StorageError as error:
        problems.append(str(error))
    return None


def _build(results: Results) -> dict[str, str]:
    parts = parts_of(results).items()
    return {name.removeprefix(OF_KERNEL): value for name, value in parts
            if name.startswith(OF_KERNEL)}  # fmt: skip


def _identity(results: Results) -> tuple[str, str, str]:
    """Return what makes a kernel: its name, its version, and the digest of its build."""
    experiment = experiment_of(results.manifest)
    build = {name: value for name, value in _build(results).items() if name != "version"}
    return kernel_of(results), str(experiment.get("kernel_version")), digest(build)


def _columns(every: Sequence[Results]) -> dict[tuple[str, str, str], KernelColumn]:
    """Return each kernel by its identity, releases first; one name for two builds says which."""
    builds = {_identity(results): _build(results) for results in every}
    names = [key[:2] for key in builds]
    columns: dict[tuple[str, str, str], KernelColumn] = {}
    for (kernel, version, build), parts in builds.items():
        name = version if kernel == VIRTUAL else f"{kernel} {version}"
        name += f" ({build[:8]})" * (names.count((kernel, version)) > 1)
        slug = make_slug(name, {column.slug for column in columns.values()})
        columns[kernel, version, build] = KernelColumn(clean(name), slug, kernel, version, parts)
    order = sorted(columns.items(), key=lambda item: item[1].release or (math.inf,))
    return dict(order)


def _other_pages(every: Sequence[Results]) -> Iterator[str]:
    """Yield a sentence for each page that is not the same in all folders that loaded it."""
    first: dict[str, tuple[str, Path]] = {}
    for results in every:
        loaded = {str(axes.get("page")) for axes in map(flatten, _conditions(results))}
        for name, value in parts_of(results).items():
            page = name.removeprefix(PAGES)
            if not name.startswith(PAGES) or page not in loaded:
                continue
            known, folder = first.setdefault(page, (value, results.folder))
            if known != value:
                yield (
                    f"page {page} is {known[:_SHOWN]} in {folder} and {value[:_SHOWN]} in "
                    f"{results.folder}: a row is of one page; run one of them again"
                )


def _conditions(results: Results) -> Iterator[Mapping[str, Any]]:
    yield from experiment_of(results.manifest).get("conditions", ())


def _doubles(every: Sequence[Results], place: Mapping[int, int]) -> Iterator[str]:
    """Yield a sentence for each two folders in which one trial came out in two ways."""
    known: dict[tuple[int, str], tuple[Results, Record]] = {}
    differing: dict[tuple[Path, Path], list[str]] = {}
    for results in every:
        for record in results.records:
            key = place[id(results)], record.trial_id
            other, before = known.setdefault(key, (results, record))
            if not _same(before, record):
                differing.setdefault((other.folder, results.folder), []).append(record.trial_id)
    for (base, new), trials in differing.items():
        more = f" and {count(len(trials) - 1, 'more trial')}" if len(trials) > 1 else ""
        yield (
            f"{base} and {new} both hold trial {trials[0]}{more} on one kernel, with other bits: "
            f"name one of them; ./run.sh compare {base} {new} shows what differs"
        )


def _same(one: Record, other: Record) -> bool:
    """Return whether two records of a trial tell one story: outcome, numbers, and kept files."""
    both = one.artefacts.keys() & other.artefacts.keys()
    metrics = records_of(one.trial.kind).metrics[:1]
    numbers = all(each.of(one.measured) == each.of(other.measured) for each in metrics)
    files = all(one.artefacts[name] == other.artefacts[name] for name in both)
    return one.outcome == other.outcome and numbers and files


def _loads(
    every: Sequence[Results], place: Mapping[int, int], columns: int
) -> tuple[tuple[MatrixRow, ...], tuple[str, ...]]:
    """Return the rows of page loads, and the axes that tell them apart.

    Raises:
        ConfigurationError: a cell's trials are in several folders, none of which has them all.
    """
    found: dict[Key, dict[int, list[Found]]] = {}
    axes: dict[Key, Axes] = {}
    for results in every:
        for cell in cells_of(results) if kind_of(results) == DEFAULT_KIND else ():
            key = key_of(cell.axes)
            axes.setdefault(key, cell.axes)
            there = found.setdefault(key, {}).setdefault(place[id(results)], [])
            there.append(Found(results, cell.records, cell))
    shown = records_of(DEFAULT_KIND).axes
    names = tuple(dict.fromkeys((*shown, *find_varying(list(axes.values())))))
    rows: dict[str, MatrixRow] = {}
    problems: list[str] = []
    for key, by_column in found.items():
        title = name_axes(axes[key], names)
        chosen = [_fullest(by_column.get(n, []), title, problems) for n in range(columns)]
        slug = make_slug(title, rows)
        rows[slug] = MatrixRow(title, slug, tuple(chosen), axes[key])
    if problems:
        raise ConfigurationError(problems)
    return tuple(rows.values()), names


def _fullest(there: Sequence[Found], title: str, problems: list[str]) -> Found | None:
    """Return the one of several that has the trials of all."""
    best = max(there, key=lambda found: len(found.records), default=None)
    trials = {record.trial_id for record in best.records} if best else set()
    for other in there:
        if best and not {record.trial_id for record in other.records} <= trials:
            problems.append(
                f"{best.results.folder} and {other.results.folder} have different trials of "
                f"{title}: results are never pooled; name one of them"
            )
    return best


def _promises(
    every: Sequence[Results], place: Mapping[int, int], columns: int
) -> tuple[MatrixRow, ...]:
    """Return the rows of promises.

    Raises:
        ConfigurationError: a scenario is one of another revision.
    """
    folders = [results for results in every if kind_of(results) == PROMISES]
    rows: dict[str, MatrixRow] = {}
    for promise in make_promises(folders).rows if folders else ():
        found: list[Found | None] = [None] * columns
        graver = sorted(zip(folders, promise.findings, strict=True),
                        key=lambda pair: GRAVITY.index(pair[1].state), reverse=True)  # fmt: skip
        for results, finding in graver:  # the gravest is the last, and stays
            if finding.record is not None:
                found[place[id(results)]] = Found(results, (finding.record,), None, finding)
        slug = make_slug(promise.name, rows)
        rows[slug] = MatrixRow(clean(promise.promise.title), slug, tuple(found), None, promise)
    return tuple(rows.values())
