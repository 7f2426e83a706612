"""Metrics: every number of a page load is one, and each has its words."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from analysis.kinds.page_load.records import MILESTONES
from analysis.records.kind import (
    all_metrics,
    default_beside,
    find_metric,
    is_default,
    metric_for,
    records_of,
)
from analysis.records.metric import PLT
from testbed.base.errors import ConfigurationError
from testbed.model import PageLoad, PageTiming
from tests.analysis.sample import conditions, record, with_milestones
from tests.measured import load_of


def test_each_number_of_a_load_is_a_metric_in_its_order() -> None:
    numbers = [each.name for each in fields(PageLoad) if each.type in ("float", "float | None")]
    first = ["first_plt_ms", "first_fcp_ms"]
    assert [metric.name for metric in records_of("page_load").metrics] == [*numbers, *first]
    assert records_of("page_load").metrics == (PLT, *MILESTONES)


def test_names_of_metrics_are_of_one_kind_only() -> None:
    names = [metric.name for metric in all_metrics()]
    assert len(set(names)) == len(names) == 20


def test_each_kind_has_its_own_default() -> None:
    replies, fcp = find_metric("replies_per_s"), find_metric("fcp_ms")
    assert metric_for("page_load", PLT) == PLT
    assert metric_for("server_load", PLT) == replies
    assert (is_default(replies), replies.unit, replies.more) == (True, "1/s", True)
    assert default_beside(find_metric("failed_pct")) == replies
    assert (is_default(fcp), default_beside(fcp)) == (False, PLT)
    with pytest.raises(ConfigurationError, match="kind server_load are not measured by it"):
        metric_for("server_load", fcp)
    with pytest.raises(ConfigurationError, match="kind page_load are not measured by it"):
        metric_for("page_load", replies)


def test_units_are_the_ends_of_names_and_columns_have_them() -> None:
    fcp, cls = find_metric("fcp_ms"), find_metric("cls")
    assert (fcp.unit, cls.unit) == ("ms", "")
    assert (fcp.column("off"), cls.column("off")) == ("fcp_off_ms", "cls_off")
    assert fcp.column("improvement", unit="pct") == "fcp_improvement_pct"
    assert (fcp.column(), cls.column()) == ("fcp_ms", "cls")
    assert (fcp.with_unit("base"), cls.with_unit("base")) == ("base ms", "base")


def test_words_fit_where_a_page_is_named_and_where_it_is_not() -> None:
    assert (PLT.label, PLT.word, PLT.words, PLT.thing) == (
        "page load time", "load time", "load times", "page load",
    )  # fmt: skip
    ttfb = find_metric("ttfb_ms")
    assert (ttfb.word, ttfb.words, ttfb.thing) == ("time to first byte", "times to first byte",
                                                   "time to first byte")  # fmt: skip


def test_what_a_load_does_not_have_is_no_number() -> None:
    load = load_of(record(conditions()[0], plt_ms=1000.0))
    assert [metric.of(load) for metric in records_of("page_load").metrics] == [1000.0, *[None] * 10]
    assert PLT.of(replace(load, plt_ms=float("nan"))) is None
    again = replace(load, earlier=(replace(load, plt_ms=1500.0, fcp_ms=400.0), load))
    assert find_metric("first_plt_ms").of(again) == 1500.0
    assert find_metric("first_fcp_ms").of(again) == 400.0
    seen = load_of(with_milestones(record(conditions()[0]), cls=0.0))
    assert find_metric("cls").of(seen) == 0.0


def test_a_metric_is_found_by_its_name() -> None:
    assert find_metric("fcp_ms") is MILESTONES[2]


@pytest.mark.parametrize(
    ("name", "meant"), [("fcp", "fcp_ms"), ("plt", "plt_ms"), ("LCP-ms", "lcp_ms"), ("clss", "cls")]
)
def test_a_mistyped_name_is_refused_with_the_one_that_was_meant(name: str, meant: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"--metric {name}.*did you mean '{meant}'"):
        find_metric(name)


def test_an_unknown_name_is_refused_with_all_that_there_are() -> None:
    with pytest.raises(ConfigurationError) as refused:
        find_metric("speed")
    assert "did you mean" not in str(refused.value)
    assert all(f"{m.name} ({m.label})" in str(refused.value) for m in all_metrics())


def test_what_a_page_timed_itself_is_a_metric() -> None:
    told = (PageTiming("mark", "a:b", 61.0, 0.0, ""), PageTiming("mark", "a:b", 90.0, 0.0, ""),
            PageTiming("measure", "boot", 61.0, 70.0, ""))  # fmt: skip
    load = replace(load_of(record(conditions()[0], plt_ms=1000.0)), timings=told)
    assert find_metric("mark:a:b").of(load) == 61.0
    assert find_metric("measure:boot").of(load) == 70.0
    assert find_metric("server:db").of(load) is None
    assert find_metric("mark:a:b").column("off") == "mark:a:b_off_ms"
    for unknown in ("mark", "marks:a"):
        with pytest.raises(ConfigurationError, match="no load is measured by it"):
            find_metric(unknown)
