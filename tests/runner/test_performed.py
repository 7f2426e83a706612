"""What a trial performed, held against what was asked: each part of it, told otherwise."""

from __future__ import annotations

import json
import re
from array import array
from dataclasses import asdict, replace
from hashlib import sha256
from typing import Any

import pytest

from testbed.kinds.page_load.judgement import LoadObservation
from testbed.lab.calibration import expect
from testbed.lab.exactness import VIRTUAL
from testbed.lab.link.changes import describe_phase
from testbed.lab.link.discipline import by_trace
from testbed.lab.link.netem import describe_drawn, describe_room
from testbed.lab.link.protocol import WAYS
from testbed.model import Condition, LabReading, LinkChange, LinkSpec, Trial
from testbed.model.impairments import phases
from testbed.model.trace import Trace
from testbed.runner.performed import check_knobs, check_performed, check_steps, check_traces
from tests.runner.test_judge import CONDITION, LAB, LOAD, TRIAL, knobs_of

SEEN = LoadObservation(lab=LAB, load=LOAD, trial=json.loads(json.dumps(asdict(TRIAL))),
                       archive={"name": "p", "digest": "d"})  # fmt: skip
LINK = replace(TRIAL.linked.link, rtt_ms=21.0)
TWICE = (*LAB.measurements, LAB.measurements[0])


def found(seen: LoadObservation) -> list[str]:
    return [*check_performed(TRIAL, seen, "d")]


def in_lab(**changes: Any) -> LoadObservation:
    return replace(SEEN, lab=replace(LAB, **changes))


def with_knob(name: str, value: str | None) -> LabReading:
    knobs = knobs_of(TRIAL) | ({} if value is None else {name: value})
    return replace(LAB, knobs={k: v for k, v in knobs.items() if value is not None or k != name})


def test_what_was_asked_has_no_problem() -> None:
    assert found(SEEN) == []
    assert [*check_performed(TRIAL, SEEN, None)] == []  # no digest to compare with


@pytest.mark.parametrize(
    ("seen", "sentence"),
    [
        (replace(SEEN, trial=SEEN.trial | {"seed": 8}), "seed: performed was 8, asked was 7"),
        (replace(SEEN, archive={"name": "q", "digest": "d"}),
         "page: performed was 'q', asked was 'p'"),
        (replace(SEEN, archive={"name": "p", "digest": "e"}),
         "archive: performed was 'e', asked was 'd'"),
        (replace(SEEN, load=replace(LOAD, client="wget2")),
         "client: performed was 'wget2', asked was 'graph'"),
        (in_lab(traffic={}), "the lab was not read again after the load"),
        (in_lab(measurements=TWICE), "the lab measured rtt, "),
        (in_lab(measurements=LAB.measurements[1:]), "rtt of the link was not measured"),
        (in_lab(measurements=(replace(LAB.measurements[0], measured=float("nan")),
                              *LAB.measurements[1:])), "rtt: measured nan"),
        (in_lab(measurements=expect(LINK, VIRTUAL)), "rtt: the lab was held against "),
        (replace(SEEN, lab=with_knob("up.calibration", None)),
         "up: by its kernel the link passed nothing when it was measured"),
        (replace(SEEN, lab=with_knob("stray_packets", "1")),
         "stray_packets was read back as '1', asked was '0'"),
        (replace(SEEN, lab=with_knob("client.offloads", None)), "client.offloads was not read"),
        (replace(SEEN, lab=with_knob("down.loss_pct", "0.1")),
         "down.loss_pct was read back as 0.1, asked was 0"),
    ],
)  # fmt: skip
def test_each_part_of_it(seen: LoadObservation, sentence: str) -> None:
    (said,) = found(seen)
    assert said.startswith(sentence)


def test_what_has_no_lab_is_held_against_its_trial_alone() -> None:
    assert found(replace(SEEN, lab=None, archive={})) == []


@pytest.mark.parametrize(("told", "fits"), [("1.00005", True), ("1.0005", False), ("", False)])
def test_a_loss_is_read_back_as_exactly_as_a_kernel_keeps_it(told: str, fits: bool) -> None:
    lossy = replace(CONDITION, link=replace(CONDITION.link, loss_pct=1.0))
    asked = replace(TRIAL, condition=lossy)
    knobs = knobs_of(asked) | {f"{way}.loss_pct": told or "nan" for way in WAYS}
    knobs |= describe_drawn(lossy.link, asked.seed)
    assert (not [*check_knobs(knobs, asked.linked, asked.seed)]) is fits


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"up.qdisc": "codel limit 1000p target 60ms"}, None),
        ({"up.qdisc": "codel limit 1000p target 5ms"}, "up.qdisc has target 5ms, asked was 60ms"),
        ({}, "up.qdisc was not read back"),
        (
            {"up.qdisc": "codel target 60ms", "down.qdisc": "codel target 60ms"},
            "down.qdisc was read back as 'codel target 60ms', asked was a plain FIFO",
        ),
    ],
)
def test_a_queue_is_the_one_that_was_asked_for(told: dict[str, str], said: str | None) -> None:
    queued = replace(CONDITION, link=replace(CONDITION.link, qdisc_up="codel target 60ms"))
    asked = replace(TRIAL, condition=queued)
    plain = {name: value for name, value in knobs_of(asked).items() if not name.endswith("qdisc")}
    found = list(check_knobs(plain | told, asked.linked, asked.seed))
    assert found == ([] if said is None else [said])


