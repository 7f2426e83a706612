from __future__ import annotations

import pytest

from testbed.base.units import format_bytes, format_count, format_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (4.24, "4.2 s"), (59.94, "59.9 s"), (59.96, "1 min 00 s"), (65, "1 min 05 s"),
     (3599.6, "1 h 00 min"), (7380, "2 h 03 min")],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2 << 30, "2.0 GiB"), (3 << 40, "3.0 TiB")],
)
def test_sizes(count: int, text: str) -> None:
    assert format_bytes(count) == text


def test_counts_agree_with_their_names() -> None:
    assert [format_count(n, "host") for n in (0, 1, 2)] == ["0 hosts", "1 host", "2 hosts"]
    many = [format_count(n, "request repeats", "requests repeat") for n in (1, 2)]
    assert many == ["1 request repeats", "2 requests repeat"]


def test_impossible_quantities_are_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        format_duration(-1)
    with pytest.raises(ValueError, match="nan"):
        format_duration(float("nan"))
    with pytest.raises(ValueError, match="-1"):
        format_bytes(-1)
