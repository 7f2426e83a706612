"""What the lab's tests share: the link's program, and what the kernel can do."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base import proc
from tests.lab.wires import namespace
from tests.native.load import copy_programs


@pytest.fixture(scope="session")
def link_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_programs(tmp_path_factory.mktemp("native")).folder / "link"


@pytest.fixture(scope="session")
def has_netem() -> bool:
    """Whether the kernel that runs the tests can shape."""
    with namespace("t") as made:
        argv = ("tc", "-n", made.name, "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
        return proc.run(argv, check=False).returncode == 0
