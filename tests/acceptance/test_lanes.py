"""One experiment on both pinned kernels: two results, never pooled, and what differs first."""

from __future__ import annotations

import json
import shutil

import pytest

from testbed import places
from testbed.errors import EXIT_OK
from testbed.kernel.build import find_kernel
from testbed.kernel.pin import read_pin
from testbed.records import read_records
from tests.acceptance.house import House

pytestmark = [pytest.mark.guest, pytest.mark.timeout(120)]
VERSIONS = ("6.1", "7.3")


def test_both_kernels_in_one_run(house: House) -> None:
    if find_kernel(read_pin("6.1"), places.cache()) is None:
        pytest.skip("the virtual kernel 6.1 is not built; run `make kernel`")
    shutil.copytree(places.ROOT / "pages" / "wikipedia", house.pages / "wikipedia")
    knobs = {"kernel.versions": list(VERSIONS), "page": "wikipedia", "client": "graph"}
    ran = house.run(**knobs, tfo=True)
    assert ran.code == EXIT_OK
    loads = [read_records(ran.folder / version) for version in VERSIONS]
    assert [[r.trial.kernel_version for r in records] for records in loads] == [["6.1"], ["7.3"]]
    assert loads[0][0].environment != loads[1][0].environment
    told = json.loads((ran.folder / "crosscheck.json").read_text())
    (cell,) = told["cells"]
    assert [cell["base_ms"], cell["other_ms"]] == [
        record.load.plt_ms for (record,) in loads if record.load is not None
    ]
    # The receiver of 7.3 opens its window sooner, so it acknowledges at other times.
    assert cell["parting"] == "acknowledgement"
    assert "The captures part at packet" in cell["first_difference"]
    assert cell["first_difference"] in ran.said
