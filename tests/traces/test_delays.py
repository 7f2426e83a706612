"""Delays by interval as LeoReplayer writes them, as changes of a link."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from firstflight.cli.links import links
from testbed.base.errors import ConfigurationError
from testbed.model import LinkSpec
from testbed.model.impairments import phases
from testbed.traces.delays import list_steps, read_delays


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_each_delay_lasts_for_its_interval_and_the_first_follows_the_last(tmp_path: Path) -> None:
    found = read_delays(write(tmp_path / "delay_1.txt", "24\r\n18\r\n18\r\n30.5\r\n"))
    assert found == [24.0, 18.0, 18.0, 30.5]
    link = LinkSpec(rtt_ms=48.0, changes=list_steps(found, 10, 0.06))
    assert [(each.at_ns / 1e6, each.spec.rtt_ms) for each in phases(link)] == [
        (0, 48), (10, 36), (30, 61), (40, 48), (50, 36),
    ]  # fmt: skip
    assert list_steps([7.0], 10, 30.0) == ""


def test_the_verb_writes_what_an_experiment_says(tmp_path: Path) -> None:
    path = write(tmp_path / "delay_1.txt", "24\n18\n")
    said = CliRunner().invoke(links, ["delays", str(path), "--every", "100", "--until", "0.3"])
    assert said.output == (
        '[link]\nrtt_ms = 48\nchanges = "at 0.1 s: rtt_ms 36; at 0.2 s: rtt_ms 48"\n'
    )


def test_all_that_is_wrong_is_said(tmp_path: Path) -> None:
    path = write(tmp_path / "d", "24\n\nx\n0\n-1\n30001\n5\n")
    with pytest.raises(ConfigurationError) as error:
        read_delays(path)
    lines = [problem.removeprefix(f"{path}:") for problem in error.value.problems]
    assert [line[0] for line in lines] == ["2", "3", "4", "5", "6"]
    assert "above 0 and up to 30000" in lines[0]
    for text, says in (("", "empty"), ("x\n" * 100, "and more like these"), ("1\n" * 10**6, "cut")):
        with pytest.raises(ConfigurationError, match=says):
            read_delays(write(path, text))
    with pytest.raises(ConfigurationError, match="No such file"):
        read_delays(tmp_path / "none")
