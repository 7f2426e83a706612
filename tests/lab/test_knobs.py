"""TCP knobs: their values, as messages carry them, and what the kernel has after they were set."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from testbed.base import proc
from testbed.base.errors import MissingError
from testbed.lab.congestion import AVAILABLE, read_connection
from testbed.lab.readback import ENDS, judge_paths, read_state
from testbed.lab.routes import describe_metrics, encode_metrics
from testbed.lab.rtnetlink import attributes, number_of, text_of
from testbed.lab.tcp import PINNED, Sysctls, asked_names, read_knobs, route_metrics, set_knobs
from testbed.lab.topology import open_topology
from testbed.mechanisms.fast_open.lab import FAST_OPEN, set_key
from testbed.model import Condition, TcpSpec
from tests.kernel.host_state import read_sysctls

# Every kernel lets a namespace have this one, whatever its own default is.
RENO = TcpSpec(congestion_control="reno")


def fast_open(spec: TcpSpec) -> dict[str, Sysctls]:
    """The sysctls of both ends for Fast Open."""
    return dict.fromkeys(ENDS, FAST_OPEN.sysctls(Condition("p", "c", tcp=spec)))


def test_pinned_sysctls() -> None:
    assert PINNED == {
        "net.ipv4.tcp_rmem": "4096 131072 6291456",
        "net.ipv4.tcp_wmem": "4096 16384 4194304", "net.ipv4.tcp_no_metrics_save": "1",
        "net.ipv4.tcp_fastopen_blackhole_timeout_sec": "0",
    }  # fmt: skip


@pytest.mark.root
@pytest.mark.parametrize(
    "spec",
    [RENO, replace(RENO, tfo=True, initcwnd_segments=3),
     replace(RENO, tfo=True, cookies="not-required", initcwnd_segments=1)],
)  # fmt: skip
def test_set_and_read_back(tag: str, spec: TcpSpec) -> None:
    own = fast_open(spec)
    with open_topology(tag, 1500, 1) as topology:
        pinned = set_knobs(topology, spec, own)
        state = read_state(topology)
    values, errors = read_knobs(state, spec, own=own)
    assert errors == ()
    assert tuple(judge_paths(state.table, 1500, route_metrics(spec, pinned))) == ()
    described = {f"{end}.sysctls": values[f"{end}.sysctls"] for end in ENDS}
    assert values == described | {
        **{f"{end}.{n}": v for end in ENDS for n, v in (PINNED | own[end]).items()},
        "client.net.ipv4.tcp_congestion_control": "reno",
        "server.net.ipv4.tcp_congestion_control": "reno",
        "server.initcwnd_segments": str(spec.initcwnd_segments),
    }


@pytest.mark.root
def test_settings_by_name_are_set_at_their_end_and_read_back(tag: str) -> None:
    sysctl = {"tcp_sack": 0, "client.core.somaxconn": 77, "server.ip_early_demux": 0}
    route = {
        "quickack": 1, "client.initcwnd": 12, "client.initrwnd": 20, "server.rto_min_ms": 40,
    }  # fmt: skip
    spec = replace(RENO, sysctl=sysctl, route=route)
    with open_topology(tag, 1500, 1) as topology:
        pinned = set_knobs(topology, spec)
        state = read_state(topology, asked_names(spec))
        client, server = read_connection(topology)
    values, errors = read_knobs(state, spec)
    assert errors == ()
    assert tuple(judge_paths(state.table, 1500, route_metrics(spec, pinned))) == ()
    assert {end: values[f"{end}.net.ipv4.tcp_sack"] for end in ENDS} == dict.fromkeys(ENDS, "0")
    assert values["client.net.core.somaxconn"] == "77"
    assert values["server.net.ipv4.ip_early_demux"] == "0"
    assert state.sysctls["server"]["net.core.somaxconn"] == "4096"
    assert values["client.route"] == "via 10.0.0.1 dev c0 initcwnd 12 initrwnd 20 quickack 1"
    assert values["server.route"] == (
        "via 10.0.2.1 dev s0 lock 8192 initcwnd 10 rto_min 40 quickack 1"
    )
    assert values["server.initcwnd_segments"] == "10"
    assert (client, server) == ("reno", "reno")


@pytest.mark.root
def test_one_end_may_have_another_congestion_control(tag: str) -> None:
    with open_topology(tag, 1500, 1) as topology:
        available = topology.client.read_sysctl(AVAILABLE).split()
        other = next((name for name in available if name != "reno"), "reno")
        spec = replace(RENO, route={"client.congctl": other})
        set_knobs(topology, spec)
        connection = read_connection(topology)
        state = read_state(topology)
    assert connection == (other, "reno")
    values, errors = read_knobs(state, spec)  # by the route, without a connection
    assert errors == ()
    assert values["client.net.ipv4.tcp_congestion_control"] == other
    _, errors = read_knobs(state, spec, ("bbr2", "bbr2"))
    assert errors == (
        f"client: net.ipv4.tcp_congestion_control is 'bbr2', asked was {other!r}",
        "server: net.ipv4.tcp_congestion_control is 'bbr2', asked was 'reno'",
    )


@pytest.mark.root
def test_what_the_kernel_refuses_is_named_all_at_once(tag: str) -> None:
    spec = replace(
        RENO,
        sysctl={"client.tcp_min_snd_mss": 3, "server.tcp_nonsense": "x y", "client.tcp_mem": 1},
        route={"server.congctl": "nonsense"},
    )
    with pytest.raises(MissingError) as caught, open_topology(tag, 1500, 1) as topology:
        set_knobs(topology, spec)
    kernel = f"this kernel ({os.uname().release})"
    assert str(caught.value).startswith(
        f"client: {kernel} has net.ipv4.tcp_mem for the whole machine alone; asked was '1'; "
        f"client: {kernel} refuses '3' for net.ipv4.tcp_min_snd_mss: Invalid argument; "
        f"server: {kernel} has no net.ipv4.tcp_nonsense in a namespace; asked was 'x y'; "
        "server: this kernel does not have congestion control 'nonsense'"
    )


@pytest.mark.root
def test_a_value_that_the_kernel_shows_otherwise_is_named(tag: str) -> None:
    spec = replace(RENO, sysctl={"server.tcp_rmem": "4096 8192"}, route={"quickack": 1})
    with open_topology(tag, 1500, 1) as topology:
        pinned = set_knobs(topology, replace(spec, route={}))
        state = read_state(topology, asked_names(spec))
    _, errors = read_knobs(state, spec)
    assert errors == ("server: net.ipv4.tcp_rmem is '4096 8192 6291456', asked was '4096 8192'",)
    assert list(judge_paths(state.table, 1500, route_metrics(spec, pinned))) == [
        "client: route default is 'via 10.0.0.1 dev c0', "
        "asked was 'via 10.0.0.1 dev c0 quickack 1'",
        "server: route default is 'via 10.0.2.1 dev s0 initcwnd 10', "
        "asked was 'via 10.0.2.1 dev s0 initcwnd 10 quickack 1'",
    ]


@pytest.mark.root
def test_what_did_not_take_is_named(tag: str) -> None:
    asked = replace(RENO, tfo=True, initcwnd_segments=3)
    with open_topology(tag, 1500, 1) as topology:
        pinned = set_knobs(topology, replace(asked, initcwnd_segments=10), fast_open(asked))
        topology.client.write_sysctls({"net.ipv4.tcp_fastopen": "1", "net.ipv4.tcp_sack": "0"})
        state = read_state(topology)
    values, errors = read_knobs(state, asked, own=fast_open(asked))
    assert sorted(errors) == ["client: net.ipv4.tcp_fastopen is '1', asked was '3'",
                              "client: net.ipv4.tcp_sack is '0', asked was '1'"]  # fmt: skip
    assert values["client.net.ipv4.tcp_fastopen"] == "1"
    assert values["server.initcwnd_segments"] == "10"
    assert list(judge_paths(state.table, 1500, route_metrics(asked, pinned))) == [
        "server: route default is 'via 10.0.2.1 dev s0 initcwnd 10', "
        "asked was 'via 10.0.2.1 dev s0 initcwnd 3'"
    ]


@pytest.mark.root
def test_a_lab_without_knobs_is_not_as_asked(tag: str) -> None:
    with open_topology(tag, 1500, 1) as topology:
        state = read_state(topology)
    values, _ = read_knobs(state, TcpSpec())
    assert values["server.initcwnd_segments"] == "None"
    wrong = "".join(judge_paths(state.table, 1500, route_metrics(TcpSpec(), "sysctl")))
    assert "asked was 'via 10.0.2.1 dev s0 initcwnd 10'" in wrong


@pytest.mark.root
def test_an_unknown_congestion_control(tag: str) -> None:
    with (
        pytest.raises(MissingError, match=r"'nonsense', only .*reno.*CONFIG_TCP_CONG_NONSENSE"),
        open_topology(tag, 1500, 1) as topology,
    ):
        set_knobs(topology, TcpSpec(congestion_control="nonsense"))


@pytest.mark.root
def test_no_sysctl_of_the_host_is_changed(tag: str) -> None:
    before = read_sysctls("net")
    with open_topology(tag, 1500, 1) as topology:
        spec = replace(RENO, tfo=True, cookies="not-required")
        set_knobs(topology, spec, fast_open(spec))
        set_key(topology, "rotated")
        during = read_sysctls("net")
    after = read_sysctls("net")
    assert len(before) > 100
    for found in (during, after):
        assert {path for path in before if path in found and found[path] != before[path]} == set()
    assert proc.run(("ip", "route", "show", "default")).stdout.count("initcwnd") == 0


def test_attributes_have_the_numbers_of_the_kernel() -> None:
    asked: dict[str, int | str] = {"congctl": "reno", "quickack": 1, "initrwnd": 20, "initcwnd": 3,
                                   "rto_min_ms": 50}  # fmt: skip
    found = attributes(encode_metrics(asked))
    # RTAX_LOCK, _INITCWND, _RTO_MIN, _INITRWND, _QUICKACK, _CC_ALGO of rtnetlink.h, in order
    assert list(found) == [1, 11, 13, 14, 15, 16]
    assert [number_of(found[kind]) for kind in (1, 11, 13, 14, 15)] == [1 << 13, 3, 50, 20, 1]
    assert text_of(found[16]) == "reno"
    assert describe_metrics(asked) == (
        "lock 8192 initcwnd 3 rto_min 50 initrwnd 20 quickack 1 congctl reno"
    )


def test_what_the_kernel_does_not_keep_is_not_asked_of_it() -> None:
    assert encode_metrics({"quickack": 0}) == encode_metrics({}) == b""
    assert describe_metrics({"quickack": 0, "initcwnd": 10}) == "initcwnd 10"
