"""Traces and delays of others are read, or refused with every line that is wrong."""

from __future__ import annotations

import os
from array import array
from pathlib import Path

import pytest
from click.testing import CliRunner

from firstflight.cli.links import links
from testbed.base.errors import ConfigurationError
from testbed.lab.link.discipline import by_trace
from testbed.lab.link.netem import describe_room
from testbed.model import Condition, LinkSpec, Trial
from testbed.model.impairments import phases
from testbed.model.trace import Trace
from testbed.runner.performed import check_traces
from testbed.traces.catalogue import read_again, read_all
from testbed.traces.delays import list_steps, read_delays
from testbed.traces.reading import MOST_BYTES, MOST_LINES, MOST_MS, parse_text, read_text

PATH = Path("my.trace")


@pytest.mark.parametrize(
    ("text", "times"),
    [(b"1\n", [1]), (b"0\n0\n3\n3\n12\n", [0, 0, 3, 3, 12]), (b"1\r\n2\r\n", [1, 2]),
     (b"1\n2", [1, 2]), (b"007\n", [7]), (f"{MOST_MS}\n".encode(), [MOST_MS])],
)  # fmt: skip
def test_a_trace_is_read(text: bytes, times: list[int]) -> None:
    assert list(parse_text(text, PATH).times) == times


@pytest.mark.parametrize(
    ("text", "says"),
    [(b"", "my.trace: empty; a trace has a line"), (b"\n", "my.trace: empty; a trace has a line"),
     (b"0\n0\n", "my.trace:2: the last time is 0 ms"),
     (b"1\n\n2\n", "my.trace:2: an empty line where a whole number of ms is due"),
     (b"1\n2\n\n", "my.trace:3: an empty line"),
     (b"1\nx\n2\n", "my.trace:2: 'x' where a whole number"), (b"1\n-2\n", "my.trace:2: '-2' where"),
     (b"1\n2.5\n", "my.trace:2: '2.5' where"), (b"1\n 2\n", "my.trace:2: ' 2' where"),
     (b"1\r2\n", "my.trace:1: '1\\r2' where"), (b"1_0\n", "my.trace:1: '1_0' where"),
     ("\u0661\n".encode(), "my.trace:1: "), (b"\xff\n", "my.trace:1: "),
     (b"5\n3\n", "my.trace:2: 3 ms after 5 ms; times never fall"),
     (b"999999999\n", "my.trace:1: '999999999' where"),
     (b"1\n86400001\n", "my.trace:2: 86400001 ms is beyond 24 h")],
)  # fmt: skip
def test_a_trace_is_refused(text: bytes, says: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_text(text, PATH)
    assert says in refused.value.problems[0]


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_text(b"1\nx\n9\n3\n\n10\n", PATH)
    assert [line.split(":")[1] for line in refused.value.problems] == ["2", "4", "5"]
    with pytest.raises(ConfigurationError) as refused:
        parse_text(b"x\n" * 1000, PATH)
    assert len(refused.value.problems) == 21
    assert refused.value.problems[-1].endswith("and more like these")


def test_who_judges_reads_a_file_by_its_own_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that what a faulty importer gave the link is told by its kernel as another trace."""
    (tmp_path / "my.trace").write_bytes(b"0\r\n10\r\n10\r\n20\r\n")
    other = Trace(array("I", [0, 9, 9, 18]))
    monkeypatch.setattr("testbed.traces.catalogue.read_text", lambda _: other)
    given = read_all(["my.trace"], tmp_path, tmp_path)
    judged = read_again(given | {"model-up": other}, tmp_path)
    assert [list(judged[name].times) for name in judged] == [[0, 10, 10, 20], [0, 9, 9, 18]]
    link = LinkSpec(trace_down="my.trace")
    trial = Trial(Condition("p", "graph", link), 0, 0, "virtual", "7.3")
    texts = [
        by_trace(each["my.trace"], *describe_room(link, "down")).text for each in (given, judged)
    ]
    faulty, right = (
        list(check_traces({"down.trace": text}, trial, judged, begun=False)) for text in texts
    )
    assert right == []
    (said,) = faulty
    assert said.startswith("down.trace was read back as ")


def test_an_endless_trace_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "long.trace"
    path.touch()
    os.truncate(path, MOST_BYTES + 1)  # a hole: to read it would be no number
    with pytest.raises(ConfigurationError, match=f"more than {MOST_LINES} opportunities"):
        read_text(path)
    with pytest.raises(ConfigurationError, match=f"more than {MOST_LINES} opportunities"):
        parse_text(b"1\n" * (MOST_LINES + 1), path)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        read_text(tmp_path / "none.trace")
    with pytest.raises(ConfigurationError, match="Is a directory"):
        read_text(tmp_path)


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


def test_all_that_is_wrong_with_delays_is_said(tmp_path: Path) -> None:
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
