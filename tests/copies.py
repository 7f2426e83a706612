"""Copy of the code that guests run and that judges them, for tests that change it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from testbed.base import sources


def copy_code(tree: Path, patch: pytest.MonkeyPatch) -> Path:
    """Copy the code into ``tree``, from where it is taken until ``patch`` ends; return testbed."""
    ignored = shutil.ignore_patterns("__pycache__", "tests")
    for code in ("testbed", "wings"):
        shutil.copytree(sources.PACKAGE.parent / code, tree / code, ignore=ignored)
    patch.setattr(sources, "PACKAGE", tree / "testbed")
    return tree / "testbed"
