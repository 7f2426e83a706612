"""The server's processor in real time, as /proc/stat counts it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.base.errors import MissingError
from testbed.kinds.server_load.processors import choose_processors, read_ticks, watching


def test_ticks_of_one_processor(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text(
        "cpu  9 9 9 9 9 9 9 9 0 0\n"
        "cpu1 10 1 5 100 20 2 3 7 0 0\n"
        "cpu11 1 1 1 1 1 1 1 1 0 0\n"
        "intr 5\n"
    )
    assert read_ticks(1, stat) == (21, 148)


def test_server_and_generator_have_one_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3, 1, 2})
    chosen = choose_processors()
    assert (chosen.server, chosen.generator) == (3, 1)


def test_one_processor_is_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0})
    with pytest.raises(MissingError, match="two processors"):
        choose_processors()


def test_a_share_is_a_share() -> None:
    with watching(min(os.sched_getaffinity(0)), 0.0, 0.05) as busy_pct:
        pass
    assert 0.0 <= busy_pct.result() <= 100.0
