from __future__ import annotations

import pytest

from testbed.base.suggest import did_you_mean, nearest, stem
from testbed.experiment.knobs import FIXED, KERNEL, SWEPT

NAMES = [*SWEPT, *FIXED, *KERNEL]


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("rtt", "rtt_ms"), ("rtt_s", "rtt_ms"), ("rtt-ms", "rtt_ms"), ("RTT_MS", "rtt_ms"),
     ("down_mbit", "down_kbit"), ("buffer_kb", "buffer_bytes"),
     ("initcwnd_seg", "initcwnd_segments"), ("cookie", "cookies"), ("clinet", "client"),
     ("congestion", "congestion_control"), ("bananas", None)],
)  # fmt: skip
def test_the_nearest_name_is_found(wrong: str, meant: str | None) -> None:
    assert nearest(wrong, NAMES) == meant


def test_every_name_is_nearest_to_itself() -> None:
    assert [nearest(name, NAMES) for name in NAMES] == NAMES


def test_stem_takes_only_units_away() -> None:
    assert stem("rtt_ms") == "rtt"
    assert stem("think_time") == "think_time"
    assert stem("_ms") == "_ms"


def test_nothing_is_said_when_nothing_is_near() -> None:
    assert did_you_mean("bananas", NAMES) == ""
    assert did_you_mean("pag", NAMES) == " (did you mean 'page'?)"
