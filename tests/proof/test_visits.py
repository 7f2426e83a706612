"""Visits of a load against its capture: how many, how long between them, when each was."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.mechanisms.visits.proof import check_visits
from testbed.model import Condition, PageLoad, RequestTiming, Trial
from testbed.proof.visits import split_visits
from tests.capture.packets import ACK, CLIENT, SERVER, START_NS, Capture
from tests.evidence import found

ADDRESS = [socket.inet_aton(CLIENT)]
ASKED = Condition(page="a", client="chromium", visits=2, idle_s=10.0)
SECOND_MS = 11_000.0


def visit(began_ms: float, start_ms: float = 0.0) -> PageLoad:
    """A visit that begins then, and asks for one thing ``start_ms`` later, for 40 ms."""
    request = RequestTiming("http://a/", 200, start_ms, start_ms + 40.0)
    began_ns = START_NS + round(began_ms * 1e6)
    return PageLoad("chromium", "1", start_ms + 40.0, (request,), began_ns=began_ns)


def load(second_ms: float = SECOND_MS, start_ms: float = 0.0) -> PageLoad:
    return replace(visit(second_ms, start_ms), earlier=(visit(0.0),))


def problems(
    told: PageLoad, folder: Path, *sent_ms: float, asked: Condition = ASKED, real: bool = False
) -> list[str]:
    """What is held against visits whose browser sent packets then."""
    capture = Capture()
    for at_ms in sent_ms:
        capture.add((CLIENT, 2000), (SERVER, 80), ACK, 1, 1, b"", b"", at_ms)
    return found(
        check_visits, condition=asked, kernel="host" if real else "virtual", clients=ADDRESS,
        visits=split_visits(told), capture=capture.read(folder),
    )  # fmt: skip


@pytest.mark.parametrize("start_ms", [0.0, 70.0])
def test_visits_begin_with_the_packet_of_their_first_request(
    tmp_path: Path, start_ms: float
) -> None:
    told = load(start_ms=start_ms)
    sent_ms = SECOND_MS + start_ms + 1
    capture = Capture()
    capture.add((CLIENT, 2000), (SERVER, 80), ACK, 1, 1, b"", b"", sent_ms)
    assert problems(told, tmp_path, 0.0, sent_ms) == []
    _, second = split_visits(told)
    zero_ns = second.zero_ns(capture.read(tmp_path), ADDRESS)
    assert zero_ns == START_NS + round((SECOND_MS + 1) * 1e6)


def test_a_visit_ends_before_the_next_one_begins() -> None:
    first, second = split_visits(load())
    assert first.ended_ns == second.began_ns
    assert [first.holds(second.began_ns), second.holds(second.began_ns)] == [False, True]
    assert first.holds(second.began_ns - 1)


def test_another_number_of_visits(tmp_path: Path) -> None:
    said = "the page was visited 2 times, asked was 3"
    assert problems(load(), tmp_path, 0.0, asked=replace(ASKED, visits=3)) == [said]


def test_too_short_a_rest(tmp_path: Path) -> None:
    said = "visit 2 of 2: it began after 9.960 s of rest, asked was 10 s"
    assert problems(load(10_000.0), tmp_path, 0.0, 10_000.0) == [said]


@pytest.mark.parametrize(
    ("idle_s", "began_ms", "rest_s"),
    [(10.0, 21_065.0, None), (10.0, 21_067.0, "21.027"), (5.0, 301_000.0, "300.960"),
     (0.0, 11_041.0, None), (0.0, 21_009.0, "20.969")],
)  # fmt: skip
def test_too_long_a_rest(
    tmp_path: Path, idle_s: float, began_ms: float, rest_s: str | None
) -> None:
    """It ends at a round instant, every ten seconds, and forgetting takes 1.066 s at most."""
    asked = replace(ASKED, idle_s=idle_s)
    late = f"visit 2 of 2: it began after {rest_s} s of rest, asked was {idle_s:g} s"
    found = problems(load(began_ms), tmp_path, 0.0, began_ms, asked=asked)
    assert found == ([] if rest_s is None else [late])
    slow = problems(load(began_ms), tmp_path, 0.0, began_ms, asked=asked, real=True)
    assert bool(slow) == (rest_s in ("300.960", "20.969"))


@pytest.mark.parametrize(("real", "said"), [(False, "6.000 ms after it began"), (True, None)])
def test_a_first_packet_that_is_late(tmp_path: Path, real: bool, said: str | None) -> None:
    found = problems(load(), tmp_path, 0.0, SECOND_MS + 6, real=real)
    assert found == ([] if said is None else [f"visit 2 of 2: its first packet left {said}"])


def test_a_visit_without_a_packet(tmp_path: Path) -> None:
    assert problems(load(), tmp_path, 0.0) == ["visit 2 of 2: the client sent nothing"]


def test_a_single_visit_is_all_of_its_capture(tmp_path: Path) -> None:
    assert problems(visit(0.0), tmp_path, asked=replace(ASKED, visits=1)) == []
    (only,) = split_visits(visit(0.0))
    assert only.say("late") == "late"
    assert only.holds(0) and only.holds(START_NS * 2)


def test_rest_is_beside_what_each_visit_may_take() -> None:
    trial = Trial(replace(ASKED, visits=3), 0, 0, "virtual", "7.3", timeout_s=20.0)
    assert (trial.visits, trial.rest_s, trial.limit_s) == (3, 20.0, 80.0)
    once = replace(trial, condition=replace(ASKED, visits=1))
    assert (once.visits, once.rest_s, once.limit_s) == (1, 0.0, 20.0)


def test_in_real_time_a_rest_is_told_by_two_clocks(tmp_path: Path) -> None:
    assert problems(load(10_035.0), tmp_path, 0.0, 10_035.0, real=True) == []
    assert len(problems(load(10_035.0), tmp_path, 0.0, 10_035.0)) == 1
