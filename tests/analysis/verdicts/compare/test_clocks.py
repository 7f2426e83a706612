"""The same cells in virtual and in real time: differences, what accounts for them, verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.records.cells import Cell, flatten
from analysis.verdicts.compare.clocks import clocks_of, unwaited_ms
from analysis.verdicts.compare.comparison import CompareOptions, Comparison
from analysis.verdicts.compare.documents import describe_comparison, render_page, write_files
from analysis.verdicts.compare.folders import compare_results
from analysis.verdicts.compare.sentences import render_text, under_test
from testbed.base.errors import ConfigurationError
from testbed.model import Condition, LinkSpec, Record, RequestTiming, TcpSpec
from testbed.results.environment import Environment
from tests.analysis.sample import ENVIRONMENT, experiment, record, write_results
from tests.measured import load_of

BASE_MS = 1000.0
NOISE_MS = (-1.0, 0.5, 0.0, 1.0, -0.5, 0.3)
HOST = Environment({"kernel.name": "host"}, ENVIRONMENT.pages, {})


def cells(client: str, tfos: Sequence[bool] = (False,)) -> list[Condition]:
    return [Condition("amazon", client, LinkSpec(rtt_ms=20.0), TcpSpec(tfo=tfo)) for tfo in tfos]


def virtual(condition: Condition, plt_ms: float = BASE_MS) -> list[Record]:
    found = []
    for seed in range(len(NOISE_MS)):
        one = record(condition, seed, plt_ms)
        load = replace(load_of(one), client=condition.client, browser={})
        found.append(replace(one, measured=load))
    return found


def host(
    condition: Condition, plt_ms: float, cpu_ms: float | None = None, rtt_ms: float = 21.0
) -> list[Record]:
    """The same trials in real time, with a little noise, and with the browser's account."""
    found = []
    for one, noise in zip(virtual(condition), NOISE_MS, strict=True):
        assert one.lab is not None
        trial = replace(one.trial, kernel="host", kernel_version="6.18")
        account = {} if cpu_ms is None else {"load_cpu_s": cpu_ms / 500, "task_s": cpu_ms / 1e3}
        rtt, *rest = one.lab.measurements
        rtt = replace(rtt, measured=rtt_ms, tolerance_pct=5.0)
        found.append(
            replace(one, trial=trial, trial_id=trial.id, environment=HOST.id,
                    measured=replace(load_of(one), plt_ms=plt_ms + noise, browser=account),
                    lab=replace(one.lab, measurements=(rtt, *rest)),
                    machine={"worst_lateness_ms": 0.4 + noise / 10, "mean_lateness_ms": 0.01},
                    artefacts={})
        )  # fmt: skip
    return found


@pytest.fixture
def compare(tmp_path: Path) -> Callable[[Iterable[Record], Iterable[Record]], Comparison]:
    def once(base: Iterable[Record], real: Iterable[Record]) -> Comparison:
        return compare_results(write(tmp_path / "virtual", base), write(tmp_path / "host", real))

    return once


def write(folder: Path, records: Iterable[Record]) -> Path:
    kept = list(records)
    first = kept[0].trial
    conditions = tuple(dict.fromkeys(one.trial.condition for one in kept))
    asked = experiment(len(NOISE_MS), conditions=conditions, reference=None, kernel=first.kernel,
                       kernel_version=first.kernel_version)  # fmt: skip
    return write_results(folder, kept, asked, HOST if first.kernel == "host" else ENVIRONMENT)


