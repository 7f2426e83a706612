"""Faults in one of several visits: none of them may pass as proven.

What is left of a load of two visits whose connections ended between them, and of one whose
connections lived on, is altered and judged again; the others are in guest code.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from testbed.base.errors import EXIT_OK
from testbed.model import Condition
from tests.acceptance.altered import Alter, Done, Seen
from tests.acceptance.house import House, Plant, assert_bad, assert_ok, assert_refused
from tests.measured import load_of

pytestmark = [pytest.mark.guest, pytest.mark.browser]

PAGE = "tum-website"
KNOBS = {"page": PAGE, "client": "chromium", "rtt_ms": 20, "visits": 2}
ENDED, LIVES = 600, 0
IDLE = [ENDED, LIVES]


@pytest.fixture(scope="module", autouse=True)
def page(house: House) -> None:
    house.take(PAGE)


@pytest.fixture(scope="module")
def loads(house: House, page: None) -> dict[int, Done]:
    """A load whose connections ended between visits, and one whose connections lived on."""
    ran = house.run(**KNOBS, idle_s=IDLE)
    assert ran.code == EXIT_OK, ran.said
    digest = house.archive(PAGE).digest
    return {
        idle_s: Done(
            next(r for r in ran.records if r.trial.condition_as(Condition).idle_s == idle_s),
            ran.folder,
            digest,
        )
        for idle_s in IDLE
    }


def visit(seen: Seen, number: int) -> Seen:
    """What was written down of a visit, from 0."""
    load: Seen = seen["load"]
    found: Seen = [*load["earlier"], load][number]
    return found


def times(number: int, factor: float) -> Alter:
    """The browser's clock is faster or slower in one of the visits."""

    def alter(seen: Seen) -> None:
        load = visit(seen, number)
        for name in ("plt_ms", "ttfb_ms"):
            load[name] *= factor
        for request in load["requests"]:
            request["end_ms"] *= factor

    return alter


def changed(number: int, name: str, to: Callable[[Any], object]) -> Alter:
    """What is said of a visit is made another."""
    return lambda seen: visit(seen, number).update({name: to(visit(seen, number)[name])})


def load_time(number: int, factor: float) -> Alter:
    """The load time of a visit alone is another one."""
    return changed(number, "plt_ms", lambda plt_ms: plt_ms * factor)


def began(number: int, later_ms: float) -> Alter:
    """A visit began at another time."""
    return changed(number, "began_ns", lambda began_ns: began_ns + round(later_ms * 1e6))


def swapped(*names: str) -> Alter:
    """What is said of the visits is the other one's."""

    def alter(seen: Seen) -> None:
        first, second = visit(seen, 0), visit(seen, 1)
        for name in names:
            first[name], second[name] = second[name], first[name]

    return alter


def first_again(seen: Seen) -> None:
    """The first visit is told twice."""
    first, second = visit(seen, 0), visit(seen, 1)
    for name in ("plt_ms", "ttfb_ms", "requests"):
        second[name] = deepcopy(first[name])


def left_out(seen: Seen) -> None:
    """The first visit is not told."""
    visit(seen, 1)["earlier"] = []


def one_more(seen: Seen) -> None:
    """There was a third visit."""
    visit(seen, 1)["earlier"].append(deepcopy(visit(seen, 0)))


def moved(seen: Seen) -> None:
    """A request of the second visit is told of the first."""
    visit(seen, 0)["requests"].append(visit(seen, 1)["requests"].pop())


def request_more(number: int) -> Alter:
    """A visit has a request too many."""
    return changed(number, "requests", lambda requests: [*requests, deepcopy(requests[-1])])


def nothing(_: Seen) -> None:
    """What was observed stays."""


