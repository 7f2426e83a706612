"""A list that a program waits for, and programs that never read it."""

from __future__ import annotations

import time
from pathlib import Path

from testbed.base import proc
from testbed.client.process import Feed


def test_the_reader_gets_all_of_it_and_the_end(tmp_path: Path) -> None:
    text = "http://www.page.test/ä\n" * 9000  # more than a pipe holds
    feed, copy = Feed(tmp_path / "list"), tmp_path / "copy"
    before = time.time_ns()
    with (
        copy.open("wb") as output,
        proc.started(["cat", str(tmp_path / "list")], stdout=output) as child,
    ):
        feed.begin(child, before + 1_000_000, text)
        assert child.wait(60) == 0
    assert copy.read_text("utf-8") == text
    assert feed.start is not None
    assert feed.start.realtime_ns >= before + 1_000_000


def test_a_program_that_ends_without_reading(tmp_path: Path) -> None:
    feed = Feed(tmp_path / "list")
    with proc.started(["false"]) as child:
        feed.begin(child, None, "x\n")
    assert feed.start is None


def test_a_program_that_goes_away_while_it_reads(tmp_path: Path) -> None:
    feed = Feed(tmp_path / "list")
    with proc.started(["head", "-c", "1", str(tmp_path / "list")]) as child:
        feed.begin(child, None, "x\n" * 200_000)
    assert feed.start is None


def test_what_is_ahead_comes_before_the_moment(tmp_path: Path) -> None:
    feed, copy = Feed(tmp_path / "list"), tmp_path / "copy"
    seen: list[str] = []

    def restart() -> None:
        deadline = time.monotonic() + 60
        while copy.read_text() != "order\n" and time.monotonic() < deadline:
            time.sleep(0.001)
        seen.append(copy.read_text())

    with (
        copy.open("wb") as output,
        proc.started(["cat", str(tmp_path / "list")], stdout=output) as child,
    ):
        feed.begin(child, time.time_ns(), "go\n", ahead="order\n", restart=restart)
        assert child.wait(60) == 0
    assert seen == ["order\n"]
    assert copy.read_text() == "order\ngo\n"
