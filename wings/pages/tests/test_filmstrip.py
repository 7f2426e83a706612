"""Frames become visual progress and Speed Index; a film's packets are held against its twin's."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from wings.pages.filmstrip import read_filmstrip


def frame(folder: Path, at_ms: float, grey: int, rows: int) -> None:
    """White, with ``rows`` of ten in ``grey``."""
    pixels = np.full((10, 10, 3), 255, np.uint8)
    pixels[:rows] = grey
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 10, 10, 8, 2, 0, 0, 0))
    png = b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    (folder / f"frame-{at_ms:09.2f}.png").write_bytes(png)


def test_speed_index(tmp_path: Path) -> None:
    for at_ms, rows in ((0.0, 0), (600.0, 2), (1000.0, 8), (1500.0, 8), (2000.0, 8)):
        frame(tmp_path, at_ms, 0, rows)
    film = read_filmstrip(tmp_path)
    assert film is not None
    assert film.progress == pytest.approx((0, 0.25, 1, 1, 1))
    assert film.drawn_ms == (0, 600, 1000, 1500, 2000)
    # 600 ms of nothing, 400 ms without three quarters.
    assert film.speed_index_ms == pytest.approx(600 + 0.75 * 400)
    assert film.complete_ms == 1000


def test_a_page_that_shows_nothing_is_complete_at_once(tmp_path: Path) -> None:
    assert read_filmstrip(tmp_path) is None
    frame(tmp_path, 0.02, 0, 0)
    film = read_filmstrip(tmp_path)
    assert film is not None
    assert (film.complete_ms, film.progress) == (0.02, (1.0,))


def test_what_goes_away_again_is_no_progress(tmp_path: Path) -> None:
    for at_ms, grey, rows in ((0, 0, 0), (100, 90, 10), (200, 0, 5)):
        frame(tmp_path, at_ms, grey, rows)
    film = read_filmstrip(tmp_path)
    assert film is not None
    assert film.progress == pytest.approx((0, 0.5, 1))  # the white had to go from one half
