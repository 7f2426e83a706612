"""Conduct in captures made by hand: what clients and a server did otherwise than asked is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest

from testbed.capture.flows import Flow
from testbed.capture.packets import ACK, FIN, RST, SYN
from tests.capture.packets import CLIENT, SERVER, START_NS, Capture
from wings.server_loads.conduct import (
    count_repeated,
    ending_of,
    find_medians_s,
    odd_patience,
    odd_timers,
    read_answer,
    version_asked,
)
from wings.server_loads.management import odd_management
from wings.server_loads.schedule import schedule_ns, split_retries
from wings.server_loads.spec import ArrivalSpec, Mechanism, ServerSpec

UP, DOWN = True, False
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"
ASKED = b"GET / HTTP/1.0\r\n\r\n"
Step = tuple[float, bool, int, bytes]
WHOLE: list[Step] = [
    (0, UP, SYN, b""), (2, DOWN, SYN | ACK, b""), (2.1, UP, ACK, b""), (2.2, UP, ACK, ASKED),
    (5, DOWN, ACK, ANSWER), (5.1, UP, FIN | ACK, b""), (7, DOWN, FIN | ACK, b""),
]  # fmt: skip


def flows(folder: Path, *connections: Sequence[Step]) -> tuple[Flow, ...]:
    """Connections of these steps: the moment in ms, who, flags and payload."""
    capture = Capture()
    steps = [(2000 + n, step) for n, each in enumerate(connections) for step in each]
    seqs: dict[tuple[int, bool], int] = {}
    for port, (at_ms, up, flags, payload) in sorted(steps, key=lambda each: each[1][0]):
        ends = ((CLIENT, port), (SERVER, 80))
        seq = 100 if flags & SYN else seqs.get((port, up), 101)
        if not flags & SYN:
            seqs[port, up] = seq + len(payload)
        capture.add(*(ends if up else ends[::-1]), flags, seq, 101, payload, b"", at_ms)
    return capture.flows(folder).flows


def test_connections_start_when_rate_and_seed_say(tmp_path: Path) -> None:
    arrivals = ArrivalSpec(rate_per_s=100, warm_up_s=0, duration_s=1)
    due = list(schedule_ns(arrivals, 0))
    assert due == [number * 10_000_000 for number in range(100)]
    found = flows(tmp_path, *([(at_ns / 1e6, UP, SYN, b"")] for at_ns in [*due[:5], 45_000_000]))
    first, others = split_retries(found, due, 100_000)
    assert (len(first), [each.syn.at_ns - START_NS for each in others]) == (5, [45_000_000])


def test_drawn_arrivals_are_those_of_their_seed() -> None:
    arrivals = ArrivalSpec(rate_per_s=1000, spacing="poisson", duration_s=10)
    one, same, other = (list(islice(schedule_ns(arrivals, seed), 4000)) for seed in (3, 3, 4))
    assert one == same != other
    assert one[-1] / 4000 == pytest.approx(1e6, rel=0.06)


@pytest.mark.parametrize(("at_ms", "odd"), [
    ((0, 1000, 3000, 7000), 0), ((0, 1000, 2000), 1), ((0, 900), 1), ((0, 1100, 3300), 0),
    ((0, 1200), 1),
])  # fmt: skip
def test_a_syn_goes_again_by_its_timer(tmp_path: Path, at_ms: Any, odd: int) -> None:
    found = flows(tmp_path, [(at, UP, SYN, b"") for at in at_ms])
    assert odd_timers(found, ArrivalSpec(syn_timeout_s=1, syn_linear_timeouts=0)) == odd
    assert odd_timers(found[:0], ArrivalSpec()) == 0


FREEBSD = "3 3.2 3.2 3.2 3.2 6.2 12.2 24.2"


@pytest.mark.parametrize(("at_ms", "odd"), [
    ((0, 3030, 6294, 9558), 0), ((0, 3030, 6030), 1), ((0, 3200), 1), ((0, 3030, 9200), 1),
    ((0, 3063, 6327, 9591, 12855, 16119, 22519, 34807, 59383), 0),
    ((0, 3063, 6327, 9591, 12855, 16119, 22519, 34807, 59383, 83895), 1),
])  # fmt: skip
def test_a_syn_goes_again_by_the_list_of_its_timers(tmp_path: Path, at_ms: Any, odd: int) -> None:
    """In virtual time a timer is late by a step of its wheel at most: 64 ms of 3 s."""
    found = flows(tmp_path, [(at, UP, SYN, b"") for at in at_ms])
    assert odd_timers(found, ArrivalSpec(syn_timeouts_s=FREEBSD), exact=True) == odd


def test_without_a_list_timers_double_after_those_that_are_linear() -> None:
    older = ArrivalSpec(syn_timeout_s=3, syn_retries=2, syn_linear_timeouts=0)
    assert older.syn_timers_s == (3, 6)
    assert ArrivalSpec(syn_retries=2).syn_timers_s == (1, 1, 1, 1, 1, 2)
    mac = ArrivalSpec(syn_timeout_s=3, syn_retries=4)
    assert mac.syn_timers_s == ArrivalSpec(syn_timeouts_s="3 3 3 3 3 6 12 24").syn_timers_s


def test_whose_second_syn_is_answered(tmp_path: Path) -> None:
    again: list[Step] = [(0, UP, SYN, b""), (3000, UP, SYN, b"")]
    answer: list[Step] = [(3002, DOWN, SYN | ACK, b"")]
    third: list[Step] = [*again, (9000, UP, SYN, b""), (9002, DOWN, SYN | ACK, b"")]
    found = flows(tmp_path, WHOLE, [*again, *answer], again, third)
    assert count_repeated(found) == (3, 1)
    assert find_medians_s(found) == (3, 6)
    assert find_medians_s(found[:1]) == ()


BURSTS = ArrivalSpec(rate_per_s=100, burst_s=0.5, every_s=2.0, warm_up_s=0, duration_s=4)


@pytest.mark.parametrize(("base", "counts"), [(0, (50, 0, 50, 0)), (20, (50, 30, 50, 30))])
def test_bursts_have_their_rate_and_the_rest_has_another(
    base: int, counts: tuple[int, ...]
) -> None:
    due = list(schedule_ns(replace(BURSTS, base_rate_per_s=base), 0))
    edges = (0, 0.5e9, 2e9, 2.5e9, 4e9)
    found = tuple(sum(a <= at < b for at in due) for a, b in pairwise(edges))
    assert found == counts
    assert due == sorted(due)


@pytest.mark.parametrize(("last_ms", "patience_s", "odd"), [
    (3000, 3, (0, 0)), (3000, 1, (0, 0)), (3000, 6, (0, 1)), (900, 3, (0, 1)),
])  # fmt: skip
def test_who_was_answered_waits_as_long_as_asked(
    tmp_path: Path, last_ms: float, patience_s: float, odd: tuple[int, int]
) -> None:
    waited = [*WHOLE[:4], (last_ms, UP, FIN | ACK, b"")]
    found = flows(tmp_path, waited, WHOLE)
    assert odd_patience(found, ArrivalSpec(patience_s=patience_s), 4) == odd


@pytest.mark.parametrize(("syns_ms", "patience_s", "odd"), [
    ((0, 1000), 2, (0, 0)), ((0, 1000, 3000), 2, (1, 0)), ((0,), 6, (0, 1)),
])  # fmt: skip
def test_who_was_not_answered_gives_up_as_asked(
    tmp_path: Path, syns_ms: Any, patience_s: float, odd: tuple[int, int]
) -> None:
    late = [(each[0] + 60_000, *each[1:]) for each in WHOLE]
    found = flows(tmp_path, [(at, UP, SYN, b"") for at in syns_ms], late)
    arrivals = ArrivalSpec(
        patience_s=patience_s, syn_timeout_s=1, syn_linear_timeouts=0, syn_retries=5
    )
    assert odd_patience(found, arrivals, 4) == odd


def test_requests_responses_and_ends(tmp_path: Path) -> None:
    reset = [*WHOLE[:5], (5.1, UP, RST, b"")]
    told = [*WHOLE[:5], (5.1, DOWN, RST, b"")]
    found = flows(tmp_path, WHOLE, reset, told, WHOLE[:4])
    assert [version_asked(each) for each in found] == ["1.0"] * 4
    assert [ending_of(each) for each in found] == ["fin", "rst", None, None]
    assert [read_answer(each) for each in found] == [(4, 4)] * 3 + [(None, 0)]


SILENT: list[Step] = [(0, UP, SYN, b""), (1000, UP, SYN, b"")]
AGAIN: list[Step] = [*WHOLE[:3], (1000, DOWN, SYN | ACK, b"")]


@pytest.mark.parametrize(("mechanism", "steps", "words"), [
    ("default", SILENT, None), ("default", AGAIN, None), ("default", WHOLE, None),
    ("abort", AGAIN, "1 ACKs of handshakes"), ("abort", SILENT, None),
    ("abort rst-syn", SILENT, "1 SYNs were dropped in silence"),
    ("no-syn-drop", SILENT, "1 SYNs were dropped in silence"),
    ("default rst-fin", WHOLE, "1 FINs were answered by one"), ("abort", WHOLE, None),
])  # fmt: skip
def test_a_mechanism_never_does(
    tmp_path: Path, mechanism: Mechanism, steps: list[Step], words: str | None
) -> None:
    said = list(odd_management(flows(tmp_path, steps), ServerSpec(mechanism=mechanism), 2e6))
    assert [each.startswith(str(words)) for each in said] == ([True] if words else []), said
