from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from analysis.plot import Plot, cdf, heatmap, intervals, lines, paired, to_svg
from analysis.plot.cdf import steps_of
from analysis.plot.theme import INK
from testbed.base.errors import ConfigurationError

SWEEP = pd.DataFrame(
    [
        {"rtt_ms": rtt, "tfo": tfo, "page": page, "initcwnd_segments": window,
         "plt_ms": base + 5 * rtt - (rtt if tfo else 0) - 10 * window + seed}
        for page, base in (("wsj", 900.0), ("amazon", 500.0))
        for rtt in (100.0, 20.0, 200.0)
        for tfo in (False, True)
        for window in (4, 10)
        for seed in (0, 1, 2)
    ]
)  # fmt: skip
MODEL = SWEEP[["rtt_ms", "tfo"]].drop_duplicates().assign(plt_ms=lambda f: 450 + 5 * f["rtt_ms"])
SAVED = pd.DataFrame({
    "cell": ["amazon 20 ms", "amazon 100 ms", "wsj 20 ms"], "saved_pct": [4.0, None, -2.5],
    "low": [3.0, None, -4.0], "high": [5.5, None, -1.0], "kernel_version": ["7.3", "7.3", "7.3"],
})  # fmt: skip


def draw_lines() -> Plot:
    return lines(SWEEP, "rtt_ms", "plt_ms", "tfo", "initcwnd_segments", "page", "Sweep", MODEL)


def draw_heatmap() -> Plot:
    return heatmap(SWEEP, "rtt_ms", "initcwnd_segments", "plt_ms", "page", "Map")


def draw_cdf() -> Plot:
    return cdf(SWEEP, "plt_ms", "page", "Loads", x_max=1500.0)


def draw_intervals() -> Plot:
    return intervals(SAVED, "cell", "saved_pct", "low", "high", "kernel_version", "Saved")


def draw_paired() -> Plot:
    return paired(SAVED, "cell", "saved_pct", "kernel_version", "Saved")


ALL = [draw_lines, draw_heatmap, draw_cdf, draw_intervals, draw_paired]


