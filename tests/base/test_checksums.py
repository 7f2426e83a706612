"""Checksums of a folder: what they find, and when a cheap look is enough."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.base import checksums
from testbed.base.checksums import (
    CHECKSUMS_FILE,
    damaged_files,
    damaged_since,
    read_stamps,
    write_checksums,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "built"
    (made / "bodies").mkdir(parents=True)
    (made / "page.har").write_text("{}")
    (made / "bodies" / "a b").write_bytes(b"body")
    write_checksums(made)
    return made


def test_a_folder_as_it_was_made(folder: Path) -> None:
    assert damaged_files(folder) == ()


def test_every_file_that_is_not_as_listed_is_named(folder: Path) -> None:
    (folder / "page.har").unlink()
    (folder / "bodies" / "a b").write_bytes(b"bodY")
    (folder / "z").touch()
    assert damaged_files(folder) == ("bodies/a b", "page.har", "z")


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe"])
def test_without_a_list_nothing_is_known(folder: Path, content: bytes | None) -> None:
    (folder / CHECKSUMS_FILE).unlink()
    if content is not None:
        (folder / CHECKSUMS_FILE).write_bytes(content)
    assert damaged_files(folder) == (CHECKSUMS_FILE,)


def test_a_link_that_leads_nowhere_is_damage(folder: Path) -> None:
    (folder / "page.har").unlink()
    (folder / "page.har").symlink_to("/nowhere/at/all")
    assert damaged_files(folder) == (CHECKSUMS_FILE,)


def test_nothing_is_read_while_nothing_changes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamps = read_stamps(folder)
    monkeypatch.delattr(checksums, "file_sha256")
    assert damaged_since(folder, stamps) == ()


def await_later(moment_ns: int, clock: Path) -> None:
    """Wait for the next time stamp of a file: older kernels make one every few milliseconds."""
    clock.write_text("")
    while clock.stat().st_ctime_ns <= moment_ns:
        clock.write_text("")


def test_what_was_written_and_has_its_old_time_is_found(folder: Path) -> None:
    stamps, body = read_stamps(folder), folder / "bodies" / "a b"
    before = body.stat()
    await_later(before.st_ctime_ns, folder.with_name("clock"))
    body.write_bytes(b"bodY")
    os.utime(body, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert damaged_since(folder, stamps) == ("bodies/a b",)


def test_a_look_that_shows_a_change_is_followed_by_digests(folder: Path) -> None:
    stamps = read_stamps(folder)
    await_later((folder / "page.har").stat().st_ctime_ns, folder.with_name("clock"))
    (folder / "page.har").chmod(0o600)
    assert read_stamps(folder) != stamps
    assert damaged_since(folder, stamps) == ()


def test_a_folder_that_has_gone_is_damaged(folder: Path) -> None:
    stamps = read_stamps(folder)
    folder.rename(folder.with_name("elsewhere"))
    assert damaged_since(folder, stamps) == (CHECKSUMS_FILE,)
