"""Patches of TCP's history: licensed, explained, of TCP alone, and told of in the documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base.places import ROOT
from testbed.kernel.build.patches import read_series

PATCHES = sorted((ROOT / "kernels" / "history").glob("*.patch"))
DOCUMENT = (ROOT / "wings" / "papers" / "docs" / "tcp.md").read_text("utf-8")


@pytest.mark.parametrize("file", PATCHES, ids=lambda file: file.stem)
def test_a_patch_is_licensed_explained_and_taken_as_one(file: Path) -> None:
    head, _, diff = file.read_text("utf-8").partition("\n---\n")
    assert head.splitlines()[0] == "SPDX-License-Identifier: GPL-2.0-only"
    assert len(head.split()) > 30, "a patch says why it is there"
    assert diff.startswith("--- a/")
    (patch,) = read_series([file])
    assert patch.subject.startswith("tcp")
    assert all(name.startswith(("net/ipv4/tcp", "include/net/tcp")) for name in patch.touched)
    assert f"`{file.stem}`" in DOCUMENT
