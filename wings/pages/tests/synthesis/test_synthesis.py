"""The committed pages' bodies: exact sizes, valid contents, the recorded structure."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable

import pytest

from testbed.archive.reading import Archive, Entry
from wings.pages.table import ResourceRow, read_table
from wings.pages.tests.conftest import NAMES, PAGES

Built = Callable[[str], Archive]
MAGIC = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8", "image/gif": b"GIF89a"}

pytestmark = pytest.mark.parametrize("name", NAMES)


def paired(name: str, archive: Archive) -> list[tuple[ResourceRow, Entry]]:
    rows = read_table(PAGES / name / "resources.csv")
    return list(zip(rows, archive.entries, strict=True))


def decoded(entry: Entry) -> bytes:
    data = entry.body.read_bytes() if entry.body else b""
    gzipped = ("Content-Encoding", "gzip") in entry.headers
    return zlib.decompress(data, 31) if gzipped else data


def test_transferred_bytes_are_the_recorded_ones(built: Built, name: str) -> None:
    for row, entry in paired(name, built(name)):
        assert (row.id, row.status) == (entry.id, entry.status)
        assert entry.transfer_bytes == row.transfer_bytes
        assert entry.headers_size is not None
        assert entry.headers_size is not None
        assert 330 <= entry.headers_size <= 480


def test_heads_are_480_bytes_unless_the_body_needed_more(built: Built, name: str) -> None:
    for _, entry in paired(name, built(name)):
        if entry.headers_size != 480:
            # All of the body is fixed text: no byte was taken from the head in vain.
            assert b"/*" not in decoded(entry) and b"<!--" not in decoded(entry)


def test_text_decodes_to_the_recorded_size(built: Built, name: str) -> None:
    for row, entry in paired(name, built(name)):
        if row.body_bytes is not None and not row.mime.startswith("image/"):
            assert entry.headers_size is not None
            assert entry.decoded_size == row.body_bytes or entry.headers_size < 480
        assert len(decoded(entry)) == entry.decoded_size


def test_contents_are_what_their_types_say(built: Built, name: str) -> None:
    for row, entry in paired(name, built(name)):
        data = decoded(entry)
        if not data or row.status != 200:
            continue
        if row.mime in MAGIC:
            assert data.startswith(MAGIC[row.mime])
        elif row.mime == "application/json":
            json.loads(data)
        elif row.mime == "text/html" and len(data) >= 15:
            assert data.startswith(b"<!doctype html>")
        elif row.mime == "text/css":
            assert data.count(b"{") == data.count(b"}")
            assert data.startswith((b"/*", b"@import", b".r"))


def test_parents_and_depths_are_the_recorded_ones(built: Built, name: str) -> None:
    by_id = {entry.id: entry for entry in built(name).entries}
    for row, entry in paired(name, built(name)):
        if row.parent is None:
            assert (entry.parent, entry.depth, entry.how) == (None, 0, "root")
            continue
        parent = by_id[row.parent]
        assert (entry.parent, entry.depth) == (parent.url, parent.depth + 1)
        assert (entry.gap_ms, entry.start_ms, entry.dur_ms) == (row.gap_ms, row.start_ms,
                                                                row.dur_ms)  # fmt: skip


def test_most_objects_are_named_by_their_recorded_parent(built: Built, name: str) -> None:
    moved = [entry.id for entry in built(name).entries if entry.carrier != entry.parent]
    expected = {"nytimes": ["44", "45", "46"], "wsj": ["110", "120", "121", "124", "127"]}
    assert moved == expected.get(name, [])
