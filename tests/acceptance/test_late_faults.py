"""Faults planted after the lab was measured and read: none of them prints a number.

Each is a command that a client of a faulty bundle runs as root in the guest, right before its load
or in the middle of it; the seed of the trial says which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from testbed.model import Record
from tests.acceptance.house import House, Ran
from tests.copies import copy_code

pytestmark = pytest.mark.guest

PAGE = "wikipedia"
RTT_MS = 100
NETEM = "tc -n near qdisc change dev n0 root netem limit 100000"
TBF = "tc -n far qdisc change dev f0 root stab overhead -14 linklayer ethernet tbf burst 1540"
AROUND = (
    "ip -n server link add x0 type veth peer name x1 netns client; "
    "ip -n server address add 10.7.0.1/24 dev x0; ip -n server link set x0 up; "
    "ip -n client address add 10.7.0.2/24 dev x1; ip -n client link set x1 up; "
    "ip -n server route add 10.0.0.2/32 via 10.7.0.2 initcwnd 10"
)


def _sysctl(end: str, name: str, value: str) -> str:
    return f"ip netns exec {end} sh -c 'echo {value} > /proc/sys/net/ipv4/{name}'"


@dataclass(frozen=True)
class Fault:
    """A command before the load, or in the middle of it and another one to undo it."""

    says: str
    before: str = ":"
    during: str = ":"
    undo: str = ":"
    also: str = ""


FAULTS = {
    "nothing": Fault(""),
    "loss": Fault("near: discipline of n0 was", f"{NETEM} delay 50ms loss 0.5% rate 4000kbit -14"),
    "rate": Fault("rate_bytes_s 495000", f"{NETEM} delay 50ms rate 3960kbit -14"),
    "delay": Fault("delay_ns 51000000", f"{NETEM} delay 51ms rate 4000kbit -14"),
    "framing": Fault("overhead_bytes 0", f"{NETEM} delay 50ms rate 4000kbit"),
    "buffer": Fault("limit_bytes 64000", f"{TBF} rate 4000kbit limit 64000"),
    "MTU": Fault("server: MTU of s0 was '1500'", "ip -n server link set s0 mtu 1400"),
    "receive buffer": Fault("client: net.ipv4.tcp_rmem was '4096 131072 6291456' before the load",
                            _sysctl("client", "tcp_rmem", "4096 16384 32768")),
    "offloads": Fault("server: offloads of s0 was",
                      "ip netns exec server ethtool -K s0 tso on gso on; "
                      "ip netns exec client ethtool -K c0 gro on"),
    "stray path": Fault("server: device x0 (up", AROUND,
                        also="the SYN-ACKs of 14 of 14 connections are not in the capture"),
    "stray packets": Fault("packets went around the link",
                           AROUND.replace("10.0.0.2/32", "10.7.7.7/32")
                           + "; ip netns exec server python3 -c 'import socket; "
                           'socket.socket(2, 2).sendto(b"x", ("10.7.0.2", 9))\''),
    "initial window": Fault(
        "server: route 10.0.0.2/32 (via 10.0.2.1 dev s0 initcwnd 3) was not there",
        "ip -n server route add 10.0.0.2/32 via 10.0.2.1 initcwnd 3",
        also="stopped after 3 segments, asked was an initial window of 10",
    ),
    "larger window": Fault("initcwnd 20) was not there",
                           "ip -n server route add 10.0.0.0/24 via 10.0.2.1 initcwnd 20",
                           also="segments, asked was an initial window of 10"),
    "window by rule": Fault("server: rule 100 (table 100",
                            "ip -n server route add default via 10.0.2.1 initcwnd 3 table 100; "
                            "ip -n server rule add to 10.0.0.2 lookup 100 priority 100",
                            also="stopped after 3 segments"),
    "congestion control": Fault(
        "server: net.ipv4.tcp_congestion_control is 'reno', asked was 'cubic'",
        "ip -n server route add 10.0.0.2/32 via 10.0.2.1 initcwnd 10 congctl reno",
    ),
    "route attributes": Fault(
        "quickack 1", "ip -n client route add 10.10.0.0/16 via 10.0.0.1 quickack 1 rto_min 20ms"
    ),
    "slow start": Fault("server: net.ipv4.tcp_slow_start_after_idle was '1'",
                        _sysctl("server", "tcp_slow_start_after_idle", "0")),
    "SACK": Fault("client: net.ipv4.tcp_sack was '1'", _sysctl("client", "tcp_sack", "0")),
    "loss for a while": Fault("near: a discipline changed during the load",
                              during=f"{NETEM} delay 50ms loss 20% rate 4000kbit -14",
                              undo=f"{NETEM} delay 50ms rate 4000kbit -14"),
    "rate for a while": Fault("far: a discipline changed during the load",
                              during=f"{TBF} rate 2000kbit limit 131072",
                              undo=f"{TBF} rate 4000kbit limit 131072"),
    "MTU for a while": Fault("server: MTU of s0 was '1400' during the load",
                             during="ip -n server link set s0 mtu 1400",
                             undo="ip -n server link set s0 mtu 1500"),
    "route for a while": Fault("server: a route changed during the load",
                               during="ip -n server route add 10.0.0.2/32 via 10.0.2.1 initcwnd 3",
                               undo="ip -n server route delete 10.0.0.2/32"),
    "sysctl for a while": Fault("server: net.ipv4.tcp_rto_min_us was written during the load",
                                during=_sysctl("server", "tcp_rto_min_us", "20000"),
                                undo=_sysctl("server", "tcp_rto_min_us", "200000")),
}  # fmt: skip

PLANT = """

