"""Two runs of the same cells side by side: differences, what accounts for them, verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.records.results import read_results
from analysis.regression.crosscheck.clocks import CrossCheck, cross_check, unwaited_ms
from analysis.regression.crosscheck.clocks_report import exit_code_of, render_page, render_text
from analysis.regression.crosscheck.folders import write_cross_check
from analysis.regression.crosscheck.pairs import pair_results
from testbed.base.errors import ConfigurationError
from testbed.model import Condition, LinkSpec, Record, RequestTiming, TcpSpec
from testbed.results.environment import Environment
from tests.analysis.sample import ENVIRONMENT, experiment, record, write_results

BASE_MS = 1000.0
NOISE_MS = (-1.0, 0.5, 0.0, 1.0, -0.5, 0.3)
HOST = Environment({"kernel.name": "host"}, ENVIRONMENT.pages, {})
Write = Callable[..., Path]


def cells(client: str, tfos: Sequence[bool] = (False,)) -> list[Condition]:
    return [Condition("amazon", client, LinkSpec(rtt_ms=20.0), TcpSpec(tfo=tfo)) for tfo in tfos]


def virtual(condition: Condition, plt_ms: float = BASE_MS) -> list[Record]:
    found = []
    for seed in range(len(NOISE_MS)):
        one = record(condition, seed, plt_ms)
        assert one.load is not None
        load = replace(one.load, client=condition.client, browser={})
        found.append(replace(one, load=load))
    return found


def host(
    condition: Condition, plt_ms: float, cpu_ms: float | None = None, rtt_ms: float = 21.0
) -> list[Record]:
    """The same trials in real time, with a little noise, and with the browser's account."""
    found = []
    for one, noise in zip(virtual(condition), NOISE_MS, strict=True):
        assert one.load is not None and one.lab is not None
        trial = replace(one.trial, kernel="host", kernel_version="6.18")
        account = {} if cpu_ms is None else {"load_cpu_s": cpu_ms / 500, "task_s": cpu_ms / 1e3}
        rtt, *rest = one.lab.measurements
        rtt = replace(rtt, measured=rtt_ms, tolerance_pct=5.0)
        found.append(
            replace(
                one,
                trial=trial,
                trial_id=trial.id,
                environment=HOST.id,
                load=replace(one.load, plt_ms=plt_ms + noise, browser=account),
                lab=replace(one.lab, measurements=(rtt, *rest)),
                machine={"worst_lateness_ms": 0.4 + noise / 10, "mean_lateness_ms": 0.01},
                artefacts={},
            )
        )
    return found


@pytest.fixture
def compare(tmp_path: Path) -> Callable[[Iterable[Record], Iterable[Record]], CrossCheck]:
    def once(base: Iterable[Record], real: Iterable[Record]) -> CrossCheck:
        one, other = write(tmp_path / "virtual", base), write(tmp_path / "host", real)
        return cross_check(pair_results(read_results(one), read_results(other)))

    return once


def write(folder: Path, records: Iterable[Record]) -> Path:
    kept = list(records)
    first = kept[0].trial
    conditions = tuple(dict.fromkeys(one.trial.condition for one in kept))
    asked = experiment(
        len(NOISE_MS), conditions=conditions, reference=None,
        kernel=first.kernel, kernel_version=first.kernel_version,
    )  # fmt: skip
    return write_results(folder, kept, asked, HOST if first.kernel == "host" else ENVIRONMENT)


@pytest.mark.parametrize(
    ("client", "plt_ms", "cpu_ms", "verdict", "code"),
    [
        ("graph", 1004.0, None, "agrees", 0),
        ("graph", 1030.0, None, "differs", 1),
        ("graph", 1010.0, None, "unclear", 5),  # the interval reaches over 1 %
        ("graph", 960.0, None, "differs", 1),
        ("chromium", 1004.0, 120.0, "agrees", 0),
        ("chromium", 1080.0, 120.0, "explained", 0),
        ("chromium", 1200.0, 120.0, "differs", 1),
        ("chromium", 960.0, 120.0, "differs", 1),  # computing makes no load shorter
    ],
)
def test_verdicts(
    compare: Callable[..., CrossCheck],
    client: str,
    plt_ms: float,
    cpu_ms: float | None,
    verdict: str,
    code: int,
) -> None:
    (condition,) = cells(client)
    check = compare(virtual(condition), host(condition, plt_ms, cpu_ms))
    (one,) = check.comparisons
    assert one.verdict == verdict
    assert one.difference_pct == pytest.approx((plt_ms + 0.15 - BASE_MS) / 10)
    assert exit_code_of(check) == code
    assert verdict in render_text(check)
    assert f" {verdict}</span>" in render_page(check)


