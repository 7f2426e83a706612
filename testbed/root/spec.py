"""What is wanted of a root, and why: ``roots/NAME/root.toml``.

Standard library only: a root is assembled before there is a Python environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.base.debian import ARCHIVES
from testbed.base.errors import ConfigurationError
from testbed.base.places import ROOT
from testbed.base.suggest import did_you_mean
from testbed.root.lock import list_component_problems, read_document

ROOTS = ROOT / "roots"
SPEC_FILE, LOCK_FILE = "root.toml", "lock.toml"


@dataclass(frozen=True, slots=True)
class Component:
    """Packages of other suites in a folder of their own; its fields are as a root's."""

    suites: Mapping[str, tuple[str, ...]]
    packages: Mapping[str, str]
    without: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RootSpec:
    """What is wanted of a root.

    Attributes:
        folder: where its files are; its name is the root's.
        title: for people.
        clients: whether guests run it, so that it has the packages of clients as well.
        suites: names of suites, by archive.
        packages: why each is wanted beside those of the programs that trials run.
        without: why each package is left out that others say they need.
        left_out: patterns of paths that no guest reads, by why; ``*`` within a folder, ``**``
            across.
        components: what it has beside its own packages, by name.
    """

    folder: Path
    title: str
    clients: bool
    suites: Mapping[str, tuple[str, ...]]
    packages: Mapping[str, str]
    without: Mapping[str, str]
    left_out: Mapping[str, tuple[str, ...]]
    components: Mapping[str, Component] = field(default_factory=dict)

    @property
    def parts(self) -> dict[str, Component]:
        """What is resolved apart: itself, by an empty name, and its components."""
        return {"": Component(self.suites, self.packages, self.without), **self.components}

    @property
    def name(self) -> str:
        """The root's name."""
        return self.folder.name

    @property
    def lock_file(self) -> Path:
        """Where its lock is."""
        return self.folder / LOCK_FILE

    @property
    def patterns(self) -> tuple[str, ...]:
        """All patterns of what is left out."""
        return tuple(pattern for patterns in self.left_out.values() for pattern in patterns)


def root_names(roots: Path = ROOTS) -> tuple[str, ...]:
    """Return the names of the roots that there are."""
    return tuple(sorted(file.parent.name for file in roots.glob(f"*/{SPEC_FILE}")))


def guest_root_names(roots: Path = ROOTS) -> tuple[str, ...]:
    """Return the names of the roots that guests run.

    Raises:
        ConfigurationError: a root's file says something else.
    """
    return tuple(name for name in root_names(roots) if read_spec(name, roots).clients)


def read_spec(name: str, roots: Path = ROOTS) -> RootSpec:
    """Read what is wanted of the root ``name``.

    Raises:
        ConfigurationError: there is no such root, or its file says something else; all problems.
    """
    if name not in (names := root_names(roots)):
        near = did_you_mean(name, names)
        raise ConfigurationError([f"no root {name!r}{near}; there are {', '.join(names)}"])
    file = roots / name / SPEC_FILE
    document = read_document(file, _list_problems)
    parts = {
        name: Component({archive: tuple(names) for archive, names in table["suites"].items()},
                        table["packages"], table["without"])
        for name, table in {"": document, **document.get("component", {})}.items()
    }  # fmt: skip
    own = parts.pop("")
    return RootSpec(
        file.parent, document["title"], document["clients"], own.suites, own.packages, own.without,
        {reason: tuple(patterns) for reason, patterns in document["left_out"].items()}, parts,
    )  # fmt: skip


_PART: dict[str, tuple[type, str]] = {
    "suites": (dict, "a table: an archive's name, and a list of its suites"),
    "packages": (dict, "a table: a package's name, and why it is wanted"),
    "without": (dict, "a table: a package's name, and why no guest needs it"),
}
_ROOT: dict[str, tuple[type, str]] = {
    "title": (str, "a text"), "clients": (bool, "true or false: whether guests run it"), **_PART,
    "left_out": (dict, "a table: a reason, and a list of patterns of paths"),
}  # fmt: skip


def _list_problems(document: Mapping[str, Any]) -> Iterator[str]:
    root = {key: value for key, value in document.items() if key != "component"}
    yield from _list_part_problems(root, _ROOT)
    yield from list_component_problems(document, lambda table: _list_part_problems(table, _PART))
    if "component" in document and not document.get("clients"):
        yield "component: only a root that guests run has some"


def _list_part_problems(
    document: Mapping[str, Any], wanted: Mapping[str, tuple[type, str]]
) -> Iterator[str]:
    yield from (f"unknown: {key}" for key in sorted(document.keys() - wanted.keys()))
    for key, (kind, words) in wanted.items():
        if not isinstance(document.get(key), kind):
            yield f"{key} must be {words}"
            continue
        if key in ("packages", "without"):
            wrong = [name for name, why in document[key].items() if not isinstance(why, str)]
        elif kind is dict:
            wrong = [name for name, texts in document[key].items() if not isinstance(texts, list)
                     or not all(isinstance(text, str) for text in texts)]  # fmt: skip
        else:
            wrong = []
        yield from (f"{key}.{name} must be {words}" for name in wrong)
        if key == "suites":
            unknown = document[key].keys() - ARCHIVES
            yield from (
                f"suites.{name}: the archives are {', '.join(ARCHIVES)}" for name in unknown
            )
