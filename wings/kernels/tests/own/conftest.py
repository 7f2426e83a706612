"""The toolchain for tests that build kernels."""

from __future__ import annotations

import pytest

from tests.kernel.toolchains import find_toolchain


@pytest.fixture(autouse=True)
def one_toolchain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels in whichever cache are built by the toolchain that development keeps."""
    for name in ("testbed.kernel.build.cache", "wings.kernels.own.build",
                 "wings.kernels.own.definition"):  # fmt: skip
        monkeypatch.setattr(f"{name}.ensure_toolchain", lambda *_asked: find_toolchain())
