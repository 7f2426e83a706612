from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from analysis.plot.rows import column_title, decimals, panel_text, read_rows, value_text


@pytest.mark.parametrize(("name", "title"), [
    ("rtt_ms", "RTT (ms)"), ("plt_ms", "Page load time (ms)"), ("plt_s", "Page load time (s)"),
    ("initcwnd_segments", "Initial window (segments)"), ("down_kbit", "Down (kbit/s)"),
    ("saved_by_reuse_pct", "Saved by reuse (%)"), ("tfo", "Fast Open"),
    ("connections", "Connections"),
    ("Latency without handshake (ms)", "Latency without handshake (ms)"),
])  # fmt: skip
def test_titles_have_words_and_units(name: str, title: str) -> None:
    assert column_title(name) == title


def test_values_below_a_title_have_no_unit() -> None:
    assert (value_text("rtt_ms", 20.0), value_text("tfo", True)) == ("20", "on")
    assert value_text("requests_per_connection", None) == "any"


def test_headings_of_panels_stand_alone() -> None:
    assert panel_text("rtt_ms", 20.0) == "RTT 20 ms"
    assert panel_text("tfo", False) == "Fast Open off"
    assert panel_text("page", "amazon") == "amazon"


def test_about_three_digits() -> None:
    assert [decimals(values) for values in ([1831.4, 2.0], [18.31], [-1.5, 0.2], [2.0, 8.0])] == [
        0, 1, 2, 0,
    ]  # fmt: skip


def test_a_frame_and_plain_rows_are_read_alike() -> None:
    rows: list[dict[str, Any]] = [
        {"a": 1, "b": 2.5, "c": True},
        {"a": None, "b": float("nan"), "c": False},
    ]
    frame = pd.DataFrame(rows).astype({"a": "Int64", "c": "boolean"})
    expected = [{"b": 2.5, "a": 1, "c": True}, {"b": None, "a": None, "c": False}]
    assert read_rows(rows, ("b", "a", None, "c"), "x") == expected
    found = read_rows(frame, ("b", "a", None, "c"), "x")
    assert found == expected
    assert [type(value) for value in found[0].values()] == [float, int, bool]
