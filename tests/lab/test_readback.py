"""The lab read back whole: what was not asked for, and what is not as it was, is named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pytest

from testbed.base import proc
from testbed.lab.readback import State, changed, judge_disciplines, judge_paths, read_state
from testbed.lab.tcp import route_metrics, set_knobs
from testbed.lab.topology import ROLES, Topology, devices_of, open_topology
from testbed.mechanisms.ip.lab import IP
from testbed.model import Condition, Ip, LinkSpec, TcpSpec

SPEC = TcpSpec(congestion_control="reno", initcwnd_segments=4)


@pytest.fixture
def topology(tag: str) -> Iterator[Topology]:
    with open_topology(tag, 1400, 2) as topology:
        set_knobs(topology, SPEC)
        yield topology


def judge(state: State) -> list[str]:
    """What is wrong with the paths of a lab without a link."""
    return list(judge_paths(state.table, 1400, route_metrics(SPEC, "sysctl")))


def do(topology: Topology, role: str, command: str) -> None:
    """``ip COMMAND`` in the namespace of ``role``."""
    proc.run(("ip", "-n", topology.role(role).name, *command.split()))


def test_devices_and_who_is_at_their_other_end() -> None:
    assert devices_of("near") == {"n0": "10.0.0.2", "n1": "10.0.1.2"}
    assert [device for role in ROLES for device in devices_of(role)] == [
        "c0", "n0", "n1", "f0", "f1", "s0",
    ]  # fmt: skip


def test_a_table_against_itself() -> None:
    assert changed({"a: b": "1", "c: d": "2"}, {"a: b": "3", "e: f": "4"}) == (
        "a: b was '1' before the load, and is '3' after it",
        "c: d (2) is not there any more after the load",
        "e: f (4) was not there before the load",
    )


@pytest.mark.parametrize("ip", get_args(Ip))
@pytest.mark.root
def test_a_lab_of_each_ip_is_read_back(tag: str, ip: Ip) -> None:
    with open_topology(tag, 1400, 2, ip=ip) as topology:
        set_knobs(topology, SPEC)
        state, condition = read_state(topology), Condition("p", "c", LinkSpec(ip=ip))
        table = state.table
        metrics, plan = route_metrics(SPEC, "sysctl"), topology.plan
        assert list(judge_paths(table, 1400, metrics, plan)) == []
        assert IP.read(topology, state, condition) == (dict(IP.expect(condition)), ())
        if ip != "4":
            do(topology, "near", "-6 route add 2001:db8:99::/48 via 2001:db8:0:1::2")
            (said,) = judge_paths(read_state(topology).table, 1400, metrics, plan)
            assert said.startswith("near: route 2001:db8:99::/48 is there (via 2001:db8:0:1::2")
    if ip == "6":
        assert table["server: route ::/0"] == "via 2001:db8:0:2::1 dev s0 initcwnd 4"
        assert "server: route default" not in table


@pytest.mark.root
def test_a_lab_is_as_asked_and_stays_so(topology: Topology) -> None:
    before, after = read_state(topology), read_state(topology)
    assert judge(before) == []
    assert changed(before.table, after.table) == ()
    assert list(judge_disciplines(before.disciplines, {})) == []
    assert before.table["server: route default"] == "via 10.0.2.1 dev s0 initcwnd 4"
    assert before.table["near: MTU of n1"] == "1400"
    assert {"client: net.ipv4.tcp_sack", "server: net.ipv4.tcp_rmem"} < before.table.keys()
    assert not any("fastopen_key" in name for name in before.table)


@pytest.mark.root
@pytest.mark.parametrize(
    ("role", "command", "asked", "found"),
    [
        ("server", "route add 10.0.0.2/32 via 10.0.2.1 initcwnd 3",
         "server: route 10.0.0.2/32 is there (via 10.0.2.1 dev s0 initcwnd 3), "
         "and nobody asked for it", "server: route 10.0.0.2/32 (via"),
        ("server", "route add 10.0.0.2/32 via 10.0.2.1 table local quickack 1 ssthresh 2",
         "of table 255 is there (via 10.0.2.1 dev s0 ssthresh 2 quickack 1)", "not there before"),
        ("server", "route replace default via 10.0.2.1 initcwnd 4 rto_min 20ms features ecn",
         "via 10.0.2.1 dev s0 lock 8192 initcwnd 4 features 1 rto_min 20', asked was",
         "server: route default was"),
        ("client", "route change default via 10.0.0.1 window 2000 initrwnd 2 congctl reno",
         "window 2000 initrwnd 2 congctl reno'", "client: route default was"),
        ("server", "rule add to 10.0.0.2 lookup 100 priority 7",
         "server: rule 7 is there (table 100", "server: rule 7 (table 100"),
        ("near", "link set n1 mtu 1300", "near: MTU of n1 is '1300', asked was '1400'",
         "near: MTU of n1 was '1400' before the load, and is '1300' after it"),
        ("far", "route delete 10.10.0.0/16", "far: route 10.10.0.0/16 is None, asked", "any more"),
    ],
)  # fmt: skip
def test_another_path(topology: Topology, role: str, command: str, asked: str, found: str) -> None:
    before = read_state(topology)
    do(topology, role, command)
    after = read_state(topology)
    assert asked in "; ".join(judge(after))
    assert found in "; ".join(changed(before.table, after.table))


@pytest.mark.root
def test_another_device(topology: Topology) -> None:
    before = read_state(topology)
    do(topology, "client", "link add x0 type veth peer name x1")
    do(topology, "client", "link set x0 up")
    after = read_state(topology)
    assert judge(after) == ["client: there is another device, x0"]
    assert "client: device x0 (up" in "; ".join(changed(before.table, after.table))


@pytest.mark.root
def test_offloads_and_carrier(topology: Topology) -> None:
    before = read_state(topology)
    proc.run((*topology.near.prefix, "ethtool", "-K", "n0", "gro", "on"))
    do(topology, "far", "link set f1 down")
    do(topology, "far", "link set f1 up")
    found = "; ".join(changed(before.table, read_state(topology).table))
    assert "near: offloads of n0 was" in found
    # Up again, but it is told how often: at the other end, too.
    assert "server: device s0 was 'up," in found


@pytest.mark.root
def test_a_discipline_that_nobody_asked_for(topology: Topology) -> None:
    proc.run(("tc", "-n", topology.server.name, "qdisc", "add", "dev", "s0", "root", "pfifo"))
    (said,) = judge_disciplines(read_state(topology).disciplines, {})
    assert said.startswith("server: s0") and "nobody asked for: " in said
