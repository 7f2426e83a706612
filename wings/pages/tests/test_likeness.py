"""Likeness of replay and recording: functions are counted, pictures read and compared."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from testbed.base.errors import ConfigurationError
from wings.pages.fidelity import FIDELITY_NAME, Seen, make_seen, read_seen, write_seen
from wings.pages.likeness import compare_seen, find_similarity, read_grey, read_png
from wings.pages.redaction.redact import redact
from wings.pages.tests.recordings import make_exchange, make_recording

WIDTH, HEIGHT = 12, 15
PIXELS = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)


def filtered(kind: int) -> bytes:
    """Each line of ``PIXELS`` by a filter of PNG, as section 9.2 of its specification has it."""
    lines = b""
    for y in range(HEIGHT):
        line = bytearray([kind])
        for x in range(WIDTH):
            for c in range(3):
                here = int(PIXELS[y, x, c])
                a = int(PIXELS[y, x - 1, c]) if x else 0
                b = int(PIXELS[y - 1, x, c]) if y else 0
                d = int(PIXELS[y - 1, x - 1, c]) if x and y else 0
                near = min((a, b, d), key=lambda each: abs(a + b - d - each))
                line.append((here - (0, a, b, (a + b) // 2, near)[kind]) % 256)
        lines += bytes(line)
    return lines


def picture(lines: bytes, kind: int = 2, depth: int = 8) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name))

    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, depth, kind, 0, 0, 0)
    packed = zlib.compress(lines)
    parts = chunk(b"IDAT", packed[:9]) + chunk(b"IDAT", packed[9:])  # a picture may have several
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + parts + chunk(b"IEND", b"")


PICTURE = picture(filtered(0))
SEEN = Seen(
    {"http://a.test/a.js": (0, 5, 5, 9), "http://a.test/b.js": (0, 7)}, PICTURE, (48, 60), 2
)


@pytest.mark.parametrize("kind", range(5))
def test_a_picture_by_each_filter(kind: int) -> None:
    assert (read_png(picture(filtered(kind))) == PIXELS).all()


def test_a_picture_of_another_kind() -> None:
    for kind, depth in ((3, 8), (2, 16)):
        with pytest.raises((ValueError, KeyError)):
            read_png(picture(filtered(0), kind, depth))


def test_grey_pictures_are_compared() -> None:
    grey = read_grey(PICTURE)
    assert find_similarity(grey, grey) == pytest.approx(1)
    assert find_similarity(grey, grey[:-1]) == 0
    # Wang and others: other noise is another picture, a little more light nearly the same.
    assert find_similarity(grey, grey[::-1]) < 0.3
    assert 0.9 < find_similarity(grey, grey + 10) < 1


def test_what_devtools_tells_of_scripts() -> None:
    def function(at: int, count: int) -> dict[str, object]:
        return {"ranges": [{"startOffset": at, "endOffset": at + 2, "count": count}]}

    told = [{"url": "http://a.test/a.js#x", "functions": [function(9, 1), function(0, 3)]},
            {"url": "http://a.test/a.js", "functions": [function(4, 0), function(2, 1)]},
            {"url": "http://a.test/idle.js", "functions": [function(4, 0)]},
            {"url": "", "functions": [function(0, 1)]}]  # fmt: skip
    assert make_seen(told, "", (1, 1), 2.0).functions == {"http://a.test/a.js": (0, 2, 9)}


def test_a_replay_that_ran_other_functions() -> None:
    other = replace(SEEN, functions={"http://a.test/a.js": (0, 5, 6), "http://c.test/": (1,)})
    found = compare_seen(SEEN, other)
    assert (found.recorded, found.ran, found.more) == (6, 2, 2)
    assert found.less == (("http://a.test/a.js", 2, 4), ("http://a.test/b.js", 0, 2))
    assert found.lines() == [
        "scripts: 2 of 6 functions ran that ran when it was recorded (33.3 %), and 2 others",
        "less ran of http://a.test/a.js: 2 of 4",
        "less ran of http://a.test/b.js: 0 of 2",
        "pixels: structural similarity 1.000 (1: the same picture)",
    ]


def test_it_is_kept_with_the_page(tmp_path: Path) -> None:
    assert read_seen(tmp_path) is None
    write_seen(tmp_path, SEEN)
    assert read_seen(tmp_path) == SEEN
    for damage in ("{", "[]", '{"window": [1], "functions": {}}'):
        (tmp_path / FIDELITY_NAME).write_text(damage)
        with pytest.raises(ConfigurationError, match="is damaged"):
            read_seen(tmp_path)
    with pytest.raises(ConfigurationError, match="its picture is damaged"):
        compare_seen(replace(SEEN, picture=PICTURE[:60]), SEEN)


def test_scripts_keep_their_redacted_names() -> None:
    url = "https://www.example.com/a.js?token=c2VjcmV0LXNlY3JldC1zZWNyZXQ"
    recording = make_recording(make_exchange(url, b"1", mime="text/javascript"))
    seen = replace(SEEN, functions={url: (0,)})
    redacted = redact(replace(recording, seen=seen))
    assert redacted.seen is not None
    assert redacted.seen.functions == {redacted.exchanges[-1].url: (0,)}
    assert redacted.exchanges[-1].url != url
