"""gzip members: zlib reads them, and their sizes are what was asked."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wings.pages.synthesis.deflate import Piece, gzip_size, write_gzip

pieces = st.lists(
    st.builds(
        Piece,
        st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1).map(str.encode),
        st.just(0) | st.integers(3, 2000),
    ),
    max_size=12,
)


def expand(parts: list[Piece]) -> bytes:
    return b"".join(part.text + part.text[-1:] * part.run for part in parts)


def size_of(parts: list[Piece]) -> int:
    return gzip_size(sum(len(part.text) for part in parts), [part.run for part in parts])


@given(pieces, st.integers(0, 40))
def test_any_size_from_the_smallest_up(parts: list[Piece], spare: int) -> None:
    size = size_of(parts) + spare
    member = write_gzip(parts, size)
    assert len(member) == size
    assert zlib.decompress(member, 31) == expand(parts)


@pytest.mark.parametrize("run", [3, 4, 10, 11, 18, 257, 258, 259, 260, 261, 516, 517, 518, 100_000])
def test_runs_at_the_edges_of_match_lengths(run: int) -> None:
    parts = [Piece(b"ab", run), Piece(b"c")]
    assert zlib.decompress(write_gzip(parts, size_of(parts)), 31) == b"ab" + b"b" * run + b"c"


def test_a_run_costs_less_than_a_byte_in_a_hundred() -> None:
    assert size_of([Piece(b"a", 100_000)]) < 700


def test_too_small_a_size_is_refused() -> None:
    parts = [Piece(b"hello")]
    with pytest.raises(ValueError, match="1 bytes too many"):
        write_gzip(parts, size_of(parts) - 1)


def test_no_time_stamp_and_no_machine_in_the_header() -> None:
    assert write_gzip([Piece(b"a")], 21)[:10] == bytes((31, 139, 8, 0, 0, 0, 0, 0, 0, 255))
