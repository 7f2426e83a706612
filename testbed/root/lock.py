"""Lock of a root: each Debian package with its version, size and SHA-256, as a TOML file.

Standard library only: a root is assembled before there is a Python environment.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from testbed.base.debian import ARCHIVES
from testbed.base.errors import ConfigurationError

_SHA256 = re.compile(r"[0-9a-f]{64}")
_MOST_BYTES = 1 << 32
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.~:_-]*")
_PATH = re.compile(r"pool/[A-Za-z0-9+._~:%-]+(?:/[A-Za-z0-9+._~:%-]+)*")
_TAKEN = re.compile(r"\d{8}T\d{6}Z")
_COMPONENT = re.compile(r"[a-z0-9][a-z0-9-]*")


@dataclass(frozen=True, slots=True, order=True)
class LockedPackage:
    """One package, as an archive of Debian has it.

    Attributes:
        name: the package's.
        version: the package's (deb-version(7)).
        archive: ``debian`` or ``debian-security``.
        path: below the archive's address.
        size: in bytes.
        sha256: of the file.
    """

    name: str
    version: str
    archive: str
    path: str
    size: int
    sha256: str

    def describe(self) -> str:
        """Return name and version."""
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class Lock:
    """Packages of a root, by name, in the state that the archives had at ``taken`` (UTC).

    ``digest`` is that of the files that they are assembled to, with those of its ``components``, by
    name; ``None``: the lock does not say.
    """

    taken: str
    packages: tuple[LockedPackage, ...]
    digest: str | None = None
    components: Mapping[str, Lock] = field(default_factory=dict)

    @property
    def parts(self) -> dict[str, Lock]:
        """What is resolved apart: the root's own packages, by an empty name, and its components."""
        return {"": Lock(self.taken, self.packages), **self.components}

    @property
    def all_packages(self) -> dict[str, LockedPackage]:
        """Its packages by their names, and those of components by COMPONENT/NAME."""
        return {
            f"{name}/{package.name}" if name else package.name: package
            for name, part in self.parts.items()
            for package in part.packages
        }

    @property
    def size(self) -> int:
        """How many bytes there are to download."""
        return sum(package.size for package in self.all_packages.values())


def read_lock(file: Path) -> Lock:
    """Read the lock ``file``.

    Raises:
        ConfigurationError: it cannot be read, or is no lock; all problems.
    """
    document = read_document(file, _list_problems)
    tables = {"": document, **document.get("component", {})}
    parts = {
        name: Lock(table["taken"], tuple(LockedPackage(**entry) for entry in table["package"]))
        for name, table in tables.items()
    }
    return join_parts(parts, document.get("digest"))


def join_parts(parts: Mapping[str, Lock], digest: str | None = None) -> Lock:
    """Return the lock that has ``parts``, the inverse of ``Lock.parts``."""
    components = {name: part for name, part in parts.items() if name}
    return Lock(parts[""].taken, parts[""].packages, digest, components)


def read_document(
    file: Path, list_problems: Callable[[dict[str, Any]], Iterable[str]]
) -> dict[str, Any]:
    """Read a TOML file in which ``list_problems`` finds none.

    Raises:
        ConfigurationError: it cannot be read, or there are problems; all of them.
    """
    try:
        document = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigurationError([f"{file}: {reason}"]) from None
    if problems := [f"{file}: {problem}" for problem in list_problems(document)]:
        raise ConfigurationError(problems)
    return document


def format_lock(lock: Lock) -> str:
    """Return the text of a lock file; equal locks have equal texts."""
    lines = ["# Written by `./run.sh root update`.", *_format_part(lock)]
    for name, component in sorted(lock.components.items()):
        lines += ["", f"[component.{name}]", *_format_part(component)]
    return "\n".join([*lines, ""])


def _format_part(lock: Lock) -> Iterator[str]:
    yield f'taken = "{lock.taken}"'
    if lock.digest:
        yield f'digest = "{lock.digest}"'
    yield "package = ["
    for package in sorted(lock.packages):
        values = {name: getattr(package, name) for name in _FIELDS}
        pairs = (f"{k} = {v}" if isinstance(v, int) else f'{k} = "{v}"' for k, v in values.items())
        yield "  {" + ", ".join(pairs) + "},"
    yield "]"


def describe_changes(old: Lock | None, new: Lock) -> tuple[str, ...]:
    """Return a line for each package that came, went or has another version or file."""
    before, after = old.all_packages if old else {}, new.all_packages

    def file_of(packages: Mapping[str, LockedPackage], name: str) -> str | None:
        return packages[name].sha256 if name in packages else None

    return tuple(
        f"{name}: {before[name].version if name in before else 'absent'} -> "
        f"{after[name].version if name in after else 'absent'}"
        for name in sorted(before.keys() | after.keys())
        if file_of(before, name) != file_of(after, name)
    )


def _list_problems(document: Mapping[str, Any]) -> Iterator[str]:
    components = list_component_problems(document, lambda table: _list_part_problems(table, set()))
    return chain(_list_part_problems(document, {"digest", "component"}), components)


def list_component_problems(
    document: Mapping[str, Any], list_problems: Callable[[dict[str, Any]], Iterable[str]]
) -> Iterator[str]:
    """Yield what is wrong with the tables ``[component.NAME]``, each one's by ``list_problems``."""
    components = document.get("component", {})
    if not isinstance(components, dict):
        yield "component must be tables: [component.NAME]"
        return
    for name, table in components.items():
        if not _fits(_COMPONENT, name):
            yield f"component.{name}: a name has small letters, digits and hyphens"
        problems = list_problems(table) if isinstance(table, dict) else ("it must be a table",)
        yield from (f"component.{name}: {problem}" for problem in problems)


def _list_part_problems(document: Mapping[str, Any], further: set[str]) -> Iterator[str]:
    if unknown := document.keys() - {"taken", "package"} - further:
        yield f"unknown: {', '.join(sorted(unknown))}"
    if not _fits(_TAKEN, document.get("taken")):
        yield f"taken is {document.get('taken')!r}, not a time such as 20261124T120000Z"
    if "digest" in document and not _fits(_SHA256, document["digest"]):
        yield f"digest is {document['digest']!r}, not 64 hexadecimal digits"
    entries = document.get("package")
    if not isinstance(entries, list) or not entries:
        yield "it names no package"
        return
    names: set[str] = set()
    for number, entry in enumerate(entries, 1):
        if problems := list(list_entry_problems(entry)):
            yield from (f"package {number}: {problem}" for problem in problems)
            continue
        if entry["name"] in names:
            yield f"package {number}: {entry['name']} is there twice"
        names.add(str(entry["name"]))


def list_entry_problems(entry: object) -> Iterator[str]:
    """Yield what is wrong with the fields of one package."""
    if not isinstance(entry, dict) or entry.keys() != set(_FIELDS):
        yield f"it has not just {', '.join(_FIELDS)}"
        return
    wrong = (name for name, fits in _FIELDS.items() if not fits(entry[name]))
    yield from (f"{name} is {entry[name]!r}" for name in wrong)


def _fits(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


_FIELDS: dict[str, Callable[[object], bool]] = {
    "name": lambda value: _fits(_WORD, value),
    "version": lambda value: _fits(_WORD, value),
    "archive": lambda value: value in ARCHIVES,
    "path": lambda value: _fits(_PATH, value) and not {"..", "."} & set(str(value).split("/")),
    "size": lambda value: type(value) is int and 0 < value < _MOST_BYTES,
    "sha256": lambda value: _fits(_SHA256, value),
}
