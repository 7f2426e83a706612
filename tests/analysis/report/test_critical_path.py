"""Critical paths in a report: bars of what loads spent their time on, and what Fast Open moved."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.kinds.page_load.critical_path import COLOURS, MAX_ROWS, plan_paths
from analysis.plot import to_svg
from analysis.records.accounts import describe_moved, differences_ms, mean_account, moved
from analysis.records.frame import trial_frame
from analysis.records.results import read_results
from analysis.report.document import write_reports
from analysis.report.sections.sweep import Panel, rows_of
from testbed.model import Condition, LinkSpec, Record, TcpSpec
from testbed.model.owners import CLIENT, LINE, OWNERS, REQUEST, TCP, WINDOW
from tests.analysis.sample import record, tabled

OFF = {TCP: 300.0, REQUEST: 600.0, LINE: 400.0, CLIENT: 143.4}
ON = {REQUEST: 600.0, LINE: 380.0, CLIENT: 246.7}
HOSTS = ("en.wiki.org.p.test", "bits.wiki.org.p.test", "meta.wiki.org.p.test")


def load(
    tfo: bool, account: dict[str, float], awaited: Sequence[str] = (), seed: int = 0,
    rtt_ms: float = 100.0,
) -> Record:  # fmt: skip
    """A proven load of so many ms with this account."""
    condition = Condition("wikipedia", "graph", LinkSpec(rtt_ms=rtt_ms), TcpSpec(tfo=tfo))
    made = record(condition, seed, sum(account.values()) or None)
    assert made.proof is not None
    return replace(made, proof=replace(made.proof, account=account, awaited=tuple(awaited)))


def paths(folder: Path, records: Sequence[Record], seeds: int = 1) -> tuple[Panel, ...]:
    return plan_paths(rows_of(tabled(folder, records, seeds)))


def bars(panel: Panel) -> dict[float, list[tuple[str, float, float]]]:
    """Of each bar by its height in the figure: colour, left end and width of each part."""
    rectangles = re.findall(
        r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" .*?var\(--([\w-]+)', to_svg(panel.draw())
    )
    found: dict[float, list[tuple[str, float, float]]] = {}
    for x, y, width, colour in rectangles:
        found.setdefault(float(y), []).append((colour, float(x), float(width)))
    return found


def test_a_pair_has_a_bar_for_each_arm_on_one_scale(tmp_path: Path) -> None:
    (panel,) = paths(tmp_path, [load(False, OFF, HOSTS), load(True, ON)])
    assert panel.title == "wikipedia"
    off, on = (bars(panel)[y] for y in sorted(bars(panel)))
    assert [colour for colour, *_ in off] == [COLOURS[owner].name for owner in OFF]
    assert [colour for colour, *_ in on] == [COLOURS[owner].name for owner in ON]
    scale = off[0][2] / OFF[TCP]
    for parts, account in ((off, OFF), (on, ON)):
        ends = 0.0
        for (_, x, width), ms in zip(parts, account.values(), strict=True):
            assert (x, width) == pytest.approx((ends, ms * scale), abs=0.05)
            ends += ms * scale
    svg = to_svg(panel.draw())
    assert ">off 1443<" in svg and ">on 1227<" in svg
    assert ">TCP handshake<" in svg and ">window<" not in svg


def test_words_say_what_moved_and_which_handshakes_are_gone(tmp_path: Path) -> None:
    (panel,) = paths(tmp_path, [load(False, OFF, HOSTS), load(True, ON)])
    assert panel.caption == (
        "wikipedia: 217 ms saved (300 ms less for TCP handshakes, 103 ms more for the client). "
        "With Fast Open the load no longer waited for 3 TCP handshakes (en.wiki.org, "
        "bits.wiki.org, meta.wiki.org), 300 ms: 138 % of what it saved."
    )


def test_what_was_not_saved_has_no_share(tmp_path: Path) -> None:
    (panel,) = paths(tmp_path, [load(False, OFF, HOSTS), load(True, ON | {WINDOW: 250.0})])
    assert panel.caption.startswith("wikipedia: 33 ms lost (300 ms less for TCP handshakes, 250 ms")
    assert panel.caption.endswith("meta.wiki.org), 300 ms.")


def test_a_path_without_handshakes_is_said_to_have_none(tmp_path: Path) -> None:
    (panel,) = paths(tmp_path, [load(False, ON), load(True, ON)])
    assert panel.caption == "wikipedia: 0.0 ms saved. No TCP handshake is on its critical path."


def test_hosts_are_those_that_most_loads_waited_for(tmp_path: Path) -> None:
    asked = [HOSTS[:2], HOSTS[:2], HOSTS[1:]]
    loads = [load(False, OFF, hosts, seed) for seed, hosts in enumerate(asked)]
    loads += [load(True, ON, HOSTS[1:2] if seed else (), seed) for seed in range(3)]
    (panel,) = paths(tmp_path, loads, 3)
    assert "for 1 TCP handshake (en.wiki.org), 300 ms" in panel.caption


def test_of_many_rows_some_are_drawn(tmp_path: Path) -> None:
    loads = [load(tfo, ON, rtt_ms=20.0 + n) for n in range(MAX_ROWS + 3) for tfo in (False, True)]
    (panel,) = paths(tmp_path, loads)
    assert len(bars(panel)) == 2 * MAX_ROWS
    assert panel.caption.startswith(f"{MAX_ROWS} of {MAX_ROWS + 3} rows, at even distances.\nRTT")


def test_the_report_and_its_tables_have_it(tmp_path: Path) -> None:
    tabled(tmp_path, [load(False, OFF, HOSTS), load(True, ON)])
    write_reports(tmp_path)
    report = (tmp_path / "report.html").read_text()
    assert '<section id="critical-path">' in report and ">Where the time went<" in report
    assert "<p>wikipedia: 217 ms saved (300 ms less" in report
    (row,) = csv.DictReader((tmp_path / "table.csv").read_text().splitlines())
    told = {name: row[f"path_{name}_ms"] for name in ("tcp_handshake_off", "look_up_on", "line_on")}
    assert told == {"tcp_handshake_off": "300", "look_up_on": "0", "line_on": "380"}
    frame = trial_frame(read_results(tmp_path)).set_index("tfo")
    assert (frame.path_tcp_handshake_ms[False], frame.path_tcp_handshake_ms[True]) == (300, 0)


def test_older_records_have_no_account_and_show_none(tmp_path: Path) -> None:
    tabled(tmp_path, [load(tfo, {}) for tfo in (False, True)])
    write_reports(tmp_path)
    assert "critical-path" not in (tmp_path / "report.html").read_text()
    assert "path_" not in (tmp_path / "table.csv").read_text()
    assert trial_frame(read_results(tmp_path)).path_client_ms.isna().all()


@pytest.mark.parametrize(("other", "drawn"), [
    (load(True, {}), [">off 1443<"]),  # older
    (load(False, ON, rtt_ms=20.0), [">1443<", ">1227<"]),  # no pair
])  # fmt: skip
def test_what_has_no_counterpart_is_drawn_alone(
    tmp_path: Path, other: Record, drawn: list[str]
) -> None:
    (panel,) = paths(tmp_path, [load(False, OFF, HOSTS), other])
    assert len(bars(panel)) == len(drawn) and panel.caption == ""
    assert [text in to_svg(panel.draw()) for text in drawn] == [True] * len(drawn)


def test_means_add_up_and_what_moved_is_a_tenth_at_least() -> None:
    loads = [load(False, OFF), load(False, {LINE: 100.0}, seed=1)]
    mean = mean_account(loads)
    assert list(mean) == list(OWNERS)
    assert sum(mean.values()) == pytest.approx((sum(OFF.values()) + 100.0) / 2)
    assert mean_account(loads, {(1, 1)})[LINE] == 100.0
    more = differences_ms(mean_account([load(False, OFF)]), mean_account([load(True, ON)]))
    assert moved(more) == {TCP: -300.0, CLIENT: pytest.approx(103.3)}  # not the line's 20 of 217
    assert describe_moved(more) == "-217 ms: -300 TCP handshake, +103 client"
    assert differences_ms(mean, {}) == {} and describe_moved({}) == ""
    assert describe_moved(dict.fromkeys(OWNERS, 0.0)) == ""
