from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from analysis.words import (
    axis_value,
    axis_word,
    clean,
    count,
    lines,
    name_axes,
    number,
    seconds,
    signed,
)


def test_numbers() -> None:
    assert number(None, 1) == "\u2013"
    assert number(-2.25, 1) == "\u22122.2"
    assert number(-0.04, 1) == "0.0"
    assert signed(0.04, 1) == "0.0"
    assert signed(1.96, 1) == "+2.0"
    assert signed(-1.0, 0) == "\u22121"
    assert seconds(1680.6) == "1.681"
    assert count(1, "load") == "1 load"
    assert count(1200, "load") == "1,200 loads"


def test_a_condition_in_words() -> None:
    axes = {"page": "wsj", "client": "graph", "rtt_ms": 20.0, "tfo": True}
    assert name_axes(axes, ("page", "rtt_ms", "tfo")) == "wsj, RTT 20 ms, fast open on"
    assert name_axes(axes, ("client", "rtt_ms"), bare=("client", "rtt_ms")) == "graph, 20 ms"
    assert name_axes(axes, ("page", "cookies")) == "wsj, cookies \u2013"


def test_axes_have_units() -> None:
    assert axis_value("rtt_ms", 20.0) == "20 ms"
    assert axis_value("tfo", True) == "on"
    assert axis_value("requests_per_connection", None) == "any"
    assert axis_value("loss_pct", 0.5) == "0.5 %"
    assert axis_value("protocol", "h1") == "HTTP/1.1"
    assert axis_value("protocol", "as-recorded") == "as recorded"
    assert axis_value("congestion_control", "h1") == "h1"
    assert [axis_word(n) for n in ("rtt_ms", "tls_version", "protocol")] == [
        "RTT", "TLS", "protocol",
    ]  # fmt: skip
    assert axis_value("page", "a\x1b[31m") == "a\ufffd[31m"


@given(st.text())
def test_clean_text_has_no_control_characters(text: str) -> None:
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs") for c in clean(text))
    assert clean(clean(text)) == clean(text)
    assert len(lines(text).splitlines()) <= len(text.splitlines())


def test_conditions_are_named_by_their_axes() -> None:
    axes = {"page": "amazon", "rtt_ms": 20.0, "tfo": True}
    assert name_axes(axes, axes) == "amazon, RTT 20 ms, fast open on"
    assert name_axes(axes, ("page", "rtt_ms"), bare=("page", "rtt_ms")) == "amazon, 20 ms"
