"""Available traces: models in the tree, each of both directions, and files beside an experiment.

A name with a dot is a file's; one without is that of a model and a direction, as ``lte-drive-up``.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping
from pathlib import Path

from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean
from testbed.model.trace import WAYS, Trace
from testbed.traces.reading import read_text
from testbed.traces.synthesis import synthesise


def list_models(home: Path) -> dict[str, tuple[Path, str]]:
    """Return the traces that models in ``home`` make: the file of each, and its direction."""
    models = sorted(home.glob("*.toml"))
    return {f"{path.stem}-{way}": (path, way) for path in models for way in WAYS}


def is_own(name: str) -> bool:
    """Return whether ``name`` is that of a user's file."""
    return "." in name


def find_problem(name: str, folder: Path, home: Path) -> str | None:
    """Return why there is no trace ``name`` for an experiment in ``folder``; ``None``: there is."""
    if is_own(name):
        if (folder / name).is_file():
            return None
        return f"there is no file {folder / name}; a trace of yours is beside the experiment file"
    known = list_models(home)
    if name in known:
        return None
    return (
        f"there is no trace {name!r}{did_you_mean(name, known)}; allowed: {', '.join(known)}, or a "
        "file of yours beside the experiment file, with a dot in its name"
    )


def read_all(names: Collection[str], folder: Path | None, home: Path) -> dict[str, Trace]:
    """Return the traces ``names``: the user's from ``folder``, others made by models in ``home``.

    Raises:
        ConfigurationError: with every problem of all of them.
    """
    found: dict[str, Trace] = {}
    problems: list[str] = []
    known = list_models(home)
    for name in names:
        problem = find_problem(name, folder or Path(), home)
        try:
            if problem is not None:
                raise ConfigurationError([f"trace {name}: {problem}"])
            found[name] = (
                read_text((folder or Path()) / name) if is_own(name) else synthesise(*known[name])
            )
        except ConfigurationError as error:
            problems += error.problems
    if problems:
        raise ConfigurationError(problems)
    return found


def read_again(traces: Mapping[str, Trace], folder: Path | None) -> dict[str, Trace]:
    """Return ``traces`` for who judges links by them: the user's by their files' own lines.

    What an importer makes of a file the link has, so that its fault would not be seen by that.
    """
    return {
        name: Trace(array("I", map(int, ((folder or Path()) / name).read_bytes().split())))
        if is_own(name)
        else trace
        for name, trace in traces.items()
    }
