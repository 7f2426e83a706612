"""Static SVG of a Vega-Lite specification: draws the part that `analysis.plot.chart` writes.

No browser and no JavaScript is started for it, which took longer than all else in a small report.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from operator import eq, ge, gt, le, lt, ne
from typing import Any, TypeAlias

from analysis.plot.marks import Picture, line, px, rectangle, write
from analysis.plot.rows import Row
from analysis.plot.scales import (
    BandScale,
    LinearScale,
    LogScale,
    Scale,
    make_scale,
    shorten_px,
    text_px,
    wrap_px,
)
from analysis.plot.theme import FONTS, INK, LINE, PANEL_HEIGHT, PANEL_WIDTH, SOFT, TEXT_PX, TITLE_PX

Spec: TypeAlias = dict[str, Any]
"""Vega-Lite: a specification, or a part of one."""

PAD_PX = 14
LINE_PX = 17
GAP_PX = 20
LABEL_LIMIT_PX = 230
LEAST_WIDTH_PX = 240
POINT_PX = 3.5
LANE_GAP_PX = 8
CONDITION = re.compile(r"datum\.(\w+) (==|!=|>=|<=|>|<) (?:datum\.(\w+)|'([^']*)'|(\S+))")
COMPARE: dict[str, Callable[[Any, Any], bool]] = {"==": eq, "!=": ne, ">=": ge, "<=": le, ">": gt,
                                                  "<": lt}  # fmt: skip
# Around (0, 0), for a radius of 1.
SHAPES = {
    "square": "-.9,-.9 .9,-.9 .9,.9 -.9,.9",
    "triangle-up": "0,-1.15 1.1,.85 -1.1,.85",
    "diamond": "0,-1.3 1.1,0 0,1.3 -1.1,0",
    "cross": "-.4,-1.2 .4,-1.2 .4,-.4 1.2,-.4 1.2,.4 .4,.4 .4,1.2 -.4,1.2 -.4,.4 -1.2,.4 "
    "-1.2,-.4 -.4,-.4",
    "triangle-down": "0,1.15 1.1,-.85 -1.1,-.85",
    "stroke": "-1.3,-.35 1.3,-.35 1.3,.35 -1.3,.35",
    "arrow": "0,-1.3 1,.2 .35,.2 .35,1.2 -.35,1.2 -.35,.2 -1,.2",
}


@dataclass(frozen=True, slots=True)
class Layer:
    """Marks of one kind with the rows that they show."""

    kind: str
    style: Spec
    encoding: Spec
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Box:
    """A plot with its scales; ``outer`` is whether its vertical axis has labels."""

    x: Scale
    y: Scale
    width: float
    height: float
    axes: dict[str, Spec]


def draw_figure(spec: Spec) -> Picture:
    """Return a figure as large as it is drawn.  Equal figures give equal text."""
    inside = spec.get("spec", spec)
    layers = [_layer(layer, spec["data"]["values"]) for layer in inside["layer"]]
    box = _box(layers, inside)
    panels = spec["facet"]["sort"] if "facet" in spec else [""]
    columns = min(spec.get("columns", 1), len(panels))
    header = LINE_PX + 4 if "facet" in spec else 0
    left, below = _left_px(box), _below_px(box)
    across = box.width + GAP_PX
    down = header + box.height + below + (GAP_PX if len(panels) > columns else 0)
    content = left + columns * across - GAP_PX
    room = max(content, LEAST_WIDTH_PX)
    parts, top = _head(spec.get("title", {}), layers, room)
    for place, panel in enumerate(panels):
        column, row = place % columns, place // columns
        x, y = PAD_PX + left + column * across, top + row * down
        if panel:
            parts.append(write(PAD_PX + left + column * across, y + 12, panel, weight="bold"))
        marks = "".join(_panel(layers, box, panel, outer=column == 0, left=left))
        parts.append(f'<g transform="translate({px(x)},{px(y + header)})">{marks}</g>')
    rows = math.ceil(len(panels) / columns)
    height = top + rows * down - (GAP_PX if rows > 1 else 0) + 4
    shared = f'font-family="{FONTS}" font-size="{TEXT_PX}" fill="{INK.light}"'
    return Picture(room + 2 * PAD_PX, height, f"<g {shared}>{''.join(parts)}</g>",
                   str(spec.get("title", {}).get("text", "")), spec["description"])  # fmt: skip


def _layer(spec: Spec, shared: Sequence[Row]) -> Layer:
    rows: Iterable[Row] = spec["data"]["values"] if "data" in spec else shared
    tests = [transform["filter"] for transform in spec.get("transform", ())]
    kept = tuple(row for row in rows if all(_holds(test, row) for test in tests))
    return Layer(spec["mark"]["type"], spec["mark"], spec["encoding"], kept)


def _holds(test: str, row: Row) -> bool:
    """Return whether ``row`` passes ``test``: comparisons of its fields, joined by ``&&``."""
    for name, operator, other, text, number in CONDITION.findall(test):
        value: Any = row.get(other) if other else text
        if number:
            value = None if number == "null" else float(number)
        if not COMPARE[operator](row.get(name), value):
            return False
    return True


def _box(layers: Sequence[Layer], inside: Spec) -> Box:
    """Return the plot that all panels share, with scales over the rows of all layers."""
    width = inside.get("width", PANEL_WIDTH)
    height = inside.get("height", PANEL_HEIGHT)
    scales: dict[str, Scale] = {}
    axes: dict[str, Spec] = {}
    for name, start, end in (("x", 0.0, width), ("y", height, 0.0)):
        uses = [(layer, layer.encoding[name]) for layer in layers if name in layer.encoding]
        first = next((c for _, c in uses if "scale" in c or "sort" in c), uses[0][1])
        axes[name] = {"axis": {}, **first}
        if first["type"] == "nominal":
            names = first.get("scale", {}).get("domain") or first["sort"]
            scales[name] = BandScale(tuple(names), 0.0, max(start, end))
            continue
        ends = [(layer, layer.encoding.get(f"{name}2")) for layer, _ in uses]
        fields = [(layer, c["field"]) for layer, c in (*uses, *ends) if c]
        values = [row[f] for layer, f in fields for row in layer.rows if row.get(f) is not None]
        scales[name] = make_scale(first.get("scale") or {}, values, start, end)
    return Box(scales["x"], scales["y"], width, height, axes)


def _labels(box: Box, name: str) -> list[tuple[float, str]]:
    """Return the places in px and the texts of an axis; horizontal ones leave each other room."""
    scale, axis = (box.x if name == "x" else box.y), box.axes[name]["axis"]
    if axis is None or not axis.get("labels", True):
        return []
    if isinstance(scale, BandScale):
        return [(scale.at(text), shorten_px(text, LABEL_LIMIT_PX)) for text in scale.names]
    values = axis.get("values")
    ticks = [(v, f"{v:,.10g}") for v in values] if values else scale.ticks(axis.get("tickCount"))
    placed = [(scale.at(value), text) for value, text in ticks]
    while name == "x" and any(
        b[0] - a[0] < (text_px(a[1]) + text_px(b[1])) / 2 + 4 for a, b in pairwise(placed)
    ):
        placed = placed[::2]
    return placed


def _left_px(box: Box) -> float:
    """Return the room for the vertical axis, and for half of a label below the first px."""
    wide = max((text_px(text) for _, text in _labels(box, "y")), default=0.0)
    titled = LINE_PX if box.axes["y"].get("title") and wide else 0
    below = _labels(box, "x")
    half = text_px(below[0][1]) / 2 - below[0][0] if below and not _tilted(box) else 0.0
    return max(wide + 8 + titled if wide else 0.0, half)


def _below_px(box: Box) -> float:
    """Return the room for the horizontal axis."""
    labels = LINE_PX + 4.0 if (box.axes["x"]["axis"] or {}).get("labels", True) else 0.0
    if _tilted(box):
        labels = 14 + 0.65 * max((text_px(text) for _, text in _labels(box, "x")), default=0.0)
    return labels + (LINE_PX + 4 if box.axes["x"].get("title") else 0)


def _tilted(box: Box) -> bool:
    return bool((box.axes["x"]["axis"] or {}).get("labelAngle"))


def _panel(
    layers: Sequence[Layer], box: Box, panel: str, outer: bool, left: float
) -> Iterator[str]:
    yield from _grid(box)
    for layer in layers:
        rows = [row for row in layer.rows if not panel or row.get("facet") == panel]
        yield from _marks(layer, rows, box)
    yield from _axes(box, outer, left)


def _grid(box: Box) -> Iterator[str]:
    look = f'stroke="{LINE.light}"'
    for name, scale in (("x", box.x), ("y", box.y)):
        axis = box.axes[name]["axis"]
        if axis is None:
            continue
        if isinstance(scale, BandScale):
            if not axis.get("grid") or name == "x":
                continue
            places = [n * scale.step for n in range(len(scale.names) + 1)]
        else:
            places = [place for place, _ in _labels(box, name)]
        for place in places:
            ends = (place, 0, place, box.height) if name == "x" else (0, place, box.width, place)
            yield line(ends, look)


def _axes(box: Box, outer: bool, left: float) -> Iterator[str]:
    below, axis = box.axes["x"], box.axes["x"]["axis"] or {}
    if axis.get("domain", True):
        yield line((0, box.height, box.width, box.height), f'stroke="{SOFT.light}"')
    for place, text in _labels(box, "x"):
        if axis.get("ticks", True):
            yield line((place, box.height, place, box.height + 5), f'stroke="{SOFT.light}"')
        y = box.height + LINE_PX
        if _tilted(box):
            turned = f' transform="rotate({axis["labelAngle"]},{px(place)},{px(y - 3)})"'
            yield write(place, y, text, anchor="end", more=turned)
        else:
            yield write(place, y, text, anchor="middle")
    if below.get("title"):
        y = box.height + _below_px(box) - 6
        yield write(box.width / 2, y, below["title"], anchor="middle", fill=SOFT.light)
    if outer:
        for place, text in _labels(box, "y"):
            yield write(-6, place + 4, text, anchor="end")
        if box.axes["y"].get("title") and box.axes["y"]["axis"] is not None:
            x, y = -left + 10, box.height / 2
            turned = f' transform="rotate(-90,{px(x)},{px(y)})"'
            title = box.axes["y"]["title"]
            yield write(x, y, title, anchor="middle", fill=SOFT.light, more=turned)


def _marks(layer: Layer, rows: Sequence[Row], box: Box) -> Iterator[str]:
    if layer.kind in ("line", "area"):
        yield from _lines(layer, rows, box)
        return
    make = {"point": _point, "rule": _rule, "bar": _bar, "rect": _rect, "text": _words,
            "tick": _tick}[layer.kind]  # fmt: skip
    for row in rows:
        yield make(layer, row, box)


def _lines(layer: Layer, rows: Sequence[Row], box: Box) -> Iterator[str]:
    """Yield one path or band for each colour, pattern and detail, from left to right."""
    encoding = layer.encoding
    split = [encoding[n]["field"] for n in ("color", "strokeDash", "detail")
             if "field" in encoding.get(n, {})]  # fmt: skip
    lines: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        lines.setdefault(tuple(row.get(name) for name in split), []).append(row)
    for parts in lines.values():
        if layer.kind == "area":
            yield _band(layer, parts, box)
            continue
        points = [(_x(layer, row, box), _y(layer, row, box)) for row in parts]
        if layer.style.get("interpolate") == "step-after":
            (x, y), *rest = points
            path = f"M{px(x)},{px(y)}" + "".join(f"H{px(x)}V{px(y)}" for x, y in rest)
        else:
            ordered = sorted(points, key=lambda point: point[0])
            path = "M" + "L".join(f"{px(x)},{px(y)}" for x, y in ordered)
        dashed = _dashed(_look(encoding.get("strokeDash"), parts[0]))
        yield (
            f'<path d="{path}" fill="none" stroke="{_look(encoding["color"], parts[0])}" '
            f'stroke-width="{layer.style.get("strokeWidth", 2)}" stroke-linejoin="round"{dashed}/>'
        )


def _band(layer: Layer, rows: Sequence[Row], box: Box) -> str:
    """Return the area between the fields of ``y`` and ``y2``."""
    assert isinstance(box.y, LinearScale | LogScale)  # noqa: S101 - both ends are numbers
    other = layer.encoding["y2"]["field"]
    edges = sorted(
        ((_x(layer, row, box), _y(layer, row, box), box.y.at(row[other])) for row in rows),
        key=lambda edge: edge[0],
    )
    if layer.style.get("interpolate") == "step-after":
        corners = [(x, *before[1:]) for before, (x, *_) in pairwise(edges)]
        edges[1:] = [edge for step in zip(corners, edges[1:], strict=True) for edge in step]
    ends = [(x, y) for x, y, _ in edges] + [(x, y) for x, _, y in reversed(edges)]
    path = "L".join(f"{px(x)},{px(y)}" for x, y in ends)
    look = f'fill="{_look(layer.encoding["color"], rows[0])}"'
    return f'<path d="M{path}Z" {look} fill-opacity="{layer.style.get("opacity", 1)}"/>'


def _point(layer: Layer, row: Row, box: Box) -> str:
    shape = str(_look(layer.encoding.get("shape"), row) or "circle")
    colour = str(_look(layer.encoding["color"], row))
    said = layer.encoding.get("description")
    title = str(row[said["field"]]) if said else ""
    return _symbol(shape, _x(layer, row, box), _y(layer, row, box), colour, layer.style, title)


def _symbol(
    shape: str, x: float, y: float, colour: str, style: Spec | None = None, title: str = ""
) -> str:
    """Return a point; of ``style`` its size in square px, angle and outline count."""
    style = style or {}
    radius = round(math.sqrt(style["size"] / math.pi), 2) if "size" in style else POINT_PX
    if shape == "circle":
        tag, scale = "circle", 1.0
        place = f'cx="{px(x)}" cy="{px(y)}" r="{radius}"'
    else:
        tag, scale = "polygon", radius
        turned = f" rotate({style['angle']})" if "angle" in style else ""
        moved = f"translate({px(x)},{px(y)}){turned} scale({radius})"
        place = f'points="{SHAPES[shape]}" transform="{moved}"'
    outline = ""
    if "stroke" in style:
        outline = f' stroke="{style["stroke"]}" stroke-width="{px(style["strokeWidth"] / scale)}"'
    start = f'<{tag} {place} fill="{colour}"{outline}'
    return f"{start}><title>{escape(title, quote=False)}</title></{tag}>" if title else f"{start}/>"


def _rule(layer: Layer, row: Row, box: Box) -> str:
    encoding = layer.encoding
    colour = layer.style.get("color") or _look(encoding.get("color"), row) or INK.light
    dashed = _dashed(layer.style.get("strokeDash"))
    look = f'stroke="{colour}" stroke-width="{layer.style.get("strokeWidth", 1.5)}"{dashed}'
    x = _x(layer, row, box)
    if "y" not in encoding:
        return line((x, 0, x, box.height), look)
    y = _y(layer, row, box)
    if "x2" in encoding:
        assert isinstance(box.x, LinearScale | LogScale)  # noqa: S101 - both ends are numbers
        return line((x, y, box.x.at(row[encoding["x2"]["field"]]), y), look)
    assert isinstance(box.y, LinearScale | LogScale)  # noqa: S101 - as above
    return line((x, y, x, box.y.at(row[encoding["y2"]["field"]])), look)


def _tick(layer: Layer, row: Row, box: Box) -> str:
    x, y, style = _x(layer, row, box), _y(layer, row, box), layer.style
    look = f'stroke="{_look(layer.encoding["color"], row)}" stroke-width="{style["thickness"]}"'
    look += f' stroke-opacity="{style["opacity"]}"'
    return line((x, y - style["size"] / 2, x, y + style["size"] / 2), look)


def _bar(layer: Layer, row: Row, box: Box) -> str:
    assert isinstance(box.x, LinearScale)  # noqa: S101 - the length of a bar is a number
    other = row[layer.encoding["x2"]["field"]] if "x2" in layer.encoding else 0.0
    ends = sorted((_x(layer, row, box), box.x.at(other)))
    high = layer.style.get("height") or _lane_px(layer, box) - 3
    y = _y(layer, row, box) - high / 2
    colour = _look(layer.encoding["color"], row)
    return rectangle(ends[0], y, ends[1] - ends[0], high, f'fill="{colour}"')


def _rect(layer: Layer, row: Row, box: Box) -> str:
    assert isinstance(box.x, BandScale) and isinstance(box.y, BandScale)  # noqa: S101 - a cell
    look = f'fill="{row["hue"]}" fill-opacity="{row["strength"]}"'
    wide, high = box.x.step - 2, box.y.step - 2
    x, y = _x(layer, row, box) - wide / 2, _y(layer, row, box) - high / 2
    return rectangle(x, y, wide, high, look)


def _words(layer: Layer, row: Row, box: Box) -> str:
    anchor = {"left": "start", "right": "end"}.get(layer.style.get("align", ""), "middle")
    x = _x(layer, row, box) + layer.style.get("dx", 0)
    slanted = ' font-style="italic"' if "fontStyle" in layer.style else ""
    text = str(row[layer.encoding["text"]["field"]])
    return write(x, _y(layer, row, box) + 4, text, anchor=anchor, more=slanted)


def _x(layer: Layer, row: Row, box: Box) -> float:
    return box.x.at(row[layer.encoding["x"]["field"]])


def _y(layer: Layer, row: Row, box: Box) -> float:
    place = box.y.at(row[layer.encoding["y"]["field"]])
    lanes = layer.encoding.get("yOffset")
    if lanes is None:
        return place
    names: list[str] = lanes["scale"]["domain"]
    beside = names.index(row[lanes["field"]]) - (len(names) - 1) / 2
    return place + beside * _lane_px(layer, box)


def _lane_px(layer: Layer, box: Box) -> float:
    assert isinstance(box.y, BandScale)  # noqa: S101 - lanes are within a row
    lanes: Spec = layer.encoding.get("yOffset", {"scale": {"domain": [""]}})
    return (box.y.step - LANE_GAP_PX) / len(lanes["scale"]["domain"])


def _look(channel: Spec | None, row: Row) -> Any:
    if channel is None:
        return None
    if "value" in channel:
        return channel["value"]
    scale = channel["scale"]
    known = dict(zip(scale["domain"], scale["range"], strict=True))
    return known.get(row.get(channel["field"]), INK.light)


def _head(title: Spec, layers: Sequence[Layer], room: float) -> tuple[list[str], float]:
    """Return title, subtitle and legends, and where the first panel begins."""
    parts: list[str] = []
    y = 8.0
    for part in wrap_px(title.get("text", ""), room, TITLE_PX, bold=True):
        y += LINE_PX
        parts.append(write(PAD_PX, y - 2, part, weight="bold", size=TITLE_PX))
    for part in wrap_px(title.get("subtitle", ""), room):
        y += LINE_PX
        parts.append(write(PAD_PX, y - 2, part, fill=SOFT.light))
    y += 6 if parts else 0
    x = 0.0
    for said, items in _legends(layers):
        entries = [("", said, ""), *items]
        for symbol, text, kind in entries:
            wide = text_px(text) + (26 if kind == "line" else 16 if kind else 0)
            if x and x + wide > room:
                x, y = 0.0, y + LINE_PX + 2
            start = PAD_PX + x
            if kind:
                parts.append(symbol.replace("@x", px(start)).replace("@y", px(y + 8)))
            fill = INK.light if kind else SOFT.light
            parts.append(write(PAD_PX + x + wide - text_px(text), y + 12, text, fill=fill))
            x += wide + 14
        x += 10
    return parts, y + (LINE_PX + 10 if x else 4)


def _legends(layers: Sequence[Layer]) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Yield each legend's title and its entries: symbol (at @x, @y), text, and how wide it is."""
    channels: dict[str, Spec] = {}
    for layer in layers:
        for name in ("color", "strokeDash"):
            channel = layer.encoding.get(name, {})
            if "field" in channel and channel.get("scale"):
                channels.setdefault(name, channel)
    shapes = next((layer.encoding["shape"] for layer in layers if "shape" in layer.encoding), None)
    kinds = {layer.kind for layer in layers}
    for name, channel in channels.items():
        entries = []
        for value, look in zip(channel["scale"]["domain"], channel["scale"]["range"], strict=True):
            row = {channel["field"]: value}
            if name == "color" and "bar" in kinds:
                symbol = f'<rect width="11" height="11" transform="translate(@x,@y)" y="-6" ' \
                         f'fill="{look}"/>'  # fmt: skip
                entries.append((symbol, value, "square"))
                continue
            colour, dash = (look, None) if name == "color" else (INK.light, look)
            symbol = f'<g transform="translate(@x,@y)"><path d="M0,0H20" stroke="{colour}" ' \
                     f'stroke-width="2"{_dashed(dash)}/>'  # fmt: skip
            if name == "color" and "point" in kinds:
                symbol += _symbol(str(_look(shapes, row) or "circle"), 10, 0, colour)
            entries.append((symbol + "</g>", value, "line"))
        yield channel["title"], entries


def _dashed(pattern: list[int] | None) -> str:
    whole = pattern is None or pattern == [1, 0]
    return "" if whole else f' stroke-dasharray="{",".join(map(str, pattern or ()))}"'