@pytest.mark.parametrize(("client", "plt_ms", "cpu_ms", "verdict", "code"), [
    ("graph", 1004.0, None, "agrees", 0),
    ("graph", 1030.0, None, "differs", 1),
    ("graph", 1010.0, None, "unclear", 5),  # the interval reaches over 1 %
    ("graph", 960.0, None, "differs", 1),
    ("chromium", 1004.0, 120.0, "agrees", 0),
    ("chromium", 1080.0, 120.0, "explained", 0),
    ("chromium", 1200.0, 120.0, "differs", 1),
    ("chromium", 960.0, 120.0, "differs", 1),  # computing makes no load shorter
])  # fmt: skip
def test_verdicts(
    compare: Callable[..., Comparison], client: str, plt_ms: float, cpu_ms: float | None,
    verdict: str, code: int,
) -> None:  # fmt: skip
    (condition,) = cells(client)
    found = compare(virtual(condition), host(condition, plt_ms, cpu_ms))
    (one,) = found.cells
    assert one.word == verdict
    assert one.effect is not None
    assert one.effect.pct == pytest.approx((plt_ms + 0.15 - BASE_MS) / 10)
    assert found.exit_code == code
    assert verdict in render_text(found)
    assert f">{verdict}</span>" in render_page(found)
    # Only a browser tells how long it computed.
    assert ("main thread (explained)" in render_text(found)) == (client == "chromium")


@pytest.mark.parametrize(("rate_pct", "link_ms"), [(-2.0, 20.0), (2.0, 0.0)])
def test_a_slower_line_accounts_for_a_longer_load(rate_pct: float, link_ms: float) -> None:
    (condition,) = cells("chromium")
    sides = []
    for pct in (0.0, rate_pct):
        (one, *_) = virtual(condition)
        assert one.lab is not None
        own = tuple(
            replace(m, measured=m.measured * (1 + pct / 100), tolerance_pct=5.0)
            if m.name == "down_rate"
            else m
            for m in one.lab.measurements
        )
        changed = replace(one, lab=replace(one.lab, measurements=own))
        sides.append(Cell(flatten(condition), (changed,), 1))
    assert clocks_of((sides[0], sides[1])).link_ms == pytest.approx(link_ms)


def test_what_accounts_for_a_difference(compare: Callable[..., Comparison]) -> None:
    (condition,) = cells("chromium")
    theory = virtual(condition)[0].lab
    assert theory is not None
    slow = theory.measurements[0].measured * 1.02
    found = compare(virtual(condition), host(condition, 1080.0, 120.0, slow))
    clocks = found.cells[0].clocks
    assert clocks is not None
    assert clocks.cpu_ms == pytest.approx(120.0)
    assert clocks.new.all_ms == pytest.approx(240.0)
    assert clocks.link_ms == pytest.approx(20.0)
    assert clocks.slack_ms == pytest.approx(62 * 0.05)
    assert clocks.new.worst_lateness_ms == pytest.approx(0.5)
    assert clocks.base.worst_lateness_ms is None
    heading, _, row = render_text(found, 200).splitlines()[:3]
    assert "CPU <=  all CPU  unwaited  in base  link <=  late  slack <=" in heading
    assert row.split()[8:11] == ["120", "240", "155.9"]


def test_the_virtual_kernel_is_the_base_whatever_the_order(tmp_path: Path) -> None:
    (condition,) = cells("graph")
    one = write(tmp_path / "virtual", virtual(condition))
    other = write(tmp_path / "host", host(condition, 1004.0))
    found, turned = compare_results(one, other), compare_results(other, one)
    assert replace(turned, notes=()) == found
    assert turned.notes == ("The virtual kernel is BASE, whatever the order of the folders.",)
    assert "Under test: kernel (virtual 7.3 in BASE, host 6.18 in NEW)." in under_test(turned)


def test_the_tolerance_can_be_chosen(tmp_path: Path) -> None:
    (condition,) = cells("graph")
    one = write(tmp_path / "virtual", virtual(condition))
    other = write(tmp_path / "host", host(condition, 1030.0))
    (cell,) = compare_results(one, other, CompareOptions(min_effect_pct=4.0)).cells
    assert (cell.word, cell.verdict) == ("agrees", "same")


def test_savings_leave_out_what_both_arms_cost(compare: Callable[..., Comparison]) -> None:
    off, on = cells("chromium", (False, True))
    found = compare(
        [*virtual(off), *virtual(on, 900.0)], [*host(off, 1080.0, 120.0), *host(on, 982.0, 120.0)]
    )
    assert found.kernels is not None
    (saving,) = found.kernels.savings
    assert saving.base.value == pytest.approx(100.0)
    assert saving.new.value == pytest.approx(98.0)
    assert "What Fast Open saves changed by -2.0 ms in the median" in render_text(found)
    assert "What Fast Open saves</h2>" in render_page(found)
    assert found.names == ("page", "rtt_ms", "tfo")


