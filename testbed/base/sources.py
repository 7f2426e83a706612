"""Source files of a module: its own, and those of the modules of ours that it imports."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
# Not ast: to parse a guest's eighty files would take each run a fifth of a second.
_NAME = r"(?:testbed|wings)\b"
_STATEMENT = (
    rf"(?:from (?P<package>{_NAME}[\w.]*) import (?P<names>\([^)]*\)|[^(\n]*)"
    rf"|import (?P<module>{_NAME}[\w.]*))"
)
_IMPORTED = re.compile(rf'^[ \t]*{_STATEMENT}|"(?P<text>{_NAME}(?:\.\w+)+)"', re.MULTILINE)
_IMPORTED_AT_ONCE = re.compile(rf"^{_STATEMENT}(?P<text>)", re.MULTILINE)
_FOR_TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t]+.*\n|\n)+", re.MULTILINE)


def imported_sources(*modules: str, at_once: bool = False) -> tuple[Path, ...]:
    """Return the files of ``modules`` and of what they import of the engine and wings, sorted.

    Imports within functions count, and so do names of modules in text, which a registry imports
    when they are asked for; neither do if ``at_once``, which is what an import of ``modules``
    alone imports.  Imports for type checkers never count.

    Raises:
        ValueError: there is no such module.
    """
    for module in modules:
        if _source(module) is None:
            raise ValueError(f"there is no module {module}")
    sources, seen = set[Path](), set[str]()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        file = _source(name)
        if file is not None and file not in sources:
            sources.add(file)
            waiting += [name.rpartition(".")[0], *_imported(file.read_text("utf-8"), at_once)]
    return tuple(sorted(sources))


def digest_sources(files: Iterable[Path]) -> str:
    """Return the SHA-256 over the contents of ``files``, in their order."""
    state = hashlib.sha256()
    for file in files:
        state.update(hashlib.sha256(file.read_bytes()).digest())
    return state.hexdigest()


def _source(module: str) -> Path | None:
    """Return the file of ``module``; ``None`` if it is none of ours."""
    package, *names = module.split(".")
    if package not in ("testbed", "wings"):
        return None
    path = PACKAGE.parent.joinpath(package, *names)
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return file if file.is_file() else None


@functools.cache
def _imported(text: str, at_once: bool) -> tuple[str, ...]:
    """Return the names that may be modules of ours, out of the source ``text``, each once."""
    modules: list[str] = []
    pattern = _IMPORTED_AT_ONCE if at_once else _IMPORTED
    for reference in pattern.finditer(_FOR_TYPES.sub("", text)):
        package = reference["package"]
        if package:
            names = re.findall(r"\w+", reference["names"])
            modules += [package, *(f"{package}.{name}" for name in names)]
        else:
            modules.append(reference["module"] or reference["text"])
    return tuple(dict.fromkeys(modules))
