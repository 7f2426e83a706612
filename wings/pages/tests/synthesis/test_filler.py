"""Filler and gzip members: text in two exact sizes at once, which zlib reads."""

from __future__ import annotations

import json
import re
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wings.pages.synthesis.deflate import Piece, gzip_size, write_gzip
from wings.pages.synthesis.filler import (
    BLOCK,
    HTML,
    JSON,
    Fill,
    Template,
    TooSmallError,
    filler,
    write_gzipped,
    write_identity,
)

TEMPLATE: Template = [b"<one>", Fill(0.25), b"<two>", Fill(0.75), b"<three>"]
COMMENT = re.compile(rb"<!--[A-Za-z0-9._]*-->| *")


@given(st.integers(17, 5000))
def test_identity_is_as_long_as_asked(size: int) -> None:
    body = write_identity(TEMPLATE, HTML, size, "seed")
    assert len(body.data) == body.decoded_size == size
    assert not body.gzipped
    fills = re.fullmatch(rb"<one>(.*)<two>(.*)<three>", body.data)
    assert fills is not None
    assert all(COMMENT.fullmatch(fill) for fill in fills.groups())


@given(st.integers(100, 200_000), st.data())
def test_both_sizes_are_exact(decoded: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(max(80, decoded // 120 + 60), decoded + 60))
    body = write_gzipped(TEMPLATE, HTML, decoded, size, "seed")
    text = zlib.decompress(body.data, 31)
    assert (len(body.data), len(text), body.decoded_size) == (size, decoded, decoded)
    fills = re.fullmatch(rb"<one>(.*)<two>(.*)<three>", text)
    assert fills is not None
    assert all(COMMENT.fullmatch(fill) for fill in fills.groups())


def test_parts_stand_at_their_share_of_the_compressed_bytes_too() -> None:
    body = write_gzipped(TEMPLATE, HTML, 200_000, 40_000, "seed")
    arrived = zlib.decompressobj(31).decompress(body.data[:10_000])
    assert zlib.decompress(body.data, 31).index(b"<two>") == pytest.approx(50_000, rel=0.01)
    assert len(arrived) == pytest.approx(50_000, rel=0.03)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 50, 5000])
def test_json_filler_parses(size: int) -> None:
    json.loads(write_identity([Fill()], JSON, size, "seed").data)


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 50])
def test_script_filler_is_a_comment_or_blank(size: int) -> None:
    data = write_identity([Fill()], BLOCK, size, "seed").data
    assert re.fullmatch(rb" *|/\*[A-Za-z0-9._]+\*/", data)


def test_fixed_parts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(TooSmallError, match="17 bytes of fixed text, 16 recorded"):
        write_identity(TEMPLATE, HTML, 16, "seed")
    with pytest.raises(TooSmallError, match="cannot be compressed"):
        write_gzipped(TEMPLATE, HTML, 1_000_000, 3000, "seed")


def test_filler_depends_on_its_seed_alone() -> None:
    assert filler("amazon/1", 12) == filler("amazon/1", 100)[:12]
    assert filler("amazon/1", 100) != filler("amazon/2", 100)


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
