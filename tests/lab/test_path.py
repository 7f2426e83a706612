"""Packets that go around the link are counted, and offloads are told as the device has them."""

from __future__ import annotations

import socket
import time
from dataclasses import replace

import pytest

from testbed.base import proc
from testbed.lab.offloads import clear_offloads, read_offloads
from testbed.lab.path import (
    Device,
    count_refused,
    count_strays,
    parse_devices,
    read_all_devices,
    read_strays,
    read_taken,
)
from testbed.lab.topology import open_topology
from tests.lab.wires import joined

NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0
    c0:    5000      11    0    1    0     0          0         0     6000      12    0    3    0
"""
IDLE = Device(0, 0, 0)
LAB = {
    "client": {"lo": IDLE, "c0": Device(8, 10, 0)},
    "near": {"n0": Device(10, 8, 0), "n1": Device(8, 10, 0)},
    "far": {"f0": Device(9, 8, 0), "f1": Device(8, 9, 0)},
    "server": {"lo": Device(4, 4, 0), "s0": Device(9, 8, 0)},
}


def test_counters() -> None:
    assert parse_devices(NET_DEV) == {"lo": IDLE, "c0": Device(11, 12, 3)}


def test_packets_that_the_link_dropped_are_no_strays() -> None:
    assert count_strays(LAB) == 0


def test_what_reached_an_end_but_not_by_the_link() -> None:
    server = {**LAB["server"], "s0": replace(LAB["server"]["s0"], received=11)}
    client = {**LAB["client"], "c0": replace(LAB["client"]["c0"], received=9)}
    strays = {**LAB, "server": server, "client": client}
    assert count_strays(strays) == 3
    assert count_strays(strays, {"far": 1, "near": 1}) == 1  # pings from there, say
    assert count_strays(strays, {"far": 9, "near": 0}) == 1


def test_another_way_out() -> None:
    assert count_strays({**LAB, "client": {**LAB["client"], "sit0": IDLE}}) == 0
    assert count_strays({**LAB, "client": {**LAB["client"], "x0": Device(1, 2, 0)}}) == 3


def test_packets_that_a_filter_dropped() -> None:
    assert count_refused("server", (10, 8, 8), (20, 18, 18)) == ()
    assert count_refused("server", (10, 8, 8), (20, 17, 16), damaged=2) == ()
    assert count_refused("server", (10, 8, 8), (20, 17, 16), damaged=1) != ()
    said = "server: its devices received 10 packets, IP took 9, kept 8"
    assert count_refused("server", (10, 8, 8), (20, 17, 16)) == (said,)


@pytest.mark.root
def test_what_an_end_takes(tag: str) -> None:
    with open_topology(tag, 1500, 1) as topology:
        before = read_taken(topology.server)
        with topology.server.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            end.sendto(b"to myself", ("10.10.0.1", 9))
        after = read_taken(topology.server)
        assert after != before
        assert count_refused("server", before, after) == ()


@pytest.mark.root
def test_packets_of_the_hosts_between_are_no_strays(tag: str) -> None:
    with open_topology(tag, 1500, 1) as topology:
        for role, address in (("far", "10.0.2.2"), ("near", "10.0.0.2")):
            proc.run((*topology.role(role).prefix, "ping", "-c", "3", "-i", "0.01", address))
        assert count_strays(read_all_devices(topology)) == 6
        assert read_strays(topology) == 0


@pytest.mark.root
def test_a_wire_around_the_link_is_seen(tag: str) -> None:
    with open_topology(tag, 1500, 1) as topology:
        assert read_strays(topology) == 0
        client, server = topology.client.name, topology.server.name
        proc.run(("ip", "-n", client, "link", "add", "x0", "type", "veth",
                  "peer", "name", "x1", "netns", server))  # fmt: skip
        for name, device, address in ((client, "x0", "10.7.0.1"), (server, "x1", "10.7.0.2")):
            proc.run(("ip", "-n", name, "address", "add", f"{address}/24", "dev", device))
            proc.run(("ip", "-n", name, "link", "set", device, "up"))
        with topology.client.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            end.sendto(b"around", ("10.7.0.2", 9))
        # Whom it asks for comes first, and on a busy machine both come later.
        until_s = time.monotonic() + 10
        while read_strays(topology) == 0 and time.monotonic() < until_s:
            time.sleep(0.01)
        assert read_strays(topology) > 0


@pytest.mark.root
def test_offloads_go_off_and_are_read_back() -> None:
    with joined("o") as (left, _):
        proc.run((*left.prefix, "ethtool", "-K", "c0", "gso", "on", "tso", "on", "gro", "on"))
        assert read_offloads(left, "c0") == ("tso", "gso", "gro")
        proc.run((*left.prefix, "ethtool", "-K", "c0", "gso", "off"))
        assert "gso" not in read_offloads(left, "c0")
        clear_offloads(left, "c0")
        assert read_offloads(left, "c0") == ()
