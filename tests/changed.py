"""Tests of what changed since main, the nearest first, as many as fit in a minute.

``python -m tests.changed`` prints what pytest is to run, which ``make check`` does.  Nearest are
changed tests, then tests that import a changed module, then those that import its importers; a
file is tested by what names it, too.  What does not fit is for ``make test``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import grimp

from testbed.base import proc
from tests.workers import read_durations

ROOT = Path(__file__).parent.parent
PACKAGES = ("bench", "firstflight", "analysis", "testbed", "tests")
LINTERS = "tests/test_lint.py"
BUDGET_S = 40.0
"""Of all workers together: two have as much as that in the minute, beside the linters."""
FILE_S = 0.5
"""What a file takes beside the functions whose durations are known."""
MAIN = "main"


def changed_files(root: Path, main: str = MAIN) -> tuple[str, ...]:
    """Return the files that differ from where the branch left ``main``, new ones among them."""
    base = _git(root, "merge-base", "HEAD", main).strip() or "HEAD"
    names = _git(root, "diff", "--name-only", "--relative", base)
    names += _git(root, "ls-files", "--others", "--exclude-standard")
    return tuple(sorted(set(names.splitlines())))


def _git(root: Path, *words: str) -> str:
    """Return what git says; nothing where there is no repository, or no such branch."""
    return proc.run(["git", "-C", str(root), *words], check=False).stdout


def module_of(file: str) -> str:
    """Return the name of the module in ``file``."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def file_of(module: str) -> str:
    """Return the file of a module that is no package."""
    return f"{module.replace('.', '/')}.py"


def nearest(graph: grimp.ImportGraph, modules: Iterable[str]) -> Iterator[list[str]]:
    """Yield the modules of tests that import ``modules``, by how many imports are between."""
    ring = {module for module in modules if module in graph.modules}
    seen: set[str] = set()
    while ring:
        seen |= ring
        yield sorted(one for one in ring if is_test(file_of(one)))
        ring = {importer for module in ring for importer in _importers(graph, module)} - seen


def _importers(graph: grimp.ImportGraph, module: str) -> set[str]:
    """Return what imports ``module``; the tests of a folder have the names in its conftest.py."""
    folder, _, name = module.rpartition(".")
    if name == "conftest":
        return {other for other in graph.find_descendants(folder) if is_test(file_of(other))}
    return graph.find_modules_that_directly_import(module)


def is_test(file: str) -> bool:
    """Return whether pytest takes it for a file of tests."""
    return file.startswith("tests/") and Path(file).name.startswith("test_")


def naming(root: Path, files: Iterable[str]) -> list[str]:
    """Return the files of tests that name one of ``files``."""
    names = [name for file in files for name in (file, f'"{Path(file).name}"')]
    tests = sorted((root / "tests").rglob("test_*.py"))
    texts = {str(path.relative_to(root)): path.read_text() for path in tests if names}
    return [test for test, text in texts.items() if any(name in text for name in names)]


def fitting(
    files: Sequence[str], durations: Mapping[str, tuple[float, int]], budget_s: float
) -> tuple[list[str], list[str]]:
    """Return those of ``files`` that fit, in their order, and functions that do not.

    Of a file that is too long its short functions are left.
    """
    chosen, left_out = [], []
    for file in files:
        if budget_s < FILE_S:
            left_out.append(file)
            continue
        chosen.append(file)
        budget_s -= FILE_S
        functions = {name: s for name, (s, _) in durations.items() if name.startswith(f"{file}::")}
        for function, seconds in sorted(functions.items(), key=lambda item: item[1]):
            if seconds <= budget_s:
                budget_s -= seconds
            else:
                left_out.append(function)
    return chosen, left_out


def choose(root: Path, changed: Sequence[str], budget_s: float = BUDGET_S) -> list[str]:
    """Return pytest's arguments for ``changed``; what is left out is said."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=str(root / ".import_linter_cache"))
    modules = [module_of(file) for file in changed if file.endswith(".py")]
    rings = [list(map(file_of, ring)) for ring in nearest(graph, modules)]
    rings.insert(1, naming(root, changed))
    files = [file for file in dict.fromkeys(chain(*rings)) if file != LINTERS]
    chosen, left_out = fitting(files, read_durations(root), budget_s)
    if left_out:
        print(f"{len(left_out)} that are longer or further are left for `make test`",
              file=sys.stderr)  # fmt: skip
    functions = (name for name in left_out if "::" in name)
    return [LINTERS, *chosen, *(f"--deselect={name}" for name in functions)]


if __name__ == "__main__":
    print("\n".join(choose(ROOT, changed_files(ROOT))))
