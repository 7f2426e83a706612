"""PRECONNECT: which connections are early, how many are due, and what contradicts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base.seeding import guesses_right
from testbed.mechanisms.fast_open.proof import check_arm
from testbed.mechanisms.preconnect.proof import check_preconnect
from testbed.model import Condition, PageLoad, RequestTiming, ServedConnection, TcpSpec
from testbed.proof.evidence import Evidence
from testbed.proof.visits import split_visits
from tests.capture.packets import COOKIE, REQUEST, Capture, Visit
from tests.client.sites import Site
from tests.evidence import evidence

OWN, OTHER = "10.10.0.1", "10.10.0.2"
ROOT, PICTURE = "http://www.page.test/", "http://b.page.test/b"


def load_of(
    path: Path, pct: float | None, *opened: tuple[str, float, bool], tfo: bool = False,
    client: str = "graph", lost: int = 0,
) -> Evidence:  # fmt: skip
    """A load whose picture, of the other host, is known after 50 ms.

    ``opened`` are its connections behind the first: with whom, when, and whether one is asked.
    """
    capture, served = Capture(), []
    for port, (server, at_ms, asked) in enumerate([(OWN, 0.0, True), *opened], 2000):
        visit = Visit(capture, port, server)
        data = REQUEST if tfo and port == 2000 else b""
        visit.syn(data, COOKIE if data else None, at_ms=at_ms)
        visit.synack(len(data))
        if asked:
            served.append(ServedConnection(f"10.0.0.2:{port}", f"{server}:80", 1))
    site = Site()
    site.add(ROOT, b"x", "text/html", "root")
    site.add(PICTURE, b"y", "image/png")
    requests = RequestTiming(ROOT, 200, 0.0, 50.0), RequestTiming(PICTURE, 200, 50.0, 90.0)
    load = PageLoad(client, "1", 90.0, requests)
    return evidence(
        condition=Condition("a", client, tcp=TcpSpec(tfo=tfo), preconnect_pct=pct),
        load=load, archive=site.archive(), flows=capture.flows(path), capture=capture.read(path),
        hosts={OWN: "www.page.test", OTHER: "b.page.test"}, served=tuple(served), logs=(),
        visits=split_visits(load), lost=lost, counters={"client": {}, "server": {}},
    )  # fmt: skip


EARLY, LATE = (OTHER, 0.0, True), (OTHER, 60.0, True)
WRONG, USED = (OWN, 0.0, False), (OWN, 0.0, True)


@pytest.mark.parametrize(
    ("pct", "opened", "told"),
    [(None, [LATE], ""), (100.0, [EARLY], ""), (0.0, [WRONG, LATE], ""),
     (None, [EARLY], "b.page.test has a connection that was opened before anything was asked"),
     (None, [WRONG, LATE], "www.page.test has a connection"),
     (100.0, [LATE], "1 of 1 connections of PRECONNECT were not opened at the start"),
     (100.0, [EARLY, EARLY], "b.page.test has a connection"),
     (0.0, [EARLY], "1 of 1 connections"), (0.0, [LATE], "1 of 1 connections"),
     (0.0, [USED, LATE], "of 1 wrong guesses of PRECONNECT 1 were used")],
)  # fmt: skip
def test_what_is_due_and_nothing_else(
    tmp_path: Path, pct: float | None, opened: list[tuple[str, float, bool]], told: str
) -> None:
    problems = list(check_preconnect(load_of(tmp_path, pct, *opened)))
    assert bool(problems) == bool(told) and told in " ".join(problems), problems


def test_a_lost_look_up_is_an_excuse(tmp_path: Path) -> None:
    assert not list(check_preconnect(load_of(tmp_path, 100.0, LATE, lost=1)))


def test_no_other_client_shows_it(tmp_path: Path) -> None:
    problems = list(check_preconnect(load_of(tmp_path, 100.0, EARLY, client="wget2")))
    assert problems == ["nothing shows that preconnect_pct = 100.0 was performed"]


@pytest.mark.parametrize(("pct", "wrong"), [(100.0, 0), (None, 1)])
def test_beside_fast_open_a_guess_has_no_request(
    tmp_path: Path, pct: float | None, wrong: int
) -> None:
    assert len(list(check_arm(load_of(tmp_path, pct, EARLY, tfo=True)))) == wrong


def test_the_hit_rate_is_that_of_many_guesses() -> None:
    hits = [guesses_right(seed, "b.page.test", 30.0) for seed in range(2000)]
    assert 0.27 < sum(hits) / len(hits) < 0.33
    assert not any(guesses_right(seed, "a", 0.0) for seed in range(99))
    assert all(guesses_right(seed, "a", 100.0) for seed in range(99))