def test_what_accounts_for_a_difference(compare: Callable[..., CrossCheck]) -> None:
    (condition,) = cells("chromium")
    theory = virtual(condition)[0].lab
    assert theory is not None
    slow = theory.measurements[0].measured * 1.02
    (one,) = compare(virtual(condition), host(condition, 1080.0, 120.0, slow)).comparisons
    assert one.cpu_ms == pytest.approx(120.0)
    assert one.real.all_ms == pytest.approx(240.0)
    assert one.link_ms == pytest.approx(20.0)
    assert one.slack_ms == pytest.approx(62 * 0.05)
    assert one.real.worst_lateness_ms == pytest.approx(0.5)
    assert one.base.worst_lateness_ms is None


def test_the_virtual_kernel_is_the_base_whatever_the_order(tmp_path: Path) -> None:
    (condition,) = cells("graph")
    one = read_results(write(tmp_path / "virtual", virtual(condition)))
    other = read_results(write(tmp_path / "host", host(condition, 1004.0)))
    assert pair_results(one, other) == pair_results(other, one)
    assert cross_check(pair_results(other, one)).base.kernel == "virtual"


def test_savings_leave_out_what_both_arms_cost(compare: Callable[..., CrossCheck]) -> None:
    off, on = cells("chromium", (False, True))
    check = compare(
        [*virtual(off), *virtual(on, 900.0)],
        [*host(off, 1080.0, 120.0), *host(on, 982.0, 120.0)],
    )
    (saving,) = check.savings
    assert saving.base.value == pytest.approx(100.0)
    assert saving.other.value == pytest.approx(98.0)
    assert "saves differs by at most 2.0 ms" in render_text(check)
    assert check.axes == ("tfo",)


def test_a_cell_without_a_proven_load(compare: Callable[..., CrossCheck]) -> None:
    (condition,) = cells("graph")
    bad = [replace(one, outcome="lab_mismatch", reason="late") for one in host(condition, 1000.0)]
    check = compare(virtual(condition), bad)
    assert check.comparisons[0].verdict == "no number"
    assert check.comparisons[0].difference_ms is None
    assert exit_code_of(check) == 4
    assert "lab_mismatch" in render_text(check)


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    (condition,), (other,) = cells("graph"), cells("wget2")
    base = read_results(write(tmp_path / "one", virtual(condition)))
    with pytest.raises(ConfigurationError, match="both of kernel virtual"):
        pair_results(base, base)
    pages = Environment(HOST.parts, {"amazon": "0" * 64}, {})
    records = [replace(one, environment=pages.id) for one in host(other, 1000.0)]
    asked = experiment(6, conditions=(other,), kernel="host", kernel_version="6.18")
    another = read_results(write_results(tmp_path / "two", records, asked, pages))
    with pytest.raises(ConfigurationError) as caught:
        pair_results(base, another)
    assert len(caught.value.problems) == 2
    assert "page amazon is not the same" in caught.value.problems[0]
    assert "no cell in common" in caught.value.problems[1]


def test_files_are_written_beside_the_second_run(tmp_path: Path) -> None:
    (condition,) = cells("chromium")
    one = write(tmp_path / "virtual", virtual(condition))
    other = write(tmp_path / "host", host(condition, 1080.0, 120.0))
    write_cross_check(one, other, other)
    told = json.loads((other / "crosscheck.json").read_text())
    assert told["counts"] == {"explained": 1}
    assert told["cells"][0]["real"]["plt_ms"]["n"] == 6
    page = (other / "crosscheck.html").read_text()
    assert "The two kernels side by side" in page
    assert "<script" not in page
    assert sorted(path.name for path in one.iterdir()) == [
        "manifest.json",
        "records.jsonl",
        "trials",
    ]


def test_time_in_which_no_request_was_under_way() -> None:
    one = record(cells("graph")[0], 0, 100.0)
    assert one.load is not None
    spans = ((0.0, 30.0), (10.0, 20.0), (25.0, 40.0), (60.0, 70.0), (95.0, 130.0))
    requests = tuple(RequestTiming("http://a.test/", 200, *span) for span in spans)
    assert unwaited_ms(replace(one, load=replace(one.load, requests=requests))) == 45.0
    assert unwaited_ms(replace(one, load=None)) is None
