"""Tests of what changed since main, the nearest first, as many as fit in a minute.

``python -m tests.changed`` prints what pytest is to run, which ``make check`` does.  Nearest are
changed tests, then tests that import a changed module, then those that import its importers; a
file is tested by what names it, too.  What does not fit is for ``make test``.

With ``--wings`` it prints what leaves out the tests of wings that no change reaches, as ``make
test`` does.  No other tier asks what changed: in a fresh clone, nothing did.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import grimp

from testbed.base import proc
from tests.workers import read_durations

ROOT = Path(__file__).parent.parent
PACKAGES = ("bench", "firstflight", "wings", "analysis", "testbed", "tests")
ALWAYS = ("tests/test_lint.py", "tests/test_repository.py")
BUDGET_S = 40.0
"""Of all workers together: two have as much as that in the minute, beside the linters."""
FILE_S = 0.5
"""What a file takes beside the functions whose durations are known."""
MAIN = "main"
WINGS = "wings"


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
        yield sorted(module for module in ring if is_test(file_of(module)))
        ring = {importer for module in ring for importer in _importers(graph, module)} - seen


def _importers(graph: grimp.ImportGraph, module: str) -> set[str]:
    """Return what imports ``module``; the tests of a folder have the names in its conftest.py."""
    folder, _, name = module.rpartition(".")
    if name == "conftest":
        return {other for other in graph.find_descendants(folder) if is_test(file_of(other))}
    return graph.find_modules_that_directly_import(module)


def is_test(file: str) -> bool:
    """Return whether pytest takes it for a file of tests."""
    return "tests" in Path(file).parts[:-1] and Path(file).name.startswith("test_")


def list_tests(root: Path) -> list[Path]:
    """Return all files of tests, those of wings among them."""
    return [path for top in ("tests", WINGS) for path in sorted((root / top).rglob("test_*.py"))]


def naming(root: Path, files: Iterable[str]) -> list[str]:
    """Return the files of tests that name one of ``files``."""
    names = [name for file in files for name in (file, f'"{Path(file).name}"')]
    tests = list_tests(root)
    texts = {str(path.relative_to(root)): path.read_text() for path in tests if names}
    return [test for test, text in texts.items() if any(name in text for name in names)]


def fitting(
    ring: Sequence[str], durations: Mapping[str, tuple[float, int]], budget_s: float
) -> tuple[list[str], list[str], float]:
    """Return those files of ``ring`` that fit, functions that do not, and what is left.

    The short functions of all files come before a long one of any.
    """
    files = list(ring[: int(budget_s / FILE_S)])
    budget_s -= FILE_S * len(files)
    long = {name: s for name, (s, _) in durations.items() if name.partition("::")[0] in files}
    left_out = []
    for name in sorted(long, key=lambda name: (long[name], name)):
        if long[name] <= budget_s:
            budget_s -= long[name]
        else:
            left_out.append(name)
    return files, left_out, budget_s


def choose(root: Path, changed: Sequence[str], budget_s: float = BUDGET_S) -> list[str]:
    """Return pytest's arguments for ``changed``; how much is left out is said."""
    graph = build_graph(root)
    modules = [module_of(file) for file in changed if file.endswith(".py")]
    rings = [list(map(file_of, ring)) for ring in nearest(graph, modules)]
    rings.insert(1, naming(root, changed))
    durations, chosen, left_out, count = read_durations(root), [*ALWAYS], list[str](), 0
    for ring in rings:
        new = [file for file in dict.fromkeys(ring) if file not in chosen]
        files, long, budget_s = fitting(new, durations, budget_s)
        chosen += files
        left_out += long
        count += len(new) - len(files) + len(long)
    if count:
        print(f"{count} files or functions are longer or further: `make test`", file=sys.stderr)
    return [*chosen, *(f"--deselect={name}" for name in left_out)]


def untouched_wings(
    graph: grimp.ImportGraph, wings: Iterable[str], changed: Iterable[str]
) -> list[str]:
    """Return those of ``wings`` of which no file changed, and nothing that they import."""
    changed = set(changed)
    modules = {module_of(file) for file in changed}
    return [
        wing
        for wing in wings
        if not any(file.startswith(f"{WINGS}/{wing}/") for file in changed)
        and modules.isdisjoint(graph.find_upstream_modules(f"{WINGS}.{wing}", as_package=True))
    ]


def build_graph(root: Path) -> grimp.ImportGraph:
    """Return who imports whom."""
    return grimp.build_graph(*PACKAGES, cache_dir=str(root / ".import_linter_cache"))


def leave_out_wings(root: Path, changed: Sequence[str]) -> list[str]:
    """Return pytest's arguments that leave out the tests of wings that no change reaches."""
    wings = sorted(path.parent.name for path in (root / WINGS).glob("*/tests"))
    untouched = untouched_wings(build_graph(root), wings, changed) if wings else []
    if untouched:
        print(f"without the wings {', '.join(untouched)}: `make test-all`", file=sys.stderr)
    return [f"--ignore={WINGS}/{wing}/tests" for wing in untouched]


if __name__ == "__main__":
    answer = leave_out_wings if sys.argv[1:] == ["--wings"] else choose
    print("\n".join(answer(ROOT, changed_files(ROOT))))
