"""Openings of clients: their text, and which conditions have one."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from testbed.model import Condition, LinkSpec, Opening, Trial, parse_opening

USUAL = Condition("page", "chromium")


def opening(condition: Condition) -> Opening:
    return Trial(condition, 0, 0, "virtual", "7.3").opening


def test_a_usual_opening_is_the_client_alone() -> None:
    assert opening(USUAL).text == "chromium"
    assert opening(replace(USUAL, link=LinkSpec(ip="6"))).text == "chromium,6"
    assert Opening().text == ""


def test_each_opening_has_a_text_of_its_own() -> None:
    values = product(
        ("chromium", "graph"), ("4", "6", "dual", "dual-broken"), (False, True), (False, True),
        ("browser", "x25519", "x25519mlkem768"), (False, True),
    )  # fmt: skip
    openings = [Opening(*each) for each in values]  # type: ignore[arg-type]
    assert [parse_opening(each.text) for each in openings] == openings


@pytest.mark.parametrize("text", ["chromium,", "chromium,quick", "chromium,keys,quic", "c,4"])
def test_what_is_no_opening_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no client's opening"):
        parse_opening(text)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [("protocol", "h3", "quic"), ("early_data", True, "early_data"), ("visits", 2, ""),
     ("key_share", "x25519", "x25519"), ("tls_resumption", True, "")],
)  # fmt: skip
def test_what_a_condition_opens_with(name: str, value: object, text: str) -> None:
    changed = opening(replace(USUAL, **{name: value}))  # type: ignore[arg-type]
    assert changed.text == ("chromium" + ("," + text if text else ""))
