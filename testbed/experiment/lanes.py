"""Lanes: one experiment on several kernels or roots, each a results folder, never pooled.

The run's folder holds a results folder for each of them, ``lanes.json`` with their names, and what
they came to side by side.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from testbed.base.errors import ConfigurationError, StorageError
from testbed.model import Experiment

LANES_FILE = "lanes.json"
_SCHEMA = 1


def split(experiment: Experiment) -> tuple[Experiment, ...]:
    """Return ``experiment`` for each of its kernel versions on each of its roots."""
    versions = experiment.kernel_versions or (experiment.kernel_version,)
    roots = experiment.roots or (experiment.root,)
    return tuple(
        replace(experiment, kernel_version=version, kernel_versions=(), root=root, roots=())
        for version in versions
        for root in roots
    )


def name_lanes(experiments: Sequence[Experiment]) -> tuple[str, ...]:
    """Return the name of each lane, by what they differ in; of one alone it is empty."""
    parts = [(experiment.kernel_version, experiment.root) for experiment in experiments]
    differing = [len(set(column)) > 1 for column in zip(*parts, strict=True)]
    return tuple(
        "-".join(part for part, differs in zip(lane, differing, strict=True) if differs)
        for lane in parts
    )


def write_lanes(directory: Path, names: Sequence[str]) -> None:
    """Say that ``directory`` holds a results folder for each of ``names``.

    Raises:
        StorageError: it cannot be written.
    """
    path = directory / LANES_FILE
    text = json.dumps({"schema": _SCHEMA, "lanes": list(names)}) + "\n"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror}; free space or pass -o DIR"
        ) from error


def read_lanes(directory: Path) -> tuple[str, ...]:
    """Return the names of the lanes in ``directory``; none when it is no folder of lanes.

    Raises:
        StorageError: its ``lanes.json`` cannot be read, or says something else.
    """
    path = directory / LANES_FILE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{path} is not JSON: {error}") from None
    known = isinstance(document, dict) and document.get("schema") == _SCHEMA
    names = document.get("lanes") if known else None
    if not isinstance(names, list) or not names or not all(_is_name(name) for name in names):
        raise StorageError(
            f"{path} does not name lanes of schema {_SCHEMA}; use the revision of the testbed "
            "that wrote it"
        )
    return tuple(names)


def refuse_lanes(directory: Path) -> None:
    """Let only what is one result pass.

    Raises:
        ConfigurationError: ``directory`` holds several lanes; they are named.
        StorageError: as ``read_lanes``.
    """
    names = read_lanes(directory)
    if names:
        folders = " and ".join(str(directory / name) for name in names)
        raise ConfigurationError(
            [
                f"{directory} holds the results of {len(names)} lanes, which are never pooled; "
                f"name one of its folders: {folders}"
            ]
        )


def _is_name(name: object) -> bool:
    """Return whether ``name`` is that of a folder beside ``lanes.json``, and leads nowhere else."""
    return isinstance(name, str) and name == Path(name).name and name not in ("", ".", "..")
