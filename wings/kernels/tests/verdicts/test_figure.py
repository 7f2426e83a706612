"""What a change does to page loads as bars: of several kernels, or of a knob that a run sweeps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from analysis.plot.chart import draw
from testbed.base.errors import ConfigurationError
from tests.analysis.verdicts.compare.test_attribution import AGAIN, LOAD
from tests.analysis.verdicts.compare.test_kernels import lane
from wings.kernels.tests.verdicts.test_table import BASE, SLOWER, run_of
from wings.kernels.verdicts.document import describe_attribution
from wings.kernels.verdicts.figure import CHANGE, NAME, CellChange, draw_changes, read_changes
from wings.kernels.verdicts.table import FailRule, attribute_lanes


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = run_of(tmp_path / "run", {"7.3": (BASE, LOAD), "mine": (SLOWER, AGAIN)})
    document = describe_attribution(attribute_lanes(folder), FailRule())
    (folder / NAME).write_text(json.dumps(document))
    return folder


def bars(changes: Sequence[CellChange]) -> list[dict[str, Any]]:
    return list(draw_changes(changes).to_dict(still=True)["data"]["values"])


def test_kernels_change_cells_by_what_their_verdicts_say(run: Path) -> None:
    changes = read_changes([str(run)], "page")
    assert [(one.what, one.condition, round(one.pct, 6)) for one in changes] == [
        ("mine", "amazon", 0.0), ("mine", "amazon", 0.0), ("mine", "wsj", 5.0),
    ]  # fmt: skip


def test_a_cell_without_a_number_is_left_out(run: Path) -> None:
    document = json.loads((run / NAME).read_text())
    for cell in document["kernels"][0]["cells"]:
        if cell["condition"]["page"] == "wsj":
            cell["attribution"]["pct"] = None
    (run / NAME).write_text(json.dumps(document))
    assert {one.condition for one in read_changes([str(run)], "page")} == {"amazon"}


def test_a_swept_knob_is_compared_with_its_greatest_value(tmp_path: Path) -> None:
    lane(tmp_path / "swept", "7.3", BASE, LOAD)
    (change,) = read_changes([f"tfo={tmp_path / 'swept'}"], "loss_pct")
    assert (change.what, change.condition) == ("Fast Open off", "Loss 0 %")
    assert change.pct == pytest.approx(100 * (1000.0 - 900.0) / 900.0)


def test_a_bar_is_the_mean_of_the_cells_with_the_least_and_the_greatest() -> None:
    some = [CellChange("a", "x", 1.0), CellChange("a", "x", 4.0), CellChange("a", "y", 7.0)]
    first, second = bars(some)
    assert (first["label"], first["color"], first["value"]) == ("a", "x", 2.5)
    assert (first["low"], first["high"]) == (1.0, 4.0)
    assert (second["color"], second["low"], second["high"]) == ("y", 7.0, 7.0)


def test_the_drawing_names_what_was_changed_and_what_is_measured() -> None:
    drawn = draw(draw_changes([CellChange("no-sack", "Loss 1 %", 12.5), CellChange("b", "x", 0.0)]))
    assert drawn.startswith("<svg")
    assert all(word in drawn for word in ("no-sack", "Loss 1 %", "12.5", CHANGE))


def test_every_folder_without_verdicts_is_named(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_changes([str(run), str(tmp_path / "one"), str(tmp_path / "two")], "page")
    assert [problem.partition(":")[0] for problem in refused.value.problems] == [
        str(tmp_path / "one"), str(tmp_path / "two"),
    ]  # fmt: skip


def test_a_knob_that_a_run_does_not_sweep_is_refused(tmp_path: Path) -> None:
    lane(tmp_path / "swept", "7.3", BASE, LOAD)
    with pytest.raises(ConfigurationError, match="rtt_ms: the run does not sweep it"):
        read_changes([f"rtt_ms={tmp_path / 'swept'}"], "page")


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(ConfigurationError, match="nothing to draw"):
        draw_changes([])
