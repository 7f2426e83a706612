"""A capture tells the link's rate and round trip, whatever was measured before."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from testbed.capture.flows import Flow, Flows
from testbed.capture.packets import ACK, SYN, Packet
from testbed.model import LinkChange, LinkSpec
from testbed.model.impairments import Phase, phases
from testbed.model.line import serialisation_ms
from testbed.model.trace import RunningTrace, Trace
from testbed.proof.line import check_line as check
from tests.evidence import found

LINK = LinkSpec(rtt_ms=20.0)
BEGIN_NS = 10**12


def check_line(
    flows: Flows, link: LinkSpec, steps: Sequence[LinkChange] = (),
    traces: Mapping[str, RunningTrace] | None = None,
) -> list[str]:  # fmt: skip
    """What packets show of another link than ``link``."""
    return found(check, link, flows=flows, steps=steps, traces=traces or {})


def assert_told(told: list[str], says: str) -> None:
    """That is what is told, or nothing where it is empty."""
    assert says in "; ".join(told) and bool(told) is bool(says)


def handshake(took_ns: int) -> Flows:
    """One handshake that took so long, and nothing else."""
    syn = Packet(BEGIN_NS, b"", 74, "TCP", ip_bytes=60, flags=SYN)
    synack = Packet(BEGIN_NS + took_ns, b"", 74, "TCP", ip_bytes=60, flags=SYN | ACK)
    return Flows((Flow(syn, [(True, syn), (False, synack)], synack),), 0, 0, ())


def flows(
    link: LinkSpec, handshakes: int = 2, queued_us: float = 0.0, packets: int = 3,
    syn_bytes: int = 60,
) -> Flows:  # fmt: skip
    """What an idle link carries: handshakes a second apart, and packets as they come out of it.

    All SYNs but the first wait in the uplink for ``queued_us``.
    """
    made, arrivals = [], []
    for number in range(handshakes):
        at_ns = BEGIN_NS + number * 10**9
        took_ms = link.rtt_ms + serialisation_ms(syn_bytes, link.up_kbit, link.framing_bytes)
        took_ms += serialisation_ms(60, link.down_kbit, link.framing_bytes)
        took_ms += queued_us / 1000 if number else 0.0
        syn = Packet(at_ns, b"", syn_bytes + 14, "TCP", ip_bytes=syn_bytes, flags=SYN)
        synack = Packet(at_ns + round(took_ms * 1e6), b"", 74, "TCP", ip_bytes=60, flags=SYN | ACK)
        made.append(Flow(syn, [(True, syn), (False, synack)], synack))
    each_ns = round(serialisation_ms(1500, link.down_kbit, link.framing_bytes) * 1e6)
    arrivals = [(BEGIN_NS + number * each_ns, 1500) for number in range(packets)]
    return Flows(tuple(made), 0, 0, tuple(arrivals))


@pytest.mark.parametrize("link", [LINK, replace(LINK, framing_bytes=14, up_kbit=1000)])
def test_the_link_that_was_asked(link: LinkSpec) -> None:
    assert not check_line(flows(link), link)
    assert not check_line(flows(link, queued_us=5000), link)
    assert not check_line(flows(link, syn_bytes=600), link)
    assert not check_line(flows(link, handshakes=0, packets=0), link)


@pytest.mark.parametrize(
    ("other", "says"),
    [({"down_kbit": 8000}, "2 packets came down faster than 4000 kbit/s can bring them"),
     ({"down_kbit": 4040}, "2 packets came down faster than 4000 kbit/s can bring them"),
     ({"rtt_ms": 19.95}, "a SYN-ACK came 50.0 us sooner than over 20 ms, 256 kbit/s up"),
     ({"up_kbit": 512}, "a SYN-ACK came 937.5 us sooner than over 20 ms"),
     ({"rtt_ms": 20.05}, "each SYN-ACK came 50.0 us or more later than over 20 ms"),
     ({"down_kbit": 2000}, "each SYN-ACK came 120.0 us or more later")],
)  # fmt: skip
def test_another_link(other: dict[str, float], says: str) -> None:
    assert says in "; ".join(check_line(flows(replace(LINK, **other)), LINK))  # type: ignore[arg-type]


def test_handshakes_that_wait_for_what_the_client_sent_before() -> None:
    made = flows(replace(LINK, rtt_ms=22.0))
    for lines_before, said in (((1, 1), False), ((1, 3), True)):
        departures = tuple(
            sent
            for flow, before_ms in zip(made.flows, lines_before, strict=True)
            for sent in ((flow.syn.at_ns - before_ms * 10**6, 86), (flow.syn.at_ns, 60))
        )  # a question of 86 bytes takes 2.7 ms
        found = check_line(replace(made, departures=departures), LINK)
        assert any("each SYN-ACK came 2000.0 us or more later" in each for each in found) is said


@pytest.mark.parametrize(("gap_us", "said"), [(120, False), (140, True)])
def test_handshakes_that_wait_for_what_came_down_before(gap_us: int, said: bool) -> None:
    """A SYN-ACK of 60 bytes takes 120 us at 4000 kbit/s."""
    made = flows(replace(LINK, rtt_ms=22.0))
    answers = [flow.synack.at_ns for flow in made.flows if flow.synack is not None]
    arrivals = tuple(
        came for at_ns in answers for came in ((at_ns - gap_us * 1000, 60), (at_ns, 60))
    )
    found = check_line(replace(made, arrivals=arrivals), LINK)
    assert any("each SYN-ACK came 2000.0 us or more later" in each for each in found) is said


def test_a_lost_handshake_says_nothing_of_how_long_one_takes() -> None:
    lossy = replace(LINK, loss_pct=1.0)
    assert not check_line(flows(replace(LINK, rtt_ms=30.0)), lossy)
    once = flows(replace(LINK, rtt_ms=1000.0), handshakes=1)
    again = once.flows[0].syn
    once.flows[0].packets.append((True, again))
    assert not check_line(once, LINK)


TRACED = replace(LINK, trace_down="x")
RUNNING = RunningTrace(Trace(array("I", [3, 3, 10, 20])), BEGIN_NS, once=True)


def come(*moments_ms: float, ip_bytes: int = 1500) -> Flows:
    """Packets that leave at these ms of the trace, and come after the delay."""
    return Flows(
        *((), 0, 0),
        tuple((BEGIN_NS + round((ms + LINK.rtt_ms / 2) * 1e6), ip_bytes) for ms in moments_ms),
    )


@pytest.mark.parametrize(
    ("packets", "says"),
    [
        (come(3, 3, 10, 20), ""),
        (come(3.009, 20), ""),
        (come(3, 3, 3, ip_bytes=1000), ""),
        (come(3, 3, 3, 3, ip_bytes=900), ""),  # of the first the end only
        (come(4, 11, 20), "2 of 3 packets came down at no opportunity of the trace x, the first"),
        (
            come(3.02),
            "1 of 1 packets came down at no opportunity of the trace x, the first at 3.02",
        ),
        (come(23), "at no opportunity of the trace x, the first at 23.000 ms of it"),
        (come(10, 10, 10), "1 times more came down than opportunities of x let through"),
    ],
)
def test_packets_come_at_opportunities_of_a_trace(packets: Flows, says: str) -> None:
    assert_told(check_line(packets, TRACED, (), {"down": RUNNING}), says)


HOP = replace(LINK, hop_down="h", hop_up="u")


@pytest.mark.parametrize(
    ("down", "up", "says"),
    [((3, 3, 10), (3, 20), ""),
     ((3, 11), (3,), "1 of 2 packets came down at no opportunity of the trace h, the first at"),
     ((3,), (4, 20), "1 of 2 packets left at no opportunity of the trace u, the first at 4.000"),
     ((10, 10, 10), (), "1 times more came down than opportunities of h let through"),
     ((), (3, 3, 20, 20, 20), "1 times more left than opportunities of u let through")],
)  # fmt: skip
def test_packets_pass_a_last_hop_at_its_opportunities(
    down: tuple[int, ...], up: tuple[int, ...], says: str
) -> None:
    seen = Flows(
        *((), 0, 0),
        *(tuple((BEGIN_NS + ms * 10**6, 1500) for ms in moments) for moments in (down, up)),
    )
    assert_told(check_line(seen, HOP, (), {"hop_down": RUNNING, "hop_up": RUNNING}), says)


@pytest.mark.parametrize(
    ("rtt_ms", "came_ms", "says"),
    [
        (5.0, 10.0, ""),
        (7.995, 10.0, ""),  # it may have come to the hop at 10 ms, or just behind
        (7.995, 20.0, ""),
        (5.0, 20.0, "each SYN-ACK came 10000.0 us or more later than over 5 ms, 256 kbit/s up"),
        (8.1, 10.0, "a SYN-ACK came 10000.0 us sooner than over 8.1 ms"),
    ],
)
def test_an_answer_waits_for_the_last_hop(rtt_ms: float, came_ms: float, says: str) -> None:
    link = LinkSpec(rtt_ms=rtt_ms, hop_down="h")
    seen = handshake(round(came_ms * 1e6))
    assert_told(check_line(seen, link, (), {"hop_down": RUNNING}), says)


def test_a_trace_that_comes_again() -> None:
    again = replace(RUNNING, once=False)
    assert not check_line(come(23, 43), TRACED, (), {"down": again})


@pytest.mark.parametrize(
    ("took_ms", "says"),
    [(23.0, ""), (22.9, "a SYN-ACK came 100.0 us sooner than over 20 ms, the trace y up"),
     (23.1, "each SYN-ACK came 100.0 us or more later than over 20 ms, the trace y up and 4000")],
)  # fmt: skip
def test_a_handshake_waits_for_opportunities(took_ms: float, says: str) -> None:
    link = replace(LINK, trace_up="y")
    took_ns = round((took_ms + serialisation_ms(60, link.down_kbit, 0)) * 1e6)
    assert_told(check_line(handshake(took_ns), link, (), {"up": RUNNING}), says)


def step(phase: Phase) -> LinkChange:
    """A change that began a microsecond late, of a load that began with the first SYN."""
    return LinkChange(
        "", phase.at_ns / 1e6, phase.at_ns / 1e6 + 0.001, 0.001, BEGIN_NS + phase.at_ns + 1000
    )


def changed(text: str) -> tuple[LinkSpec, tuple[LinkChange, ...]]:
    link = replace(LINK, changes=text)
    return link, tuple(step(phase) for phase in phases(link)[1:])


def test_each_packet_is_held_against_the_line_of_its_time() -> None:
    link, steps = changed("at 0.5 s: rtt_ms 40, down_kbit 1000")
    before, behind = flows(LINK, handshakes=1), flows(replace(LINK, rtt_ms=40.0, down_kbit=1000), 2)
    later = [(at_ns + 10**9, size) for at_ns, size in behind.arrivals]
    both = Flows((*before.flows, behind.flows[1]), 0, 0, (*before.arrivals, *later))
    assert not check_line(both, link, steps)
    quick = replace(both, arrivals=tuple((at_ns + 10**9, size) for at_ns, size in before.arrivals))
    (said,) = (line for line in check_line(quick, link, steps) if "faster" in line)
    assert said.startswith("2 packets came down faster than 4000 or 1000")
    early = flows(LINK)
    assert "a SYN-ACK came 20" in "; ".join(check_line(early, link, steps))
    # What was not performed was no other line.
    assert not check_line(early, link, ())


@pytest.mark.parametrize(("behind_ms", "early"), [(1, 0), (30, 1)])
def test_what_is_under_way_at_a_change_has_the_rate_before(behind_ms: int, early: int) -> None:
    link, steps = changed("at 0.5 s: down_kbit 1000")
    at_ns = BEGIN_NS + (500 + 10 + behind_ms) * 10**6
    line_ns = round(serialisation_ms(200, LINK.down_kbit, LINK.framing_bytes) * 1e6)
    seen = replace(flows(LINK, packets=0), arrivals=((at_ns, 1500), (at_ns + line_ns, 200)))
    told = [line for line in check_line(seen, link, steps) if "faster" in line]
    said = "1 packets came down faster than 4000 or 1000 kbit/s can bring them"
    assert told == [said] * early


def test_nothing_comes_down_a_line_that_is_down() -> None:
    link, steps = changed("at 0.1 s: down for 0.2 s")
    for at_ms, came in ((99, 0), (112, 0), (120, 1), (309, 1), (311, 0)):
        seen = replace(flows(LINK), arrivals=((BEGIN_NS + at_ms * 10**6, 1500),))
        said = ["1 packets came down while the line was down"] * came
        assert check_line(seen, link, steps) == said, at_ms


@pytest.mark.parametrize(
    ("came_ms", "says"),
    [
        ((13, 30, 40), ""),  # the last two left at 10 and 20 ms, when the delay was longer
        ((13, 13, 30), ""),
        ((13, 20, 40), "1 of 3 packets came down at no opportunity of the trace x, the first"),
        ((13, 30.02), "1 of 2 packets"),
        ((23,), "1 of 1 packets"),
        ((30, 30, 30), "1 times more came down than opportunities of x let through"),
    ],
)
def test_a_packet_at_an_opportunity_has_the_delay_of_that_time(
    came_ms: tuple[float, ...], says: str
) -> None:
    link, steps = changed("at 0.008 s: rtt_ms 40")
    seen = Flows((), 0, 0, tuple((BEGIN_NS + round(ms * 1e6), 1500) for ms in came_ms))
    traced = replace(link, trace_down="x")
    assert_told(check_line(seen, traced, steps, {"down": RUNNING}), says)


@pytest.mark.parametrize(
    ("knobs", "other", "says"),
    [({"delay_jitter_ms": 3.0}, {"rtt_ms": 14.0}, ""),
     ({"delay_jitter_ms": 3.0}, {"rtt_ms": 40.0}, ""),
     ({"delay_jitter_ms": 3.0}, {"rtt_ms": 13.9}, "a SYN-ACK came 100.0 us sooner than over 20"),
     ({"delay_jitter_ms": 3.0}, {"down_kbit": 8000}, "2 packets came down faster than 4000"),
     ({"reorder_pct": 1.0}, {"rtt_ms": 40.0}, ""),
     ({"reorder_pct": 1.0}, {"rtt_ms": 19.9}, "sooner than over 20 ms"),
     ({"duplicate_pct": 1.0}, {"rtt_ms": 40.0}, "or more later than over 20 ms"),
     ({"delay_up_ms": 4.0}, {"rtt_ms": 20.0}, "")],
)  # fmt: skip
def test_what_holds_of_a_line_whatever_it_draws(
    knobs: dict[str, float], other: dict[str, float], says: str
) -> None:
    drawn = replace(LINK, **knobs)  # type: ignore[arg-type]
    assert_told(check_line(flows(replace(LINK, **other)), drawn), says)  # type: ignore[arg-type]
