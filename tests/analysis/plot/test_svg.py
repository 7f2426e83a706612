from __future__ import annotations

import re
from xml.etree import ElementTree

import pandas as pd
import pytest

from analysis.plot import Plot, lines, style_sheet, to_svg
from analysis.plot.chart import draw, field, inline, mark
from analysis.plot.rows import Row
from analysis.plot.svg import Spec
from analysis.plot.theme import COLOURS, FURTHER, INK, PAPER, SERIES, VERDICTS
from analysis.report.rendering import TEMPLATES

FRAME = pd.DataFrame(
    {"rtt_ms": [20.0, 100.0, 20.0, 100.0], "plt_ms": [500.0, 900.0, 450.0, 800.0],
     "page": ["a < b & c", "a < b & c", "wsj", "wsj"]}
)  # fmt: skip
CHART = lines(FRAME, "rtt_ms", "plt_ms", "page", title="Loads & <times>")
SVG = "{http://www.w3.org/2000/svg}"


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_it_is_an_element_that_fills_its_surroundings() -> None:
    root = ElementTree.fromstring(to_svg(CHART))  # noqa: S314 - our own
    assert root.tag == f"{SVG}svg"
    assert "width: 100%" in root.attrib["style"]
    assert root.attrib["viewBox"].startswith("0 0 ")
    assert "width" not in root.attrib


def test_it_is_named_for_who_cannot_see() -> None:
    root = ElementTree.fromstring(to_svg(CHART))  # noqa: S314 - our own
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"].startswith("Loads & <times>. Page load time (ms) over RTT")
    title = root.find(f"{SVG}title")
    assert title is not None and title.text == "Loads & <times>"


def test_every_colour_is_a_property_with_its_light_value_to_fall_back_on() -> None:
    svg = to_svg(CHART)
    assert f"var(--ink, {INK.light})" in svg and PAPER.light not in svg  # the page has a ground
    assert f"var(--series-1, {SERIES[0].light})" in svg
    bare = re.sub(r"var\([^)]*\)", "", svg)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b", bare) == []
    assert not re.search(r'(fill|stroke)="(?!none|transparent|url|")[a-z]+"', bare)


def test_drawings_need_no_ids_that_a_page_could_hold_twice() -> None:
    assert not re.search(r"\bid=|url\(", to_svg(CHART))


def test_text_is_text_in_fonts_that_are_everywhere() -> None:
    svg = to_svg(CHART)
    assert ">a &lt; b &amp; c</text>" in svg
    assert set(re.findall(r'font-family="([^"]+)"', svg)) == {
        "Arial, 'Liberation Sans', Helvetica, sans-serif"
    }


def test_the_style_sheet_has_both_values_of_every_colour() -> None:
    light, _, dark = style_sheet().partition("@media (prefers-color-scheme: dark)")
    for colour in COLOURS:
        assert f"--{colour.name}: {colour.light};" in light
        assert f"--{colour.name}: {colour.dark};" in dark


def test_no_colour_is_used_for_two_things() -> None:
    every = (*COLOURS, *VERDICTS)
    assert len({colour.light for colour in every}) == len(every)


def test_verdicts_have_the_colours_of_the_page() -> None:
    light, _, dark = (TEMPLATES / "report.css").read_text().partition("@media (prefers")
    for colour in VERDICTS:
        assert f"--{colour.name}: {colour.light};" in light
        assert f"--{colour.name}: {colour.dark};" in dark


@pytest.mark.parametrize("ground", ["light", "dark"])
def test_series_are_seen_on_their_ground(ground: str) -> None:
    for colour in (*SERIES, *FURTHER):
        assert contrast(getattr(colour, ground), getattr(PAPER, ground)) >= 3.0


def test_a_drawing_of_its_own_has_fixed_colours_and_its_size() -> None:
    text = draw(CHART)
    assert "var(" not in text and INK.light in text and PAPER.light in text
    assert float(ElementTree.fromstring(text).attrib["width"]) > 300  # noqa: S314 - our own


def marks_of(layer: Spec) -> list[str]:
    chart = Plot((layer,), {**inline([{"a": 0, "b": None}, {"a": 4, "b": 1}]), "description": ""})
    return re.findall(r"<circle[^>]*>", draw(chart))


@pytest.mark.parametrize(
    ("only", "shown"),
    [("", 2), ("datum.a > 0", 1), ("datum.b != null", 1), ("datum.a >= datum.a", 2),
     ("datum.a == 4 && datum.b < 1", 0)],
)  # fmt: skip
def test_marks_are_those_that_the_expression_holds_for(only: str, shown: int) -> None:
    at = {"x": field("a", "Q"), "y": field("a", "Q"), "color": {"value": INK.light}}
    assert len(marks_of(mark("point", at, only=only))) == shown


def test_a_point_is_where_its_axes_say() -> None:
    at = {"x": field("a", "Q"), "y": field("a", "Q"), "color": {"value": INK.light}}
    first, last = marks_of(mark("point", at))
    assert 'cx="0" cy="240"' in first and 'cx="400" cy="0"' in last


def drawing_of(layer: Spec, rows: list[Row]) -> str:
    return draw(Plot((layer,), {**inline(rows), "description": ""}))


ROWS: list[Row] = [{"a": 0, "low": 0, "b": 1, "word": "<one>"}, {"a": 4, "low": 2, "b": 4}]


def test_an_area_is_between_its_two_ends() -> None:
    at = {"x": field("a", "Q"), "y": field("low", "Q"), "y2": {"field": "b"},
          "color": {"value": INK.light}}  # fmt: skip
    svg = drawing_of(mark("area", at, more={"opacity": 0.5}), ROWS)
    path = "M0,240L400,120L400,0L0,180Z"
    assert f'<path d="{path}" fill="{INK.light}" fill-opacity="0.5"/>' in svg


def test_a_point_has_its_size_angle_outline_and_description() -> None:
    at = {"x": field("a", "Q"), "y": field("b", "Q"), "color": {"value": INK.light},
          "shape": {"value": "cross"}, "description": field("word", "N")}  # fmt: skip
    look = {"size": 12.566, "angle": 45, "stroke": PAPER.light, "strokeWidth": 1}
    svg = drawing_of(mark("point", at, more=look), ROWS[:1])
    assert re.search(
        r'<polygon points="[^"]+" transform="translate\(0,0\) rotate\(45\) scale\(2.0\)" '
        rf'fill="{INK.light}" stroke="{PAPER.light}" stroke-width="0.5">'
        "<title>&lt;one&gt;</title></polygon>",
        svg,
    )


def test_an_axis_without_labels_takes_no_room() -> None:
    heights = []
    for axis in ({}, {"labels": False, "ticks": False}):
        at = {"x": field("a", "Q", axis=axis), "y": field("b", "Q", axis=None),
              "color": {"value": INK.light}}  # fmt: skip
        svg = drawing_of(mark("point", at), ROWS)
        heights.append(float(ElementTree.fromstring(svg).attrib["height"]))  # noqa: S314 - our own
    assert heights[1] < heights[0]
    assert "<text" not in svg


def test_a_rule_may_be_dashed() -> None:
    at = {"x": field("a", "Q"), "y": field("b", "Q"), "color": {"value": INK.light}}
    rule = {**inline([{"a": 2}]), **mark("rule", {"x": at["x"]}, more={"strokeDash": [3, 3]})}
    svg = draw(Plot((mark("point", at), rule), {**inline(ROWS), "description": ""}))
    assert re.search(r'<line x1="200" y1="0" x2="200" y2="240"[^>]*stroke-dasharray="3,3"/>', svg)