def _plant(load):
    import subprocess, time

    def faulty(self, order):
        before, during, undo = {faults!r}[order.seed]
        subprocess.run(before, shell=True, check=True)
        # The guest forgets for a second before the load begins.
        wait_s = order.wait_until_ns / 1e9 - time.time() + 1.4
        later = f"sleep {{wait_s}}; {{during}}; sleep 0.4; {{undo}}"
        child = subprocess.Popen(later, shell=True) if during != ":" else None
        seen = load(self, order)
        assert child is None or child.wait() == 0
        return seen

    return faulty


StartedGraph.load = _plant(StartedGraph.load)
"""


@pytest.fixture(scope="module")
def ran(house: House, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    house.take(PAGE)
    faults = [(fault.before, fault.during, fault.undo) for fault in FAULTS.values()]
    with pytest.MonkeyPatch.context() as patch:
        code = copy_code(tmp_path_factory.mktemp("faulty"), patch)
        client = code / "client" / "graph.py"
        client.write_text(client.read_text() + PLANT.format(faults=faults))
        yield house.run(
            page=PAGE, client="graph", rtt_ms=RTT_MS, tfo=False, repetitions=len(FAULTS)
        )


def find(ran: Ran, name: str) -> Record:
    (record,) = (r for r in ran.records if r.trial.seed == list(FAULTS).index(name))
    return record


def test_without_a_fault_there_is_a_number(ran: Ran) -> None:
    record = find(ran, "nothing")
    assert (record.outcome, record.reason) == ("ok", None)
    assert record.lab is not None and record.proof is not None
    assert record.lab.traffic["down.lost"] == record.lab.traffic["waiting"] == 0
    assert record.lab.traffic["down.delivered"] > 200
    assert record.proof.server_retransmits == record.proof.server_counters["TcpRetransSegs"]
    assert record.proof.first_flight_segments == 10


@pytest.mark.parametrize("name", [name for name in FAULTS if name != "nothing"])
def test_a_late_fault_prints_no_number(ran: Ran, name: str) -> None:
    fault, record = FAULTS[name], find(ran, name)
    assert record.lab is not None, record.reason
    assert record.outcome == "lab_mismatch"
    assert fault.says in "; ".join(record.lab.changes)
    assert record.proof is not None
    assert fault.also in "; ".join(record.proof.problems)