ALTERED: dict[str, tuple[Alter, str]] = {
    "times of the second 1 % more": (times(1, 1.01), "visit 2 of 2: "),
    "times of the second 1 % less": (times(1, 0.97), "visit 2 of 2: "),
    "times of the first 1 % more": (times(0, 1.01), "visit 1 of 2: "),
    "load time of the second alone": (load_time(1, 0.97), "visit 2 of 2: the load "),
    "load time of the first alone": (load_time(0, 1.02), "visit 1 of 2: the load "),
    "beginnings swapped": (swapped("began_ns"), "visit 2 of 2: it began after -"),
    "a visit left out": (left_out, "the page was visited 1 times, asked was 2"),
    "a visit too many": (one_more, "the page was visited 3 times, asked was 2"),
    "the second began later": (began(1, 10.0), "visit 2 of 2: "),
    "the second began much later": (began(1, 1e6), "visit 2 of 2: the client sent nothing"),
    "the second began before": (began(1, -100.0), "visit 2 of 2: its first packet left 10"),
    "the first began before": (began(0, -100.0), "visit 1 of 2: its first packet left 10"),
    "a request of the other visit": (moved, "visit 1 of 2: the client's log has no "),
    "a request too many": (request_more(0), "answered requests, the server answered "),
}
OF_OTHER_TIMES: dict[str, tuple[Alter, str]] = {
    "times swapped": (swapped("plt_ms", "ttfb_ms", "requests"), "visit 1 of 2: the load ended"),
    "load times swapped": (swapped("plt_ms"), "visit 1 of 2: the load "),
    "the first again": (first_again, "visit 2 of 2: the load ended"),
}
"""Where connections live on the second visit is faster; else it takes as long as the first."""
CASES = [
    *((idle_s, name, *fault) for idle_s in IDLE for name, fault in ALTERED.items()),
    *((LIVES, name, *fault) for name, fault in OF_OTHER_TIMES.items()),
]


@pytest.mark.parametrize("idle_s", IDLE)
def test_without_a_fault_it_is_proven(loads: dict[int, Done], idle_s: int, tmp_path: Path) -> None:
    record = loads[idle_s].judge(nothing, tmp_path)
    assert_ok(record)
    assert record.proof is not None
    load = load_of(record)
    assert load is not None
    first, second = (visit.plt_ms for visit in load.visits)
    assert (first > second + 20) == (idle_s == LIVES)


@pytest.mark.parametrize(
    ("idle_s", "alter", "says"),
    [pytest.param(idle, alter, says, id=f"{idle} s: {name}") for idle, name, alter, says in CASES],
)
def test_what_a_browser_says(
    loads: dict[int, Done], idle_s: int, alter: Alter, says: str, tmp_path: Path
) -> None:
    assert_bad(loads[idle_s].judge(alter, tmp_path), says, "unproven")


VISIT = "client/chromium/visit.py"


@pytest.mark.nightly(but="^one visit less$")
@pytest.mark.parametrize(
    ("module", "old", "new", "says"),
    [pytest.param(VISIT, "while len(visits) < errand.visits:",
                  "while len(visits) < errand.visits - 1:",
                  "the page was visited 1 times, asked was 2", id="one visit less"),
     pytest.param(VISIT, "        errand.idle()", "        pass", "visit 2 of 2: it began after 0.",
                  id="no rest"),
     pytest.param("lab/alignment.py", "round(idle_s * 1e9)", "round(idle_s * 0.9e9)",
                  "s of rest, asked was 60 s", id="a shorter rest"),
     pytest.param("lab/alignment.py", "round(idle_s * 1e9)", "round(idle_s * 2e9)",
                  "s of rest, asked was 60 s", id="a longer rest"),
     pytest.param("server/nginx.py", "kept_alive_s=KEPT_ALIVE_S", "kept_alive_s=15",
                  "the server ended ", id="connections that end sooner")],
)  # fmt: skip
def test_a_fault_in_guest_code(
    house: House, plant: Plant, module: str, old: str, new: str, says: str
) -> None:
    plant(module, old, new)
    assert_refused(house.run(**KNOBS, idle_s=60), "unproven", says)
