"""What is set and taken back again is seen, and what only reads or listens is not."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from testbed.base import proc
from testbed.base.namespace import Namespace
from testbed.lab.link.discipline import Discipline, encode_discipline, netem
from testbed.lab.readback import read_state
from testbed.lab.rtnetlink import NEWQDISC
from testbed.lab.topology import ROLES, Topology, open_topology
from testbed.lab.watch import Watch, watch

SACK, REORDERING = "net.ipv4.tcp_sack", "net.ipv4.tcp_reordering"


@pytest.fixture
def topology(tag: str) -> Iterator[Topology]:
    with open_topology(tag, 1500, 1) as topology:
        yield topology


def seen(topology: Topology, act: Callable[[], object]) -> str:
    """What a watch says of ``act``."""
    table = read_state(topology).table
    with watch(topology) as watched:
        act()
        return "; ".join(watched.read(table))


def commands(namespace: Namespace, *lines: str) -> Callable[[], object]:
    """Several ``ip`` commands in ``namespace``."""
    return lambda: [proc.run(("ip", "-n", namespace.name, *line.split())) for line in lines]


@pytest.mark.root
def test_nothing(topology: Topology) -> None:
    assert seen(topology, lambda: None) == ""
    assert seen(topology, lambda: read_state(topology)) == ""


@pytest.mark.root
def test_whoever_listens_changes_nothing(topology: Topology) -> None:
    argv = (*topology.client.prefix, "tcpdump", "-i", "c0", "-c", "1", "-w", "/dev/null")
    # Promiscuous mode on and off is told of, too.
    assert seen(topology, lambda: proc.run(("timeout", "1", *argv), check=False)) == ""


@pytest.mark.root
@pytest.mark.parametrize(
    ("role", "lines", "said"),
    [
        ("server", ("route add 10.0.0.2/32 via 10.0.2.1 initcwnd 3", "route delete 10.0.0.2/32"),
         "server: a route changed during the load"),
        ("near", ("link set n1 mtu 1400", "link set n1 mtu 1500"),
         "near: MTU of n1 was '1400' during the load"),
        ("client", ("link add x0 type veth peer name x1", "link delete x0"),
         "client: a device changed during the load"),
        ("far", ("rule add to 10.0.0.2 lookup 100", "rule delete to 10.0.0.2 lookup 100"),
         "far: a rule changed during the load"),
        ("client", ("address add 10.9.9.9/32 dev lo", "address delete 10.9.9.9/32 dev lo"),
         "client: addresses, classes or filters changed during the load"),
    ],
)  # fmt: skip
def test_a_change_that_was_taken_back(
    topology: Topology, role: str, lines: tuple[str, ...], said: str
) -> None:
    assert said in seen(topology, commands(topology.role(role), *lines))


@pytest.mark.root
def test_offloads_that_were_on(topology: Topology) -> None:
    def act() -> None:
        for value in ("on", "off"):
            proc.run((*topology.server.prefix, "ethtool", "-K", "s0", "gro", value))

    assert "server: offloads changed during the load" in seen(topology, act)


@pytest.mark.root
def test_a_discipline_for_a_while(topology: Topology) -> None:
    def act() -> None:
        for words in ("add dev n0 root pfifo limit 3", "delete dev n0 root"):
            proc.run(("tc", "-n", topology.near.name, "qdisc", *words.split()))

    assert "near: a discipline changed during the load" in seen(topology, act)


@pytest.mark.root
def test_a_sysctl_that_was_written(topology: Topology) -> None:
    def act() -> None:
        topology.server.write_sysctls({SACK: "0"})
        topology.server.write_sysctls({SACK: "1"})
        topology.client.write_sysctls({REORDERING: "3"})
        topology.near.write_sysctls({SACK: "0"})  # nobody sends from there

    assert seen(topology, act) == (
        f"server: {SACK} was written during the load; "
        f"client: {REORDERING} was written during the load"
    )


@pytest.mark.root
def test_more_than_can_be_told(topology: Topology) -> None:
    def act() -> None:
        lines = "".join(
            f"address add 10.9.{i // 250}.{i % 250 + 1}/32 dev lo\n" for i in range(3000)
        )
        proc.run(("ip", "-n", topology.client.name, "-batch", "-"), stdin=lines)

    assert "client: more changed during the load than can be told" in seen(topology, act)


SLOW, SLOWER = netem(1000, 5_000_000, 1000, 0, 0.0), netem(500, 5_000_000, 1000, 0, 0.0)


@pytest.mark.parametrize(
    ("asked", "told", "says"),
    [([SLOW], [SLOW], ""), ([SLOW, SLOWER], [SLOW, SLOWER], ""),
     ([SLOW], [SLOW, SLOW], "far: a discipline changed during the load"),
     ([SLOW, SLOWER], [SLOWER, SLOW], "far: a discipline changed during the load"),
     ([SLOW, SLOWER], [SLOW], "far: discipline of f1 was not set to 'netem rate_bytes_s 62500 "),
     ([], [SLOW], "far: a discipline changed during the load")],
)  # fmt: skip
def test_changes_that_were_asked_for(
    asked: list[Discipline], told: list[Discipline], says: str
) -> None:
    """In their order, each as often as it was asked for, and none in vain."""
    with ExitStack() as undo:
        ends = {role: socket.socketpair(type=socket.SOCK_DGRAM) for role in ROLES}
        for pair in ends.values():
            for end in pair:
                undo.enter_context(end)
                end.setblocking(False)
        for discipline in told:
            body = struct.pack("=BxxxiIII", 0, 3, 0x10000, 0xFFFFFFFF, 0) + encode_discipline(
                discipline
            )
            message = struct.pack("=IHHII", 16 + len(body), NEWQDISC, 0, 0, 0) + body
            ends["far"][1].send(message)
        written, other = os.pipe2(os.O_NONBLOCK)
        undo.callback(os.close, written)
        undo.callback(os.close, other)
        seen = Watch(
            {role: pair[0] for role, pair in ends.items()}, written, {}, {"far": {3: "f1"}}
        )
        said = "; ".join(seen.read({}, [{("far", "f1"): each} for each in asked]))
    assert says in said and bool(said) is bool(says)