def test_a_cell_without_a_proven_load(compare: Callable[..., Comparison]) -> None:
    (condition,) = cells("graph")
    bad = [replace(one, outcome="lab_mismatch", reason="late") for one in host(condition, 1000.0)]
    found = compare(virtual(condition), bad)
    assert (found.cells[0].word, found.cells[0].verdict) == ("no number", "inconclusive")
    assert not found.cells[0].has_numbers
    assert found.exit_code == 5
    assert "lab mismatch: late" in render_text(found)


def test_cells_of_one_kernel_only_are_left_out(compare: Callable[..., Comparison]) -> None:
    off, on = cells("graph", (False, True))
    found = compare([*virtual(off), *virtual(on)], host(on, 1004.0))
    assert [cell.axes["tfo"] for cell in found.cells] == [True]
    assert found.notes[0] == "1 cell is of one kernel only and left out."
    assert found.verdict == "same"


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    (condition,), (other,) = cells("graph"), cells("wget2")
    base = write(tmp_path / "one", virtual(condition))
    pages = Environment(HOST.parts, {"amazon": "0" * 64}, {})
    records = [replace(one, environment=pages.id) for one in host(other, 1000.0)]
    asked = experiment(6, conditions=(other,), kernel="host", kernel_version="6.18")
    another = write_results(tmp_path / "two", records, asked, pages)
    with pytest.raises(ConfigurationError) as caught:
        compare_results(base, another)
    (problem,) = caught.value.problems
    assert "the environments differ: pages.amazon is" in problem
    with pytest.raises(ConfigurationError, match="no cell in common: client is graph in BASE"):
        compare_results(base, another, CompareOptions(("pages",)))


def test_two_versions_of_the_host_kernel_are_judged_by_chance_and_show_their_clocks(
    tmp_path: Path,
) -> None:
    (condition,) = cells("chromium")
    newer = []
    for one in host(condition, 1100.0, 120.0):
        trial = replace(one.trial, kernel_version="6.19")
        newer.append(replace(one, trial=trial, trial_id=trial.id))
    old, new = write(tmp_path / "a", host(condition, 1080.0, 100.0)), write(tmp_path / "b", newer)
    found = compare_results(old, new)
    (cell,) = found.cells
    assert (cell.verdict, cell.word) == ("different", None)
    assert cell.significance
    assert cell.clocks is not None and cell.clocks.cpu_ms == pytest.approx(20.0)


def test_every_number_is_in_the_document_and_on_the_page(tmp_path: Path) -> None:
    (condition,) = cells("chromium")
    one = write(tmp_path / "virtual", virtual(condition))
    found = compare_results(one, write(tmp_path / "host", host(condition, 1080.0, 120.0)))
    document = json.loads(json.dumps(describe_comparison(found), allow_nan=False))
    assert document["kernels"]["words"] == {"explained": 1}
    assert document["kernels"]["new"]["kernel_version"] == "6.18"
    (cell,) = document["cells"]
    assert (cell["word"], cell["verdict"], cell["change"]) == ("explained", "same", None)
    assert cell["clocks"]["new"]["plt_ms"]["n"] == 6
    write_files(found, html=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "SAME: 1 cell, 1 same." in page and "CPU &lt;=" in page
    assert "<script" not in page


def test_time_in_which_no_request_was_under_way() -> None:
    one = record(cells("graph")[0], 0, 100.0)
    spans = ((0.0, 30.0), (10.0, 20.0), (25.0, 40.0), (60.0, 70.0), (95.0, 130.0))
    requests = tuple(RequestTiming("http://a.test/", 200, *span) for span in spans)
    assert unwaited_ms(replace(one, measured=replace(load_of(one), requests=requests))) == 45.0
    assert unwaited_ms(replace(one, measured=None)) is None
