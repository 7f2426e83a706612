"""Attributes of routes: as messages carry them, in the words in which they are read back."""

from __future__ import annotations

from testbed.lab.routes import describe_metrics, encode_metrics
from testbed.lab.rtnetlink import attributes, number_of, text_of


def test_attributes_have_the_numbers_of_the_kernel() -> None:
    asked: dict[str, int | str] = {"congctl": "reno", "quickack": 1, "initrwnd": 20, "initcwnd": 3,
                                   "rto_min_ms": 50}  # fmt: skip
    found = attributes(encode_metrics(asked))
    # RTAX_LOCK, _INITCWND, _RTO_MIN, _INITRWND, _QUICKACK, _CC_ALGO of rtnetlink.h, in order
    assert list(found) == [1, 11, 13, 14, 15, 16]
    assert [number_of(found[kind]) for kind in (1, 11, 13, 14, 15)] == [1 << 13, 3, 50, 20, 1]
    assert text_of(found[16]) == "reno"
    assert describe_metrics(asked) == (
        "lock 8192 initcwnd 3 rto_min 50 initrwnd 20 quickack 1 congctl reno"
    )


def test_what_the_kernel_does_not_keep_is_not_asked_of_it() -> None:
    assert encode_metrics({"quickack": 0}) == encode_metrics({}) == b""
    assert describe_metrics({"quickack": 0, "initcwnd": 10}) == "initcwnd 10"
