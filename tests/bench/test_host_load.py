"""The page of the bench, and how its loads are judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.host_load import OBJECTS, Load, build_forty_objects, judge_loads
from testbed.archive.reading import read_archive


def load(plt_ms: float, beyond_s: float = 0.3) -> Load:
    return Load(plt_ms, plt_ms / 1000 + beyond_s, 0.12, 0.03)


def test_the_page_has_forty_objects(tmp_path: Path) -> None:
    archive = read_archive(build_forty_objects(tmp_path))
    assert len(archive.entries) == OBJECTS + 1
    assert {entry.parent for entry in archive.entries[1:]} == {archive.root_url}


def test_what_a_load_takes_beyond_its_plt() -> None:
    one = load(900.0, 0.3)
    assert one.beyond_s == pytest.approx(0.3)
    assert one.rest_s == pytest.approx(0.15)


@pytest.mark.parametrize(("loads", "in_full", "verdict"), [
    ([load(900.0), load(905.0), load(895.0)], True, "met"),
    ([load(900.0), load(905.0), load(895.0)], False, "reported"),
    ([load(900.0), load(980.0), load(895.0)], True, "missed"),
    ([load(900.0, 0.6), load(905.0, 0.6), load(895.0, 0.6)], True, "missed"),
])  # fmt: skip
def test_verdicts(loads: list[Load], in_full: bool, verdict: str) -> None:
    result = judge_loads(loads, in_full=in_full)
    assert result.verdict == verdict
    assert result.n == 3
    assert result.details["medians_s"]["launch_s"] == 0.12