def words_in(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def rows_in(chart: Plot) -> list[dict[str, Any]]:
    """All rows that the chart carries."""
    spec = chart.to_dict()
    layers = spec["spec"]["layer"] if "spec" in spec else spec["layer"]
    return [row for one in (spec, *layers) if "data" in one for row in one["data"]["values"]]


@pytest.mark.parametrize("draw", ALL)
def test_equal_data_give_equal_text(draw: Callable[[], Plot]) -> None:
    assert to_svg(draw()) == to_svg(draw())


@pytest.mark.parametrize("draw", ALL)
def test_a_chart_carries_its_data_and_needs_nothing_from_outside(draw: Callable[[], Plot]) -> None:
    spec = draw().to_dict()
    assert "url" not in str(spec.get("data")) and rows_in(draw())
    svg = to_svg(draw())
    assert set(re.findall(r"https?://[^\"' ]+", svg)) == {"http://www.w3.org/2000/svg"}


def test_lines_and_distributions_can_be_zoomed_in_a_notebook() -> None:
    for draw in (draw_lines, draw_cdf):
        assert "'bind': 'scales'" in str(draw().to_dict())
        assert "'bind': 'scales'" not in str(draw().to_dict(still=True))


@pytest.mark.parametrize(
    ("draw", "wanted"),
    [
        (draw_lines, {"RTT (ms)", "Page load time (ms)", "Fast Open", "on", "off", "amazon",
                      "Initial window (segments)", "model", "Sweep"}),
        (draw_heatmap, {"RTT (ms)", "20", "100", "wsj", "Map", "Page load time (ms); rows: "
                        "Initial window (segments); the stronger, the more"}),
        (draw_cdf, {"Page load time (ms)", "Share of values (%)", "Page", "wsj", "Loads"}),
        (draw_intervals, {"Saved (%)", "amazon 100 ms", "Kernel version", "7.3"}),
        (draw_paired, {"Saved (%)", "amazon 20 ms", "\u22122.50", "4.00"}),
    ],
)  # fmt: skip
def test_words_and_units(draw: Callable[[], Plot], wanted: set[str]) -> None:
    assert wanted - set(words_in(to_svg(draw()))) == set()


def test_a_line_is_the_median_and_shows_the_range() -> None:
    one = SWEEP.query("page == 'wsj' and tfo == False and initcwnd_segments == 4")
    rows = rows_in(lines(one, "rtt_ms", "plt_ms"))
    at20 = next(row for row in rows if row["x"] == 20.0)
    assert (at20["low"], at20["y"], at20["high"], at20["n"]) == (960.0, 961.0, 962.0, 3)


def test_a_model_of_no_panel_is_in_every_panel() -> None:
    rows = [row for row in rows_in(draw_lines()) if row["kind"] == "model"]
    assert {row["facet"] for row in rows} == {"wsj", "amazon"}
    assert len(rows) == 2 * len(MODEL)


def test_a_model_without_the_colours_is_in_ink() -> None:
    spec = lines(SWEEP, "rtt_ms", "plt_ms", "tfo", model=MODEL.drop(columns="tfo")).to_dict()
    assert spec["layer"][-1]["encoding"]["color"] == {"value": INK.light}


def test_values_of_a_swept_name_keep_their_order() -> None:
    words = words_in(to_svg(lines(SWEEP.query("tfo"), "page", "plt_ms")))
    assert words.index("wsj") < words.index("amazon")


def test_cells_hold_the_median_and_the_strongest_is_the_largest() -> None:
    rows = rows_in(heatmap(SWEEP.query("page == 'wsj'"), "rtt_ms", "tfo", "plt_ms"))
    assert len(rows) == 6
    strongest = max(rows, key=lambda row: float(row["strength"]))
    assert (strongest["x"], strongest["y"], strongest["n"]) == ("200", "off", 6)
    assert strongest["text"] == "1831"
    assert len({row["hue"] for row in rows}) == 1


def test_a_diverging_map_has_a_hue_for_each_sign() -> None:
    frame = SAVED.assign(rtt_ms=[20.0, 100.0, 20.0], page=["amazon", "amazon", "wsj"])
    rows = rows_in(heatmap(frame, "rtt_ms", "page", "saved_pct", diverging=True))
    up, down = (next(row for row in rows if row["y"] == page) for page in ("amazon", "wsj"))
    assert up["hue"] != down["hue"]
    assert up["strength"] > down["strength"]
    assert (up["text"], down["text"]) == ("4.00", "\u22122.50")


def test_steps_of_a_distribution() -> None:
    assert steps_of([3.0, 1.0, 1.0, 2.0], 0.0, 5.0) == [
        (0.0, 0.0), (1.0, 50.0), (2.0, 75.0), (3.0, 100.0), (5.0, 100.0),
    ]  # fmt: skip


def test_a_cut_distribution_ends_below_all() -> None:
    assert steps_of([1.0, 2.0, 9.0, 10.0], 0.0, 4.0) == [
        (0.0, 0.0), (1.0, 25.0), (2.0, 50.0), (4.0, 50.0),
    ]  # fmt: skip
    assert "12 values lie beyond 1500 ms" in words_in(to_svg(draw_cdf()))


def test_a_long_distribution_is_drawn_in_few_steps() -> None:
    steps = steps_of([float(value) for value in range(100_000)], 0.0, 1e5)
    assert len(steps) == 502
    assert steps[1] == (199.0, 0.2)


def test_an_empty_interval_keeps_its_label() -> None:
    rows = {row["label"]: row for row in rows_in(draw_intervals()) if "label" in row}
    assert rows["amazon 100 ms"]["value"] is None
    assert rows["wsj 20 ms"]["low"] == -4.0


@pytest.mark.parametrize("draw", [lambda: lines(SWEEP, "rtt", "plt"),
                                  lambda: heatmap(SWEEP, "rtt", "tfo", "plt"),
                                  lambda: cdf(SWEEP, "plt", "rtt"),
                                  lambda: intervals(SAVED, "rtt", "plt", "low", "high"),
                                  lambda: paired(SAVED, "cell", "plt", "rtt")])  # fmt: skip
def test_all_missing_columns_are_named_at_once(draw: Callable[[], Plot]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        draw()
    assert "'rtt'" in str(caught.value) and "'plt'" in str(caught.value)


@pytest.mark.parametrize("draw", [
    lambda empty: lines(empty, "cell", "saved_pct"),
    lambda empty: heatmap(empty, "cell", "cell", "saved_pct"),
    lambda empty: cdf(empty, "saved_pct"),
    lambda empty: intervals(empty, "cell", "saved_pct", "low", "high"),
    lambda empty: paired(empty, "cell", "saved_pct", "kernel_version"),
])  # fmt: skip
def test_nothing_to_draw_is_told(draw: Callable[[pd.DataFrame], Plot]) -> None:
    empty = SAVED.assign(saved_pct=float("nan"))
    with pytest.raises(ConfigurationError, match="nothing to draw"):
        draw(empty)


def test_a_logarithmic_axis_is_vega_s_and_has_no_place_for_zero() -> None:
    rows = [{"rate": 1, "ms": 5.0}, {"rate": 2, "ms": 2000.0}]
    chart = lines(rows, "rate", "ms", log=True)
    encoding = chart.to_dict()["layer"][0]["encoding"]
    assert encoding["y"]["scale"] == {"type": "log", "nice": True}
    assert ">10,000</text>" in to_svg(chart)
    with pytest.raises(ConfigurationError, match="ms is 0, which a logarithmic axis cannot show"):
        lines([*rows, {"rate": 3, "ms": 0.0}], "rate", "ms", log=True)


def test_a_band_around_a_distribution_stays_between_none_and_all() -> None:
    rows = [{"plt": value} for value in (10.0, 20.0, 30.0, 40.0)]
    steps = rows_in(cdf(rows, "plt", x_min=5.0, x_max=45.0, half_width_pct=lambda n: 10.0 * n))
    assert [(step["x"], step["low"], step["high"]) for step in steps] == [
        (5.0, 0.0, 40.0), (10.0, 0.0, 65.0), (20.0, 10.0, 90.0), (30.0, 35.0, 100.0),
        (40.0, 60.0, 100.0), (45.0, 60.0, 100.0),
    ]  # fmt: skip
