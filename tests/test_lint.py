"""The linters as tests: what `make lint` runs, and nothing else decides what clean means."""

from __future__ import annotations

import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from testbed.base import proc
from wings.pages.recorder.driver import set_up_recording

ROOT = Path(__file__).parent.parent
TOOLS = Path(sys.executable).parent


def check(*argv: str, cwd: Path = ROOT, timeout_s: float = 1200) -> None:
    done = proc.run(argv, cwd=cwd, check=False, timeout_s=timeout_s)
    if done.returncode != 0:
        pytest.fail(f"{' '.join(argv)}\n{done.stdout}{done.stderr}", pytrace=False)


def shell_scripts() -> list[str]:
    folders = [ROOT, ROOT / ".ci", ROOT / "bootstrap", ROOT / "docker"]
    folders.append(ROOT / "examples" / "many-machines")
    files = [path for folder in folders for path in folder.glob("*") if path.is_file()]
    return sorted(str(path.relative_to(ROOT)) for path in files if is_shell(path))


def is_shell(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.readline().startswith((b"#!/usr/bin/env bash", b"#!/bin/sh", b"#!/bin/bash"))


def test_ruff_check() -> None:
    check(sys.executable, "-m", "ruff", "check", ".")


def test_ruff_format() -> None:
    check(sys.executable, "-m", "ruff", "format", "--check", ".")


@pytest.mark.slow
def test_mypy() -> None:
    check(sys.executable, "-m", "mypy")


def test_imports_follow_the_house() -> None:
    check(str(TOOLS / "lint-imports"))


def test_no_module_needs_itself_by_way_of_others() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    graph = grimp.build_graph(*packages["root_packages"], exclude_type_checking_imports=True)
    needs = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(needs) > 400
    TopologicalSorter(needs).prepare()  # its error names the circle


def test_shellcheck() -> None:
    scripts = shell_scripts()
    assert "run.sh" in scripts
    check("shellcheck", "--check-sourced", "--external-sources", *scripts)


def test_hadolint() -> None:
    check(str(TOOLS / "hadolint"), "docker/Dockerfile")


def test_eslint() -> None:
    # In the cache: it has ESLint, and copies of the very files that are in the work tree.
    check("npm", "run", "--silent", "lint", cwd=set_up_recording())
