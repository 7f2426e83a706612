"""Content codings: undone in bounded memory, made in exact sizes, and understood by the browser."""

from __future__ import annotations

import random
import tracemalloc
import zlib

import brotli  # type: ignore[import-untyped]
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from wings.pages.coding import CodingError, decode, encode, split_codings

CODINGS = ("gzip", "deflate", "br", "zstd")
BOMB_BYTES = 200_000_000


def prose(size: int) -> bytes:
    """Text that compresses about as well as a page does."""
    source = random.Random(size)  # noqa: S311
    words = [bytes(source.choices(b"abcdefghij", k=source.randint(2, 9))) for _ in range(300)]
    return b" ".join(source.choices(words, k=size // 3 + 1))[:size]


def bomb(encoding: str) -> bytes:
    if encoding == "br":
        return bytes(brotli.compress(bytes(BOMB_BYTES), quality=1))
    if encoding == "zstd":
        return zstandard.ZstdCompressor(level=1).compress(bytes(BOMB_BYTES))
    return zlib.compress(bytes(BOMB_BYTES), 1, 31 if encoding == "gzip" else 15)


def plain_streams(data: bytes) -> dict[str, bytes]:
    """What other programs make, by coding."""
    return {
        "gzip": zlib.compress(data, 6, 31), "x-gzip": zlib.compress(data, 6, 31),
        "deflate": zlib.compress(data), "Deflate": zlib.compress(data, 9, -15),
        "br": brotli.compress(data), "zstd": zstandard.compress(data), "identity": data, "": data,
    }  # fmt: skip


def test_every_coding_is_undone() -> None:
    data = prose(100_000)
    for encoding, body in plain_streams(data).items():
        assert decode(body, encoding, len(data)) == data, encoding


def test_lists_are_undone_from_the_last() -> None:
    data = prose(3000)
    assert split_codings("GZIP , identity,br") == ("gzip", "br")
    assert decode(brotli.compress(zlib.compress(data, 6, 31)), "gzip, br", 3000) == data


def test_an_empty_body_is_empty_in_any_coding() -> None:
    assert [decode(b"", encoding, 0) for encoding in CODINGS] == [b""] * 4


def test_all_gzip_members_and_zstd_frames_count_and_what_follows_gzip_does_not() -> None:
    a, b = zlib.compress(b"a", 6, 31), zlib.compress(b"b", 6, 31)
    assert decode(a + b + b"\n", "gzip", 2) == b"ab"
    a, b = zstandard.compress(b"a"), zstandard.compress(b"b")
    assert decode(a + b"\x50\x2a\x4d\x18\x03\0\0\0abc" + b, "zstd", 2) == b"ab"


@pytest.mark.parametrize("encoding", CODINGS)
def test_truncated_and_broken_data_is_an_error(encoding: str) -> None:
    body = plain_streams(prose(5000))[encoding]
    for length in (1, 5, len(body) // 2, len(body) - 1):
        with pytest.raises(CodingError, match="is truncated"):
            decode(body[:length], encoding, 10**6)
    with pytest.raises(CodingError, match="is broken"):
        decode(b"<!doctype html>" * 9, encoding, 10**6)


def test_an_unknown_coding_is_an_error() -> None:
    for act in (decode, encode):
        with pytest.raises(CodingError, match="'sdch' is not one of identity, gzip"):
            act(b"x", "sdch, gzip", 100)


@pytest.mark.parametrize("encoding", CODINGS)
def test_a_bomb_costs_no_memory(encoding: str) -> None:
    body = bomb(encoding)
    tracemalloc.start()
    try:
        with pytest.raises(CodingError, match="more than the limit of 1000000 bytes"):
            decode(body, encoding, 1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 16_000_000
    finally:
        tracemalloc.stop()


def test_a_nested_bomb_is_stopped_inside() -> None:
    body = zlib.compress(bomb("gzip"), 9, 31)
    with pytest.raises(CodingError, match="gzip decodes to more than the limit of 3000 bytes"):
        decode(body, "gzip, gzip", 1000)


def test_a_window_that_browsers_refuse_is_an_error() -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=25)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    body = stream.compress(prose(500)) + stream.flush()
    with pytest.raises(CodingError, match="too much memory"):
        decode(body, "zstd", 10**6)


@pytest.mark.parametrize("encoding", CODINGS)
@pytest.mark.parametrize("size", [0, 1, 400, 30_000])
def test_sizes_are_exact_where_they_can_be_reached(encoding: str, size: int) -> None:
    data = prose(size)
    smallest = len(encode(data, encoding, 0))
    # br: the flush before the metadata costs up to 2 bytes; zstd: frames of 3, blocks from 8 on.
    for extra in (9, 10, 13, 14, 100, 257, 258, 259, 300, 66_000, 70_000):
        body = encode(data, encoding, smallest + extra)
        assert decode(body, encoding, size) == data
        assert len(body) == smallest + extra


def test_gzip_reaches_every_size() -> None:
    data = prose(2000)
    smallest = len(encode(data, "gzip", 0))
    assert {len(encode(data, "gzip", smallest + n)) - n for n in range(300)} == {smallest}


def test_a_size_that_cannot_be_reached_gives_the_nearest() -> None:
    data = prose(2000)
    assert encode(data, "identity", 5000) == data
    smallest = encode(data, "deflate", 0)
    assert len(encode(data, "deflate", len(smallest) // 2)) == len(smallest)


def test_only_the_last_coding_of_a_list_is_padded() -> None:
    body = encode(b"hi" * 9, "gzip, br", 90)
    assert len(body) == 90
    assert decode(body, "gzip, br", 18) == b"hi" * 9


def test_the_same_bytes_again() -> None:
    data = prose(9000)
    for encoding in CODINGS:
        assert encode(data, encoding, 6000) == encode(data, encoding, 6000)


@given(st.sampled_from(CODINGS), st.binary(max_size=2000))
def test_any_bytes_decode_or_are_refused(encoding: str, data: bytes) -> None:
    try:
        assert len(decode(data, encoding, 100_000)) <= 100_000
    except CodingError as error:
        assert str(error)


@given(st.sampled_from(CODINGS), st.binary(max_size=300), st.integers(0, 3000))
def test_whatever_is_encoded_decodes(encoding: str, data: bytes, size: int) -> None:
    assert decode(encode(data, encoding, size), encoding, len(data)) == data
