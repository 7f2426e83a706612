from __future__ import annotations

from pathlib import Path

import pytest

from testbed.kernel.boot import boot_problem
from tests.kernel.guests import Guests


@pytest.mark.guest
def test_a_built_kernel_boots(guests: Guests) -> None:
    assert boot_problem("7.3", guests.binary, guests.boot_options, guests.init, jailed=True) is None


def test_a_kernel_that_dies_is_told_with_its_console(tmp_path: Path) -> None:
    init = tmp_path / "init"
    init.touch()
    binary = tmp_path / "linux"
    binary.write_text("#!/bin/sh\necho ptrace set fp regs failed, errno = 14\nexit 1\n")
    binary.chmod(0o755)
    told = boot_problem("6.1", binary, (), init, jailed=False)
    assert told is not None
    assert "does not boot" in told
    assert "ptrace set fp regs failed, errno = 14" in told
