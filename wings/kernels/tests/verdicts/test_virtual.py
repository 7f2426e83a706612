"""Two real virtual kernels attributed: loads of ``graph`` whose captures can be read."""

from __future__ import annotations

import json
import shutil

import pytest

from testbed.base.places import CONFIGS, PAGES
from tests.acceptance.conftest import acceptance_cache, house
from tests.acceptance.house import House
from wings.kernels.verdicts.table import FailRule, attribute, attribute_lanes

__all__ = ["acceptance_cache", "house"]  # fixtures of this file, too

PAGE = "wikipedia"


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.nightly
def test_an_older_kernel_sends_other_packets(house: House) -> None:
    shutil.copytree(PAGES / PAGE, house.pages / PAGE)
    folder = house.folder / "lanes"
    code, _ = house.command("run", str(CONFIGS / "quick.toml"), "--set",
                            'kernel.versions=["7.3", "6.1"]', "-o", str(folder))  # fmt: skip
    assert code == 0
    found = attribute_lanes(folder)
    (later,) = found.lanes
    assert (found.base_name, later.name) == ("7.3", "6.1")
    assert len(later.cells) == 2
    for cell in later.cells:
        assert cell.attribution is not None
        assert cell.attribution.verdict in ("slower", "faster", "other packets")
        assert cell.attribution.counters
        assert cell.packets is not None and cell.packets.order is not None
    assert found.exit_code(FailRule("any")) == 1
    assert json.loads((folder / "kernels.json").read_text())["base_name"] == "7.3"
    shutil.copytree(folder / "7.3", house.folder / "copy")
    (copied,) = attribute(folder / "7.3", house.folder / "copy").lanes
    assert copied.counts == {"no effect": 2}
