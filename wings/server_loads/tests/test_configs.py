"""Experiments on loaded servers ask for what their source states, and the two of today alike."""

from __future__ import annotations

from dataclasses import replace

from testbed.base.places import CONFIGS
from testbed.experiment.config import load_experiment
from testbed.runner.prepare import read_catalogue
from wings.server_loads.spec import ServerLoad

MACHINES = (0.1, 1_000_000, 1_000_000)
"""Section 6.2: RTT about 100 us, a Gigabit Ethernet switch."""


def loads(name: str) -> list[ServerLoad]:
    experiment = load_experiment(CONFIGS / f"{name}.toml", read_catalogue())
    return [each for each in experiment.conditions if isinstance(each, ServerLoad)]


def test_figure_6_is_a_page_of_5_kb_at_constant_rates() -> None:
    found = loads("paper-fig6-server-cpu")
    assert {each.server.response_bytes for each in found} == {5120}
    assert {(each.arrivals.loop, each.arrivals.spacing) for each in found} == {("open", "fixed")}
    assert {each.arrivals.http_version for each in found} == {"1.0"}
    rates = sorted({each.arrivals.rate_per_s for each in found})
    assert {2000, 3000, 4000, 5000, 6000} < set(rates)
    assert len(found) == 2 * len(rates)
    assert {link_of(each) for each in found} == {MACHINES}


def test_the_closed_loop_has_one_request_outstanding() -> None:
    off, on = loads("paper-closed-loop")
    assert (off.arrivals.loop, off.arrivals.clients) == ("closed", 1)
    assert off.server.response_bytes < 1000  # one packet
    assert replace(off, tcp=replace(off.tcp, tfo=True)) == on
    assert link_of(off) == MACHINES


def test_today_s_two_differ_in_their_queues_alone() -> None:
    long, short = loads("today-long-queues"), loads("today-short-queues")
    assert {(each.server.syn_backlog, each.server.listen_backlog) for each in long} == {
        (4096, 4096)
    }
    assert {(each.server.syn_backlog, each.server.listen_backlog) for each in short} == {(128, 128)}
    assert {each.arrivals for each in long} == {each.arrivals for each in short}
    assert {(each.link, each.server.price) for each in long} == {
        (each.link, each.server.price) for each in short
    }
    assert {(each.server.workers, each.tcp.tfo) for each in long} == {
        (1, False), (1, True), (2, False), (2, True),
    }  # fmt: skip


def link_of(load: ServerLoad) -> tuple[float, int, int]:
    return load.link.rtt_ms, load.link.down_kbit, load.link.up_kbit
