"""Changes to the pinned kernel that do nothing, and planted ones: what the bench tries."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.verdicts import CHANGES
from testbed.kernel.build.patches import read_patch

NOOPS, PLANTS = (sorted((CHANGES / kind).glob("*.patch")) for kind in ("noops", "plants"))


def test_there_are_enough_of_them() -> None:
    assert (len(NOOPS), len(PLANTS)) == (20, 20)


@pytest.mark.parametrize("path", [*NOOPS, *PLANTS], ids=lambda path: path.stem)
def test_each_is_a_patch_of_tcp_under_its_licence(path: Path) -> None:
    assert path.read_text().startswith("SPDX-License-Identifier: GPL-2.0-only\n\ntcp: ")
    touched = read_patch(path).touched
    assert touched and all(name.startswith(("net/ipv4/", "include/")) for name in touched)
