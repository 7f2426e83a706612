"""``knobs``: what is listed, and what is asked for by a wrong name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from firstflight.cli.main import main
from testbed.experiment.knobs import paths
from tests.hallway import make_services

UNITS = {"ms": "ms", "kbit": "kbit/s", "bytes": "B", "pct": "%", "segments": "segments", "s": "s",
         "packets": "packets",         "us": "µs"}  # fmt: skip


def test_all_knobs_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["knobs", "--json"], make_services(tmp_path)) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["knob"] for one in listed] == [".".join(path) for path in paths()]
    assert [one["knob"] for one in listed if not (one["meaning"] and one["allowed"])] == []


def test_a_knob_by_either_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["knobs", "link.rtt_ms", "seed"], make_services(tmp_path)) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "link.rtt_ms: a number of milliseconds above 0, up to 60000, default 20.0\n    Two-way"
    )
    assert "\nseed: a whole number from 0 to 2147483647, default 0; cannot be swept\n" in out


def test_every_wrong_name_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["knobs", "rtms", "los_pct"], make_services(tmp_path)) == 2
    said = capsys.readouterr().err
    assert "did you mean 'rtt_ms'?" in said and "did you mean 'loss_pct'?" in said


def test_units_are_in_names() -> None:
    for path, knob in paths().items():
        suffix = path[-1].rpartition("_")[2] if "_" in path[-1] else ""
        expected = "1/s" if path[-1].endswith("_per_s") else UNITS.get(suffix, "")
        assert knob.declared.knob.unit == expected, path
