"""Pictures of every size: whole, with padding where decoders skip it (see also test_browser)."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wings.pages.synthesis import media

NOISE = bytes(range(1, 256)) * 1200
MAKERS: dict[str, tuple[Callable[[int, bytes], bytes], int]] = {
    "gif": (media.make_gif, media.MIN_GIF_BYTES),
    "png": (media.make_png, media.MIN_PNG_BYTES),
    "jpeg": (media.make_jpeg, media.MIN_JPEG_BYTES),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_every_size_near_the_edges(kind: str) -> None:
    make, smallest = MAKERS[kind]
    for size in (*range(smallest, smallest + 600), 65_535 + smallest, 65_537 + smallest, 200_000):
        assert len(make(size, NOISE)) == size


@pytest.mark.parametrize("kind", MAKERS)
def test_less_than_the_smallest_is_refused(kind: str) -> None:
    make, smallest = MAKERS[kind]
    with pytest.raises(ValueError, match="at least"):
        make(smallest - 1, NOISE)


@given(st.integers(media.MIN_GIF_BYTES, 2000))
def test_gif_blocks_lead_to_the_trailer(size: int) -> None:
    data = media.make_gif(size, NOISE)
    at = 6 + 7 + 6
    while data[at] != 0x3B:
        at += 2 if data[at] == 0x21 else 11
        while data[at]:
            at += 1 + data[at]
        at += 1
    assert at == size - 1


@given(st.integers(media.MIN_PNG_BYTES, 2000))
def test_png_chunks_check_and_hold_the_pixels(size: int) -> None:
    data = media.make_png(size, NOISE)
    at, width = 8, 0
    kinds: list[bytes] = []
    while at < size:
        length, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        content = data[at + 8 : at + 8 + length]
        check = int.from_bytes(data[at + 8 + length : at + 12 + length], "big")
        assert zlib.crc32(kind + content) == check
        if kind == b"IHDR":
            width = int.from_bytes(content[:4], "big")
        if kind == b"IDAT":
            assert zlib.decompress(content) == b"\0" + b"\xff" * width
        kinds.append(kind)
        at += 12 + length
    assert at == size
    assert [kind for kind in kinds if kind != b"ffPd"] == [b"IHDR", b"IDAT", b"IEND"]


@given(st.integers(media.MIN_JPEG_BYTES, 140_000))
def test_jpeg_segments_lead_to_the_scan(size: int) -> None:
    data = media.make_jpeg(size, NOISE)
    at = 2
    kinds: list[int] = []
    while not kinds or kinds[-1] != 0xDA:
        assert data[at] == 0xFF
        while data[at] == 0xFF:
            at += 1
        kinds.append(data[at])
        at += 1 + int.from_bytes(data[at + 1 : at + 3], "big")
    assert [kind for kind in kinds if kind != 0xFE] == [0xDB, 0xC0, 0xC4, 0xC4, 0xDA]
    assert data[at:] == b"\x3f\xff\xd9"
