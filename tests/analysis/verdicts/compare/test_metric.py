"""Comparison by another metric than the page load time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from analysis.records.kind import find_metric
from analysis.records.metric import Metric
from analysis.verdicts.compare.comparison import CellFinding, CompareOptions, Comparison
from analysis.verdicts.compare.documents import (
    describe_comparison,
    render_junit,
    render_markdown,
    render_page,
)
from analysis.verdicts.compare.folders import compare_results
from analysis.verdicts.compare.sentences import render_text
from testbed.base.errors import ConfigurationError
from testbed.model import Record
from tests.analysis.sample import with_milestones
from tests.analysis.verdicts.compare.folder import (
    FIRST,
    SECOND,
    another_page,
    made,
    write_records_of,
)
from tests.measured import load_of

FCP, LCP, CLS = (find_metric(name) for name in ("fcp_ms", "lcp_ms", "cls"))
OTHER = another_page()
BY_PAINT = CompareOptions(("pages",), metric=FCP)


def seen(seed: int, kernel: str = "virtual", **values: float | None) -> Record:
    """A load of 1000 ms, whatever a visitor sees of it."""
    return with_milestones(made(FIRST, seed, 1000.0, kernel), **values)


def compare(
    tmp_path: Path, base: list[Record], new: list[Record], options: CompareOptions = BY_PAINT
) -> Comparison:
    kernel = base[0].trial.kernel
    new = [replace(one, environment=OTHER.id) for one in new]
    return compare_results(write_records_of(tmp_path / "base", base, [FIRST], kernel),
                           write_records_of(tmp_path / "new", new, [FIRST], kernel, OTHER),
                           options)  # fmt: skip


def only(found: Comparison) -> CellFinding:
    (cell,) = found.cells
    return cell


def test_a_paint_moves_where_the_load_time_does_not(tmp_path: Path) -> None:
    found = compare(tmp_path, [seen(0, fcp_ms=400.0)], [seen(0, fcp_ms=440.0)])
    cell = only(found)
    assert (cell.verdict, cell.direction) == ("different", "slower")
    assert cell.reason == "the first contentful paint changed in 1 of 1 trial"
    assert cell.effect is not None and (cell.effect.ms, cell.effect.pct) == (40.0, 10.0)
    by_load_time = compare_results(tmp_path / "base", tmp_path / "new", CompareOptions(("pages",)))
    assert by_load_time.verdict == "same"


def test_one_grain_of_a_paint_is_no_difference(tmp_path: Path) -> None:
    cell = only(compare(tmp_path, [seen(0, fcp_ms=400.0)], [seen(0, fcp_ms=404.0)]))
    assert cell.verdict == "same"
    assert "the first contentful paint within 4 ms (median +4.000 ms" in cell.reason


def test_a_paint_that_is_gone_is_a_difference(tmp_path: Path) -> None:
    base = [seen(seed, fcp_ms=400.0) for seed in (0, 1)]
    cell = only(compare(tmp_path, base, [seen(0, fcp_ms=400.0), seen(1, fcp_ms=None)]))
    assert (cell.verdict, cell.direction) == ("different", "changed")
    assert cell.reason.endswith("is not in NEW: seed 1 has no first contentful paint")


def test_a_cell_that_nobody_painted_has_no_number(tmp_path: Path) -> None:
    both = [with_milestones(made(SECOND, 0, 900.0), fcp_ms=None), seen(0, fcp_ms=400.0)]
    folder = write_records_of(tmp_path / "one", both, [FIRST, SECOND])
    found = compare_results(folder, folder, CompareOptions(metric=FCP))
    lacking = next(cell for cell in found.cells if cell.axes["page"] == SECOND.page)
    assert lacking.verdict == "inconclusive"
    assert lacking.reason == "BASE has no first contentful paint in any proven load"
    assert found.counts["same"] == 1


def test_results_that_nobody_painted_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        compare(tmp_path, [seen(0)], [made(FIRST, 0, 1000.0)])
    assert refused.value.problems == [
        "NEW: Client chromium gives no first contentful paint (fcp_ms)."
    ]


def test_every_form_says_by_what_it_was_judged(tmp_path: Path) -> None:
    found = compare(tmp_path, [seen(0, fcp_ms=400.0)], [seen(0, fcp_ms=440.0)])
    said = "Loads are judged by first contentful paint (fcp_ms), not by page load time; "
    text = render_text(found)
    assert said in text and "a first contentful paint that moved by 0.1 %" in text
    assert "First contentful paints: DIFFERENT" in render_markdown(found)
    assert said in render_page(found)
    assert "Medians of first contentful paints in ms;" in render_page(found)
    suite = ElementTree.fromstring(render_junit(found))  # noqa: S314 - our own
    properties = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert properties["metric"] == "fcp_ms"
    document = json.loads(json.dumps(describe_comparison(found)))
    assert document["metric"] == "fcp_ms"
    assert document["cells"][0]["new"] == {"outcomes": {"ok": 1}, "fcp_ms": [440.0],
                                           "median_ms": 440.0}  # fmt: skip


def test_nothing_is_said_of_the_load_time_which_is_meant_anyway(tmp_path: Path) -> None:
    found = compare(tmp_path, [seen(0)], [seen(0)], CompareOptions(("pages",)))
    assert "judged by" not in render_text(found)
    assert describe_comparison(found)["metric"] == "plt_ms"
    assert "Page load times: SAME" in render_markdown(found)


def test_what_is_no_time_has_no_unit(tmp_path: Path) -> None:
    options = CompareOptions(("pages",), metric=CLS)
    found = compare(tmp_path, [seen(0, cls=0.0)], [seen(0, cls=0.125)], options)
    cell = only(found)
    assert cell.verdict == "different" and cell.effect is not None and cell.effect.pct is None
    text = render_text(found)
    assert "larger, +0.1250; the layout shift changed" in text
    assert text.splitlines()[0].split()[-7:] == ["base", "new", "diff", "diff", "%", "n", "verdict"]
    assert " ms" not in text.replace("20 ms", "")


def test_chance_is_weighed_on_the_metric_in_real_time(tmp_path: Path) -> None:
    base = [seen(seed, "host", lcp_ms=400.0 + 4 * (seed % 3)) for seed in range(12)]
    new = [seen(seed, "host", lcp_ms=480.0 + 4 * (seed % 3)) for seed in range(12)]
    cell = only(compare(tmp_path, base, new, CompareOptions(("pages",), metric=LCP)))
    assert (cell.verdict, cell.direction) == ("different", "slower")
    assert cell.reason.startswith("largest contentful paints shifted")
    assert cell.base is not None and cell.base.median_ms == 404.0


@pytest.mark.parametrize(
    ("metric", "before", "after", "word"),
    [(FCP, 400.0, 403.0, "agrees"), (FCP, 400.0, 450.0, "explained"), (CLS, 0.1, 0.2, "differs")],
)
def test_computing_between_the_clocks_accounts_for_times_alone(
    tmp_path: Path, metric: Metric, before: float, after: float, word: str
) -> None:
    base = write_records_of(
        tmp_path / "base", [seen(0, "virtual", **{metric.name: before})], [FIRST]
    )
    late = seen(0, "host", **{metric.name: after})
    late = replace(late, measured=replace(load_of(late), browser={"task_s": 0.2}))
    new = write_records_of(tmp_path / "new", [late], [FIRST], "host")
    cell = only(compare_results(base, new, CompareOptions(metric=metric)))
    assert cell.word == word
    assert metric.words in cell.reason
    assert cell.clocks is not None and cell.clocks.new.plt_ms is not None
    assert cell.clocks.new.plt_ms.median.value == 1000.0


def test_one_grain_is_no_shift_in_real_time(tmp_path: Path) -> None:
    base = [seen(seed, "host", lcp_ms=200.0) for seed in range(12)]
    new = [seen(seed, "host", lcp_ms=203.9) for seed in range(12)]
    cell = only(compare(tmp_path, base, new, CompareOptions(("pages",), metric=LCP)))
    assert cell.verdict == "same"
