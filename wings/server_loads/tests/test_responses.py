"""Responses by the capture: what a load is told to have been has to be what its packets were."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from testbed.capture.flows import Flows
from testbed.capture.packets import ACK, FIN, RST, SYN
from testbed.model import Trial
from tests.capture.packets import CLIENT, SERVER, Capture
from wings.server_loads.arrivals import check_starts
from wings.server_loads.conduct import ending_of, odd_timers
from wings.server_loads.evidence import ServedEvidence, ServedObservation
from wings.server_loads.responses import (
    SeenResponse,
    at_share,
    is_first_of_its_ports,
    read_responses,
)
from wings.server_loads.spec import ArrivalSpec, ServerLoad
from wings.server_loads.tests.loads import BEGAN_NS, served
from wings.server_loads.throughput import check_responses

LOAD = ServerLoad(arrivals=ArrivalSpec(rate_per_s=100, warm_up_s=1, duration_s=2))
TIMES_MS = [4.0 + number % 50 / 10 for number in range(300)]
RESPONSES = [
    SeenResponse(BEGAN_NS + number * 10_000_000, BEGAN_NS + number * 10_000_000 + round(ms * 1e6))
    for number, ms in enumerate(TIMES_MS)
]
MEASURED = sorted(TIMES_MS[100:])
TRUE = served(
    started=200, answered=200, all_started=300, all_answered=300, replies_per_s=100.0,
    response_mean_ms=fmean(MEASURED), response_p50_ms=at_share(MEASURED, 0.5),
    response_p99_ms=at_share(MEASURED, 0.99),
    response_halves_ms=(fmean(TIMES_MS[100:200]), fmean(TIMES_MS[200:])),
)  # fmt: skip


def said(
    responses: list[SeenResponse] = RESPONSES, load: ServerLoad = LOAD, **told: Any
) -> list[str]:
    trial = Trial(load, 0, 0, "virtual", "7.3")
    observed = ServedObservation(served=replace(TRUE, **told))
    shown = {"responses": responses, "whole_capture": True}
    return [*check_responses(ServedEvidence(trial, observed, Path(), shown=shown))]


def test_what_the_packets_say() -> None:
    assert said() == []
    assert (
        said(response_p50_ms=TRUE.response_p50_ms, response_mean_ms=fmean(MEASURED) + 0.004) == []
    )


@pytest.mark.parametrize("share", [0.9, 0.99, 1.02, 1.1])
@pytest.mark.parametrize(
    "name", ["response_mean_ms", "response_p50_ms", "response_p99_ms", "replies_per_s"]
)
def test_a_number_that_is_a_little_more_or_less(name: str, share: float) -> None:
    (sentence,) = said(**{name: getattr(TRUE, name) * share})
    assert "by the capture" in sentence


@pytest.mark.parametrize("more", [-1, 1])
@pytest.mark.parametrize("name", ["all_started", "all_answered", "answered", "started"])
def test_a_connection_more_or_less(name: str, more: int) -> None:
    assert said(**{name: getattr(TRUE, name) + more})


@pytest.mark.parametrize("half", [0, 1])
def test_each_half_has_its_mean(half: int) -> None:
    told = list(TRUE.response_halves_ms)
    told[half] = 1.02 * (told[half] or 0.0)
    (sentence,) = said(response_halves_ms=tuple(told))
    assert sentence.startswith(f"the {('first', 'second')[half]} half's mean response took")


def test_who_starts_in_the_cool_down_is_not_measured() -> None:
    cooled = replace(LOAD, arrivals=replace(LOAD.arrivals, duration_s=1, cool_down_s=1))
    times = sorted(TIMES_MS[100:200])
    told: dict[str, Any] = {
        "seconds": 1, "started": 100, "answered": 100, "response_mean_ms": fmean(times),
        "response_p50_ms": at_share(times, 0.5), "response_p99_ms": at_share(times, 0.99),
        "response_halves_ms": (fmean(TIMES_MS[100:150]), fmean(TIMES_MS[150:200])),
    }  # fmt: skip
    assert said(load=cooled, **told) == []
    assert len(said(load=LOAD, **told)) > 1


@pytest.mark.parametrize(
    ("halves_ms", "settled"),
    [((), True), ((None, None), True), ((640.0, 700.0), True), ((640.0, 1170.0), False),
     ((1170.0, 640.0), False), ((640.0, None), False)],
)  # fmt: skip
def test_a_mean_that_moves_between_the_halves_has_not_settled(
    halves_ms: tuple[float | None, ...], settled: bool
) -> None:
    assert served(response_halves_ms=halves_ms).is_settled is settled


def test_a_response_that_never_came_was_none() -> None:
    lost = [*RESPONSES[:-1], replace(RESPONSES[-1], ended_ns=None)]
    assert said(lost)[0] == "300 connections were answered, by the capture 299"


def test_a_port_that_the_server_still_knew_is_no_end(tmp_path: Path) -> None:
    """Its ACK of the older connection is reset, and the SYN sent again at once (RFC 9293)."""
    capture = Capture()
    up, down = ((CLIENT, 2000), (SERVER, 80)), ((SERVER, 80), (CLIENT, 2000))
    capture.add(*up, SYN, 100, 0, b"", b"", 0)
    capture.add(*down, ACK, 900, 50, b"", b"", 2)
    capture.add(*up, RST, 50, 0, b"", b"", 2)
    capture.add(*up, SYN, 100, 0, b"", b"", 4)
    capture.add(*down, SYN | ACK, 500, 101, b"", b"", 6)
    capture.add(*up, ACK, 101, 501, b"ask", b"", 6)
    capture.add(*down, ACK, 501, 104, b"answer", b"", 9)
    capture.add(*up, FIN | ACK, 104, 507, b"", b"", 9)
    found = capture.flows(tmp_path)
    (flow,) = found.flows
    assert not is_first_of_its_ports(flow)
    (response,) = read_responses(found, 6)
    assert response.ended_ns is not None and response.ended_ns - response.began_ns == 9_000_000
    assert ending_of(flow) == "fin"
    assert odd_timers([flow], ArrivalSpec(syn_timeout_s=3)) == 0


def test_one_that_is_tried_again_is_several() -> None:
    again = replace(LOAD, arrivals=replace(LOAD.arrivals, retries_refused=2))
    more = [*RESPONSES, SeenResponse(RESPONSES[-1].began_ns + 1, None)]
    assert said(more, again) == []
    assert said(more, again, all_answered=299) != []
    assert said(more) == ["300 connections started, by the capture 301"]


@pytest.mark.parametrize("spacing", ["fixed", "poisson"])
def test_as_many_start_as_the_seed_says(spacing: Literal["fixed", "poisson"]) -> None:
    load = replace(LOAD, arrivals=replace(LOAD.arrivals, spacing=spacing))
    trial = Trial(load, 0, 0, "virtual", "7.3")
    due = ServedEvidence(trial, ServedObservation(), Path()).due_ns
    all_started, started = len(due), sum(at_ns >= 10**9 for at_ns in due)
    shown = {"flows": Flows((), 0, 0, ()), "whole_capture": True,
             "first_and_retries": (due, [])}  # fmt: skip
    for more, of_warm_up in ((0, 0), (1, 0), (0, 1), (-1, -1)):
        told = replace(TRUE, all_started=all_started + more, started=started + of_warm_up)
        observed = ServedObservation(served=told)
        wrong = [*check_starts(ServedEvidence(trial, observed, Path(), shown=shown))]
        assert len(wrong) == abs(more) + abs(of_warm_up)


@pytest.mark.parametrize(("captured", "late_ns", "wrong"), [(150, 0, 0), (150, 5, 0), (150, -5, 0),
                                                            (148, 0, 1), (152, 0, 1)])  # fmt: skip
def test_where_a_bounded_capture_ends_one_may_be_due(
    captured: int, late_ns: int, wrong: int
) -> None:
    trial = Trial(LOAD, 0, 0, "virtual", "7.3")
    flows = [
        SimpleNamespace(syn=SimpleNamespace(at_ns=BEGAN_NS + at))
        for at in (0, 149 * 10_000_000 + late_ns)
    ]
    shown = {"flows": SimpleNamespace(flows=flows), "whole_capture": False,
             "first_and_retries": (range(captured), [])}  # fmt: skip
    observed = ServedObservation(served=replace(TRUE, started=200, all_started=300))
    assert len([*check_starts(ServedEvidence(trial, observed, Path(), shown=shown))]) == wrong
