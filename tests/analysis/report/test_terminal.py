from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.records.kind import find_metric
from analysis.records.results import read_results
from analysis.report.terminal import render_table
from testbed.model import Condition, LinkSpec, TcpSpec
from tests.analysis.sample import (
    broken,
    conditions,
    experiment,
    record,
    with_milestones,
    write_results,
    write_sample,
)


def test_table_beside_the_papers(sample: Path) -> None:
    text = render_table(sample, 160)
    rows = [line.split() for line in text.splitlines()]
    assert rows[2][:3] == ["amazon", "20", "ms"]
    assert [word for word in rows[2][3:] if ".." not in word] == [
        "1.664", "1.568", "5.8", "5", "1.54", "1.48", "4", "+1.8", "proven"
    ]  # fmt: skip
    assert sum(".." in word for word in rows[2]) == 3
    assert "on: 4 of 5 count" in text
    assert "116 of 120 loads are recorded as verified by packet capture" in text
    assert "environment " in text


@pytest.mark.parametrize("width", [20, 39, 60, 80, 100, 160])
def test_lines_fit_and_gains_stay(sample: Path, width: int) -> None:
    text = render_table(sample, width)
    assert max(map(len, text.splitlines())) <= width
    assert text.count("5.8") and "23.8" in text


def test_escape_sequences_of_a_reason_do_not_reach_the_terminal(tmp_path: Path) -> None:
    cells = conditions(["amazon"], [20.0])
    bad = replace(broken(record(cells[0]), "timeout"), reason="\x1b]0;owned\x07\x1b[2J\nlast line")
    write_results(tmp_path, [bad, record(cells[1])], experiment(1, conditions=cells))
    text = render_table(tmp_path, 80)
    assert "last line" in text
    assert all(c.isprintable() or c == "\n" for c in text)


def test_other_sweeps(tmp_path: Path) -> None:
    cells = tuple(
        Condition("amazon", "graph", LinkSpec(20.0), TcpSpec(initcwnd_segments=w)) for w in (3, 10)
    )
    records = [record(cells[0], 0, 1234.5), broken(record(cells[1]), "lab_mismatch")]
    write_results(tmp_path, records, experiment(1, conditions=cells, reference=None))
    lines = render_table(tmp_path, 100).splitlines()
    assert lines[0].split()[:4] == ["page", "RTT", "initial", "window"]
    assert lines[2].split() == ["amazon", "20", "ms", "3", "1234.5", "1/1", "proven"]
    assert lines[3].endswith("lab mismatch")


@pytest.mark.parametrize(("more", "word"), [(5, "range"), (12, "interval")])
def test_a_column_of_ranges_alone_is_called_so(tmp_path: Path, more: int, word: str) -> None:
    cells = tuple(Condition("amazon", "graph", LinkSpec(rtt)) for rtt in (20.0, 100.0))
    records = [record(c, s, 1000.0 + s) for c, n in zip(cells, (5, more), strict=True)
               for s in range(n)]  # fmt: skip
    write_results(tmp_path, records, experiment(12, conditions=cells, reference=None))
    assert word in render_table(tmp_path, 200).splitlines()[0].split()


def test_many_rows_do_not_flood_the_terminal(tmp_path: Path) -> None:
    cells = conditions(["amazon"], [float(rtt) for rtt in range(100)])
    write_results(tmp_path, map(record, cells), experiment(1, conditions=cells, reference=None))
    text = render_table(tmp_path, 100)
    assert text.count(" proven\n") == 60
    assert "... and 40 more rows: table.csv has all of them.\n" in text


def test_sixty_rows_are_all_shown(tmp_path: Path) -> None:
    cells = conditions(["amazon"], [float(rtt) for rtt in range(60)])
    write_results(tmp_path, map(record, cells), experiment(1, conditions=cells, reference=None))
    text = render_table(tmp_path, 100)
    assert text.count(" proven\n") == 60
    assert "more row" not in text


def test_the_table_by_another_metric_says_so_and_has_no_published_numbers(tmp_path: Path) -> None:
    off, on = conditions(["amazon"], [100.0])
    records = [
        with_milestones(record(off), fcp_ms=500.0, cls=0.01),
        with_milestones(record(on), fcp_ms=400.0, cls=0.002),
    ]
    write_results(tmp_path, records, experiment(1, conditions=(off, on)))
    text = render_table(tmp_path, 100, metric=find_metric("fcp_ms"))
    said, head, _, row = text.splitlines()[:4]
    assert said == "First contentful paint (fcp_ms), not page load time:"
    assert "paper" not in head
    assert row.split() == ["amazon", "100", "ms", "0.500", "0.400", "20.0", "proven"]
    assert "Fast Open made every measured first contentful paint sooner, by 20.0 %" in text
    assert "not page load time" not in render_table(tmp_path, 100)
    shift = render_table(tmp_path, 100, metric=find_metric("cls")).splitlines()
    assert shift[3].split() == ["amazon", "100", "ms", "0.0100", "0.0020", "proven"]


def test_a_client_without_the_metric_is_named_below_a_table_of_dashes(tmp_path: Path) -> None:
    asked = (Condition("amazon", "graph", LinkSpec(20.0)),)
    write_results(tmp_path, [record(asked[0])], experiment(1, conditions=asked, reference=None))
    text = render_table(tmp_path, 100, metric=find_metric("lcp_ms"))
    assert text.splitlines()[1].split()[2:5] == ["largest", "paint", "ms"]
    assert text.splitlines()[3].split()[3] == "\u2013"
    assert "Client graph gives no largest contentful paint (lcp_ms)." in text


@pytest.mark.parametrize(("version", "said"), [("mine", True), ("7.3", False)])
def test_what_a_kernel_of_the_users_complains_of_is_said(
    tmp_path: Path, version: str, said: bool
) -> None:
    results = read_results(write_sample(tmp_path / "results"))
    results = replace(results, identity=replace(results.identity, kernel_version=version))
    console = results.folder / "trials" / results.records[0].trial_id / "console.log"
    console.parent.mkdir(parents=True, exist_ok=True)
    console.write_text("[    1.000000] WARNING: net/ipv4/tcp.c:7 at tcp_x+0x1/0x2, CPU#0: a/1\n")
    text = " ".join(render_table(results.folder, 100, results).split())
    warned = "The kernel says, in 1 trial: WARNING: net/ipv4/tcp.c:7 at tcp_x+0x1/0x2"
    assert (warned in text) is said
