"""Determinism: boots of one trial leave equal captures, HAR files, loads, proofs and labs."""

from __future__ import annotations

import os

import pytest

from testbed.kernel import REGULAR_VERSIONS
from testbed.way.prepare import prepare_determinism

BOOTS = 20


@pytest.mark.guest
@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("version", REGULAR_VERSIONS)
@pytest.mark.parametrize("client", ["chromium", "wget2", "graph"])
def test_all_boots_are_equal(client: str, version: str) -> None:
    assert prepare_determinism(BOOTS, client, version, os.cpu_count() or 1) == ()
