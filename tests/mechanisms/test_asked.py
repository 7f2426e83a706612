"""Settings in captures made by hand: what happened as asked is proven, and nothing else is."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.base.seeding import think_factor
from testbed.capture.flows import Flows
from testbed.capture.packets import ACK
from testbed.mechanisms.think.proof import check_pace, check_thought
from testbed.mechanisms.visits.proof import check_cache, check_pinned
from testbed.mechanisms.web_server.proof import check_program, check_stack
from testbed.model import Condition, PageLoad, QuicSpec, Replay, RequestTiming
from tests.capture.packets import CLIENT, REQUEST, SERVER, Capture, Visit
from tests.evidence import evidence, found

ENDS = [socket.inet_aton(CLIENT)]
TIMED = RequestTiming("http://www.page.test/", 200, 0.0, 1.0)
LOAD = PageLoad("chromium", "1", 1.0, (TIMED,))


def asked(client: str = "chromium", **knobs: Any) -> Condition:
    return Condition("p", client, **knobs)


@pytest.mark.parametrize(("own", "thought_ms", "early"), [
    (0.0, 20.0, False), (0.0, 19.1, False), (0.0, 10.0, True), (1.0, 20.0, None), (1.0, 30.0, None),
])  # fmt: skip
def test_each_request_has_a_think_time_of_its_own(
    tmp_path: Path, own: float, thought_ms: float, early: bool | None
) -> None:
    name = f"GET http://www.page.test{REQUEST.split()[1].decode()}"
    due_ms = round(20 * think_factor(0, f"server {name}", 50 * own))
    capture, visit = Capture(), Visit(Capture(), 2000)
    visit.capture = capture
    visit.open(at_ms=0.0)
    visit.send(0, REQUEST)
    sent_ms = 1 + 2e-3
    ends = (SERVER, 80), (CLIENT, 2000)
    capture.add(*ends, ACK, 5001, 0, b"HTTP/1.1 200 OK", b"", sent_ms + thought_ms)
    said = found(
        check_thought, condition=asked(server_think_ms=20.0, think_spread_pct=50 * own),
        flows_at_server=capture.flows(tmp_path), load=LOAD, capture=capture.read(tmp_path),
        replay=Replay(1), hosts={SERVER: "www.page.test"}, clients=ENDS,
    )  # fmt: skip
    assert bool(said) == (thought_ms < due_ms - 1 if early is None else early), (said, due_ms)


def test_a_think_time_that_nothing_shows() -> None:
    none = {"flows_at_server": Flows((), 0, 0, ()), "capture": SimpleNamespace(packets=())}
    shown: dict[str, Any] = {**none, "replay": Replay(0), "load": LOAD, "hosts": {}}
    assert found(check_thought, condition=asked(), **shown) == []
    assert found(check_thought, condition=asked(server_think_ms=9.0), **shown) != []


@pytest.mark.parametrize(
    ("client", "think", "waits_ms", "words"),
    [("graph", "none", 0.5, None), ("graph", "none", 30.0, "waited"),
     ("graph", "recorded", 30.0, None), ("chromium", "none", 0.5, "nothing shows")],
)  # fmt: skip
def test_the_pace_of_graph(
    tmp_path: Path, client: str, think: Any, waits_ms: float, words: str | None
) -> None:
    visit = Visit(Capture(), 2000)
    visit.open(at_ms=0.0)
    visit.answer(b"HTTP/1.1 200 OK")
    ends = (CLIENT, 2000), (SERVER, 80)
    visit.capture.add(*ends, ACK, visit.isn + 1, 6000, REQUEST, b"", 1.003 + waits_ms)
    said = found(
        check_pace, condition=asked(client, think_time=think), load=LOAD, clients=ENDS,
        capture=visit.capture.read(tmp_path),
    )  # fmt: skip
    assert [str(words) in each for each in said] == ([True] if words else []), said


@pytest.mark.parametrize(("server", "program", "words"), [
    ("nginx", None, None), ("nginx-quic", None, "nothing shows"),
    ("nginx-quic", "/usr/sbin/nginx", "/usr/sbin/nginx served"),
])  # fmt: skip
def test_the_program_that_served(server: Any, program: str | None, words: str | None) -> None:
    seen = evidence(condition=asked(web_server=server))
    seen = replace(seen, observed=replace(seen.observed, server_program=program or ""))
    assert [str(words) in each for each in check_program(seen)] == ([True] if words else [])


def test_the_server_s_quic_by_its_own_words() -> None:
    replay = Replay(1, quic="aioquic 1.3.0: 10 packets of 1200 bytes, reno")
    for quic, wrong in (
        (QuicSpec(), 0), (QuicSpec(10, "reno"), 0), (QuicSpec(32), 1), (QuicSpec(32, "cubic"), 2),
    ):  # fmt: skip
        assert len(found(check_stack, condition=asked(quic=quic), replay=replay)) == wrong
    assert len(found(check_stack, condition=asked(quic=QuicSpec(10)), replay=Replay(1))) == 1


@pytest.mark.parametrize(("randomness", "recorded", "pinned", "fits"), [
    ("as-recorded", True, True, True), ("as-recorded", True, False, False),
    ("as-recorded", False, True, False), ("free", True, False, True), ("free", True, True, False),
    ("pinned", False, True, True), ("pinned", False, False, False),
])  # fmt: skip
def test_scripts_are_pinned_by_their_text(
    randomness: Any, recorded: bool, pinned: bool, fits: bool
) -> None:
    last = replace(LOAD, pinned=pinned, earlier=(replace(LOAD, pinned=pinned),))
    archive, condition = SimpleNamespace(pinned=recorded), asked(randomness=randomness)
    for load in (last, replace(last, earlier=(replace(LOAD, pinned=recorded),))):
        said = found(check_pinned, condition=condition, load=load, archive=archive)
        assert bool(said) == (not fits or (load is not last and recorded is not pinned))
    other = replace(LOAD, client="graph")
    said = found(check_pinned, condition=condition, load=other, archive=archive)
    assert bool(said) == (randomness != "as-recorded")


@pytest.mark.parametrize(
    ("answered", "lives", "fits"),
    [
        (2, "max-age=900", False),
        (1, "max-age=900", True),
        (2, "max-age=9", True),
        (2, "no-store", True),
    ],
)
def test_a_cache_that_was_kept(tmp_path: Path, answered: int, lives: str, fits: bool) -> None:
    (tmp_path / "visit-1.har").write_text(f'"cache-control", "value": "{lives}"')
    load = replace(LOAD, requests=(TIMED,) * (answered - 1), earlier=(LOAD,))
    for between in ("keep", "clear-cache"):
        seen = evidence(condition=asked(between=between, visits=2), load=load,
                        replay=Replay(answered))  # fmt: skip
        said = list(check_cache(replace(seen, out=tmp_path)))
        assert bool(said) == (not fits and between == "keep")
