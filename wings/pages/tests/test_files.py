"""The pages that are ours: one file of an exact size, and the test website."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from testbed.archive.reading import Archive
from testbed.client.graph_process.discovery import build_graph

Built = Callable[[str], Archive]
KIB = 1024


@pytest.mark.parametrize(
    ("name", "size"), [("file-60k", 61_440), ("file-256k", 262_144), ("file-1m", 1_048_576)]
)
def test_a_file_is_one_body_of_its_size_as_it_is(built: Built, name: str, size: int) -> None:
    (entry,) = built(name).entries
    assert (entry.body_size, entry.decoded_size) == (size, size)
    assert "Content-Encoding" not in dict(entry.headers)
    assert entry.body is not None
    assert entry.body.stat().st_size == size


def test_the_website_is_a_main_file_and_six_others_on_one_host(built: Built) -> None:
    archive = built("tum-website")
    assert len(archive.hosts) == 1
    assert [entry.body_size // KIB for entry in archive.entries] == [30, 10, 20, 30, 40, 50, 60]
    assert all(entry.body_size % KIB == 0 for entry in archive.entries)
    assert all("Content-Encoding" not in dict(entry.headers) for entry in archive.entries)


def test_the_six_become_known_when_the_main_file_has_arrived(built: Built) -> None:
    entries = [
        {
            "url": entry.url, "method": entry.method, "mime": entry.mime,
            "tls": False, "host": entry.host, "port": entry.port, "target": entry.path,
            "body_size": entry.body_size, "request_body_size": 0, "revalidates": False,
            "marks": list[str](),
            "parent": entry.parent, "how": entry.how,
            "gap_ms": entry.gap_ms, "dur_ms": entry.dur_ms,
        }
        for entry in built("tum-website").entries
    ]  # fmt: skip
    (root,) = build_graph(entries, "recorded")
    assert [share for share, _ in root.on_body] == [1.0] * 6
    assert (root.on_headers, root.on_end) == ([], [])
