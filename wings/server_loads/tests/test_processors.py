"""The server's processor in real time, as /proc/stat counts it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.base.errors import MissingError
from wings.server_loads.processors import (
    choose_processors,
    mask_of,
    read_ticks,
    watching,
)


def test_ticks_of_one_processor(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text(
        "cpu  9 9 9 9 9 9 9 9 0 0\n"
        "cpu1 10 1 5 100 20 2 3 7 0 0\n"
        "cpu11 1 1 1 1 1 1 1 1 0 0\n"
        "intr 5\n"
    )
    assert read_ticks([1], stat) == (21, 148)
    assert read_ticks([1, 11], stat) == (26, 156)


def test_server_and_generator_have_one_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3, 1, 2})
    chosen = choose_processors(1)
    assert (chosen.server, chosen.generator) == ((3,), 1)
    assert choose_processors(2).server == (2, 3)


@pytest.mark.parametrize(
    ("here", "workers", "said"),
    [
        ({0}, 1, "a server of 1 worker needs 2 processors in real time; here is 1;"),
        ({0, 1}, 2, "a server of 2 workers needs 3 processors in real time; here are 2;"),
    ],
)
def test_too_few_processors(
    monkeypatch: pytest.MonkeyPatch, here: set[int], workers: int, said: str
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: here)
    with pytest.raises(MissingError, match=f"{said} lower workers, or use the virtual kernel"):
        choose_processors(workers)


def test_a_mask_has_a_bit_for_each() -> None:
    assert mask_of([0, 3]) == 0b1001


def test_a_share_is_a_share() -> None:
    with watching([min(os.sched_getaffinity(0))], 0.0, 0.05) as busy_pct:
        pass
    assert 0.0 <= busy_pct.result() <= 100.0