def test_what_is_drawn_is_read_back_with_its_seed_where_a_kernel_tells_it() -> None:
    drawn = replace(CONDITION, link=replace(CONDITION.link, reorder_pct=1.0))
    told = describe_drawn(drawn.link, 7)
    without = {name: re.sub(" [0-9a-f]{16}", "", text) for name, text in told.items()}
    assert told != without
    knobs = knobs_of(TRIAL)
    for text, wrong in ((told, 0), (without, 0), (describe_drawn(drawn.link, 8), 2), ({}, 2)):
        assert len([*check_knobs(knobs | text, drawn, 7)]) == wrong
    for version, wrong in (("6.1", 0), ("6.5.13", 0), ("6.6", 2), ("6.12", 2), ("7.3", 2)):
        assert len([*check_knobs(knobs | without, drawn, 7, version)]) == wrong
        assert [*check_knobs(knobs | told, drawn, 7, version)] == []


STEPS = tuple(
    LinkChange(describe_phase(phase), phase.at_ns / 1e6, phase.at_ns / 1e6 + 0.002, 0.001, 10**12)
    for phase in phases(LinkSpec(changes="at 0.1 s: down for 0.2 s; at 5 s: rtt_ms 40"))[1:]
)


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        (STEPS, ""),
        (STEPS[:2], ""),  # the load was over before the third
        (STEPS[:1], "'rtt_ms 20, down_kbit 4000, up_kbit 256' at 300 ms was not performed in a"),
        ((), "'down' at 100 ms was not performed in a load of 400.000 ms"),
        ((replace(STEPS[0], began_ms=101.0), *STEPS[1:]), "asked for at 100 ms, began at 101.0000"),
        ((replace(STEPS[0], began_ms=99.999), *STEPS[1:]), "asked for at 100 ms, began at 99.9990"),
        ((replace(STEPS[0], took_ms=2.0), *STEPS[1:]), "and took 2.0000 ms"),
        ((replace(STEPS[0], asked_ms=101.0), *STEPS[1:]), "was 'down' at 101 ms, asked was 'down'"),
        ((replace(STEPS[0], link="rtt_ms 40"), *STEPS[1:]), "performed was 'rtt_ms 40' at 100 ms"),
        ((*STEPS, STEPS[2]), "4 were performed, asked were 3"),
    ],
)
def test_changes_of_the_link_are_performed_when_they_were_asked_for(
    steps: tuple[LinkChange, ...], says: str
) -> None:
    link = LinkSpec(changes="at 0.1 s: down for 0.2 s; at 5 s: rtt_ms 40")
    said = [*check_steps(steps, link, 400.0)]
    assert says in "; ".join(said)
    assert bool(said) is bool(says)


@pytest.mark.parametrize(
    ("began_ms", "took_ms", "plt_ms", "wrong"),
    [(100.0, 0.05, 400.0, 0), (100.05, 0.05, 400.0, 0), (100.051, 0.05, 400.0, 1),
     (100.0, 0.051, 400.0, 1), (100.0, 0.0, 5000.0, 0), (100.0, 0.0, 5000.1, 1)],
)  # fmt: skip
def test_changes_to_their_slack(began_ms: float, took_ms: float, plt_ms: float, wrong: int) -> None:
    link = LinkSpec(changes="at 0.1 s: down for 0.2 s; at 5 s: rtt_ms 40")
    first = replace(STEPS[0], began_ms=began_ms, took_ms=took_ms)
    assert len([*check_steps((first, STEPS[1]), link, plt_ms)]) == wrong


TRACED = LinkSpec(trace_down="my.trace", trace_phase="seed")
WORDS = "down.trace"


@pytest.mark.parametrize(
    ("told", "begun", "kernel", "says"),
    [
        ({}, True, "virtual", None),
        ({WORDS: "none"}, True, "virtual", "down.trace was read back as"),
        ({WORDS: "none"}, False, "virtual", "down.trace was read back as"),
        ({f"{WORDS}_end": "once"}, True, "virtual", "down.trace_end was read back as 'once'"),
        ({f"{WORDS}_end": "once"}, False, "virtual", None),
        ({f"{WORDS}_origin_ns": "7000000000"}, True, "virtual", "my.trace began "),
        ({f"{WORDS}_origin_ns": "7000000000"}, True, "host", None),
    ],
)
def test_a_trace_began_where_the_seed_draws(
    told: dict[str, str], begun: bool, kernel: str, says: str | None
) -> None:
    """Of a trace of 20 ms the seed 7 draws that 11 ms are over (SHA-256 of "7 trace")."""
    traces = {"my.trace": Trace(array("I", [10, 20]))}
    phase_ms = int.from_bytes(sha256(b"7 trace").digest()[:8]) * 20 >> 64
    right = {
        WORDS: by_trace(traces["my.trace"], *describe_room(TRACED, "down")).text,
        f"{WORDS}_end": "loop",
        f"{WORDS}_origin_ns": str(7_000_000_000 - phase_ms * 1_000_000),
    }
    assert phase_ms == 11
    asked = Trial(Condition("p", "graph", TRACED), 0, 7, kernel, "7.3")
    said = [*check_traces(right | told, asked, traces, begun=begun)]
    assert [says in each for each in said] == [True] if says else said == []
    assert [*check_traces(right, asked, {}, begun=begun)] == [
        "there is no trace my.trace to hold the link against"
    ]
