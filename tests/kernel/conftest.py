"""The virtual kernel for tests that boot guests."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from testbed.base.errors import MissingError
from testbed.base.places import cache
from testbed.kernel.build.cache import find_kernel
from testbed.kernel.build.pin import read_pin
from testbed.kernel.run.jail import read_hold
from testbed.root.cache import Root
from tests.kernel.guests import Guests, compile_init
from tests.kernel.toolchains import find_toolchain

KERNEL_VARIABLE = "FIRSTFLIGHT_TEST_KERNEL"


@pytest.fixture(autouse=True)
def one_toolchain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels in whichever cache are built by the toolchain that development keeps."""
    name = "testbed.kernel.build.cache.ensure_toolchain"
    monkeypatch.setattr(name, lambda *_asked: find_toolchain())


@pytest.fixture(scope="session")
def kernel_binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default kernel: the one that the variable names, or the one that is built.

    A copy: other runs on this machine have guests of the same kernel, and tests look for theirs.
    """
    named = os.environ.get(KERNEL_VARIABLE)
    build = None if named else find_kernel(read_pin("7.3"), cache())
    if not named and build is None:
        pytest.skip("the virtual kernel is not built; run `make kernel`")
    copy = tmp_path_factory.mktemp("kernel") / "linux"
    shutil.copy(build.binary if build else str(named), copy)
    return copy


@pytest.fixture(scope="session")
def guest_init(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The guest's process 1."""
    return compile_init(tmp_path_factory.mktemp("init"))


@pytest.fixture
def guests(kernel_binary: Path, guest_init: Path, tmp_path: Path, root: Root) -> Guests:
    """Runs programs in guests."""
    return Guests(kernel_binary, guest_init, read_pin("7.3").boot, tmp_path, root.usr)


@pytest.fixture
def jail() -> None:
    """Skip where the machine has no jail."""
    try:
        read_hold()
    except MissingError as error:
        pytest.skip(f"no jail here: {error}")
