"""Waiting for an idle machine: bounded, and told."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.kernel import idle
from testbed.kernel.idle import await_idle


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How busy the machine is, look by look; the last one stays."""
    looks: list[float] = []

    def read(*_asked: object) -> Iterator[float]:
        while len(looks) > 1:
            yield looks.pop(0)
        while True:
            yield looks[0]

    reading = read()
    monkeypatch.setattr(idle, "_read_busy", lambda *_asked: next(reading))
    return looks


@pytest.fixture(autouse=True)
def heard(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(logging.getLogger("testbed"), "propagate", True)
    caplog.set_level(logging.INFO)


def test_an_idle_machine_is_not_waited_for(
    busy: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    busy += [3.0]
    assert await_idle(threading.Event())
    assert caplog.messages == []


def test_a_busy_machine_is(busy: list[float], caplog: pytest.LogCaptureFixture) -> None:
    busy += [80.0, 70.0, 5.0]
    assert await_idle(threading.Event())
    (message,) = caplog.messages
    assert message.startswith("waiting for an idle machine (other processes take 80 %")
    assert busy == [5.0]


def test_but_not_for_ever(busy: list[float], caplog: pytest.LogCaptureFixture) -> None:
    busy += [90.0]
    assert await_idle(threading.Event(), look_s=1.0, patience_s=5.0)
    assert caplog.messages[-1] == "the machine is still busy (90 %): going on"


def test_an_interrupt_ends_the_wait(busy: list[float]) -> None:
    busy += [90.0]
    cancel = threading.Event()
    cancel.set()
    assert not await_idle(cancel)


def test_a_real_look(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu  10 0 0 10 0 0 0 0 0 0\n")
    (tmp_path / "loadavg").write_text("0 0 0 1/1 1\n")
    assert await_idle(threading.Event(), look_s=0.0, proc=tmp_path)
