"""The trend page: drawings that say what the numbers say, in one file that loads nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analysis.regression.history.database import open_history
from analysis.regression.history.page import HEIGHT, MARGIN, WIDTH, draw_line, write_trend
from analysis.regression.history.runs import KeptRun, keep_run
from analysis.regression.history.trend import Break, Line, Point
from testbed.base.errors import ConfigurationError
from tests.analysis.regression.history.nights import night, with_part

RUN = KeptRun(1, "2026-11-01T02:17:00+00:00", "small", "Small", "12" * 20, "ab", "virtual", "7.3",
          None, None)  # fmt: skip


def points(*medians: float | None, verdict: str | None = None) -> tuple[Point, ...]:
    return tuple(Point(RUN, 1, value, value, value, {"ok": 1}, verdict) for value in medians)


def test_the_largest_is_at_the_top_and_the_last_at_the_right() -> None:
    drawing = draw_line(Line({}, points(1000.0, 3000.0, 2000.0)), ())
    assert drawing is not None
    assert [dot.x for dot in drawing.dots] == [MARGIN, WIDTH / 2, WIDTH - MARGIN]
    assert [dot.y for dot in drawing.dots] == [HEIGHT - MARGIN, MARGIN, HEIGHT / 2]
    assert (drawing.low_ms, drawing.high_ms) == (1000.0, 3000.0)


def test_what_hardly_moves_is_drawn_flat() -> None:
    drawing = draw_line(Line({}, points(1000.0, 1000.01, 1000.0)), ())
    assert drawing is not None
    heights = [dot.y for dot in drawing.dots]
    assert max(heights) - min(heights) < 0.1
    assert drawing.high_ms - drawing.low_ms == pytest.approx(20.0, rel=0.01)


def test_a_line_does_not_bridge_a_gap() -> None:
    drawing = draw_line(Line({}, points(1.0, 2.0, None, 3.0, 2.0)), ())
    assert drawing is not None
    assert len(drawing.paths) == 2
    assert [dot.kind for dot in drawing.dots] == ["plain", "plain", "missing", "plain", "plain"]
    assert draw_line(Line({}, points(None, None)), ()) is None


def test_a_spread_is_a_band() -> None:
    wide = tuple(Point(RUN, 5, 10.0, 8.0, 13.0, {"ok": 5}, None) for _ in range(2))
    drawing = draw_line(Line({}, wide), ())
    assert drawing is not None
    assert len(drawing.bands) == 1
    assert (drawing.low_ms, drawing.high_ms) == (8.0, 13.0)


def test_a_change_of_environment_stands_between_two_runs() -> None:
    drawing = draw_line(Line({}, points(1.0, 1.0, 1.0)), (Break(1, RUN, ("kernel",)),))
    assert drawing is not None
    assert list(drawing.marks) == [(MARGIN + WIDTH / 2) / 2]


def test_the_page(tmp_path: Path) -> None:
    history, page = tmp_path / "history.sqlite", tmp_path / "out.html"
    keep_run(history, night(tmp_path / "one", 1), tmp_path / "one")
    newer = with_part("package.nginx", "1.26.0-1")
    keep_run(history, night(tmp_path / "two", 2, 1.2, newer, failed=2), tmp_path / "one")
    keep_run(history, night(tmp_path / "six", 3, version="6.1"), None)
    assert write_trend(history, page) == f"{page}: 3 runs, 16 cells, 2 lanes"
    text = page.read_text()
    assert text.count('<svg class="trend"') == 16
    assert text.count('class="dot different"') == 7
    assert text.count('class="missing"') == 1
    assert "package.nginx: 1.22.1-9+deb12u2 → 1.26.0-1" in text
    assert "A &lt;b&gt;small&lt;/b&gt; sweep" in text
    assert not re.search(r"<script|src=|href=\"(?!#)|url\(", text)
    # What needs a look comes first.
    assert text.index("✗ different") < text.index("✓ same")


def test_an_empty_history_makes_no_page(tmp_path: Path) -> None:
    history = tmp_path / "history.sqlite"
    with open_history(history, create=True):
        pass
    with pytest.raises(ConfigurationError, match="no run yet"):
        write_trend(history, tmp_path / "out.html")
    assert not (tmp_path / "out.html").exists()
