"""The lab's hosts and wires on the kernel that runs the tests; afterwards nothing is left."""

from __future__ import annotations

import json
import socket
import sys

import pytest

from testbed.base import proc
from testbed.base.namespace import Namespace
from testbed.lab.topology import (
    MAX_ORIGINS,
    RESOLVER_ADDRESS,
    ROLES,
    SERVER_ADDRESS,
    Topology,
    addresses_in,
    fit_topology,
    lay_topology,
    open_topology,
    origin_address,
    to_ipv6,
)
from testbed.model import Ip

# ip(7); Python has no names for them.
IP_RECVTTL, IP_MTU_DISCOVER, IP_PMTUDISC_DO = 12, 10, 2


def test_origin_addresses() -> None:
    assert [origin_address(i) for i in (0, 1, 249)] == ["10.10.0.1", "10.10.0.2", "10.10.0.250"]
    every = {origin_address(i) for i in range(MAX_ORIGINS)}
    assert len(every) == MAX_ORIGINS
    assert RESOLVER_ADDRESS not in every


def test_addresses_of_ipv6_are_beside_those_of_ipv4() -> None:
    assert to_ipv6("10.0.2.0/24") == "2001:db8:0:2::/64"
    assert addresses_in("dual", "10.10.255.53") == ("10.10.255.53", "2001:db8:10:255::53")
    assert addresses_in("4", "10.0.0.2") == ("10.0.0.2",)
    assert addresses_in("6", "10.0.0.2/24") == ("2001:db8::2/64",)
    every = {to_ipv6(origin_address(i)) for i in range(MAX_ORIGINS)}
    assert len(every) == MAX_ORIGINS


@pytest.mark.parametrize("index", [-1, MAX_ORIGINS, 10**6])
def test_there_are_no_more_origins(index: int) -> None:
    with pytest.raises(ValueError, match="250 origins at the most"):
        origin_address(index)


def test_roles() -> None:
    client, near, far, server = (Namespace(f"x{role}") for role in ROLES)
    topology = Topology(client, near, far, server)
    assert [topology.role(role).name for role in ROLES] == ["xclient", "xnear", "xfar", "xserver"]


def namespaces(tag: str) -> list[str]:
    listed = json.loads(proc.run(("ip", "-j", "netns", "list")).stdout or "[]")
    return sorted(row["name"] for row in listed if row["name"].startswith(tag))


def devices() -> set[str]:
    return {row["ifname"] for row in json.loads(proc.run(("ip", "-j", "link")).stdout)}


def send(topology: Topology, address: str, size: int = 10) -> int | None:
    """Send one datagram from the client; its time to live on arrival, None if it is lost."""
    with topology.server.entered():
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with topology.client.entered():
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with server, client:
        server.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
        server.bind(("0.0.0.0", 0))  # noqa: S104  inside the server's namespace
        server.settimeout(2)
        client.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        client.sendto(bytes(size), (address, server.getsockname()[1]))
        try:
            _, ancillary, _, _ = server.recvmsg(2000, 100)
        except TimeoutError:
            return None
        return int.from_bytes(ancillary[0][2], sys.byteorder)


@pytest.mark.root
def test_packets_go_over_two_routers(tag: str) -> None:
    with open_topology(tag, 1500, 3) as topology:
        for address in ("10.0.2.2", origin_address(2), RESOLVER_ADDRESS):
            assert send(topology, address, size=1472) == 62
        assert send(topology, origin_address(3)) is None
        with pytest.raises(OSError, match="Message too long"):
            send(topology, origin_address(0), size=1473)


@pytest.mark.root
def test_what_is_set_on_the_wires(tag: str) -> None:
    with open_topology(tag, 1400, 1) as topology:
        for role, device in (("client", "c0"), ("near", "n1"), ("server", "s0")):
            name = topology.role(role).name
            (link,) = json.loads(proc.run(("ip", "-j", "-n", name, "link", "show", device)).stdout)
            assert link["mtu"] == 1400
            neighbours = json.loads(proc.run(("ip", "-j", "-n", name, "neighbour")).stdout)
            assert {row["state"][0] for row in neighbours} == {"PERMANENT"}
            assert "inet6" not in proc.run(("ip", "-n", name, "address", "show", device)).stdout
        for role, device in (("client", "c0"), ("server", "s0")):
            prefix = topology.role(role).prefix
            said = proc.run((*prefix, "ethtool", "-k", device)).stdout.splitlines()
            for offload in (
                *("tx-tcp-segmentation", "tx-tcp6-segmentation"),
                *("generic-segmentation-offload", "generic-receive-offload"),
            ):
                assert f"{offload}: off" in [line.strip() for line in said]
        forwards = {role: topology.role(role).read_sysctl("net.ipv4.ip_forward") for role in ROLES}
        assert forwards == {"client": "0", "near": "1", "far": "1", "server": "0"}


@pytest.mark.parametrize("ip", ["6", "dual"])
@pytest.mark.root
def test_packets_go_over_ipv6_and_nobody_announces_anything(tag: str, ip: Ip) -> None:
    six = addresses_in("6", SERVER_ADDRESS)[0]
    with open_topology(tag, 1500, 2, ip=ip) as topology:
        for address in (six, *addresses_in("6", origin_address(1))):
            with topology.server.entered():
                server = socket.create_server((address, 0), family=socket.AF_INET6)
            with topology.client.entered(), server:
                socket.create_connection(server.getsockname()[:2], timeout=5).close()
        for role in ROLES:
            name = topology.role(role).name
            found = json.loads(proc.run(("ip", "-j", "-n", name, "address")).stdout)
            families = {a["family"] for row in found for a in row["addr_info"]
                        if a["scope"] == "global"}  # fmt: skip
            assert families == {"inet6"} | ({"inet"} if ip == "dual" else set())
            assert not any(a["scope"] == "link" for row in found for a in row["addr_info"])
            for row in found:
                assert "MULTICAST" not in row["flags"] or row["ifname"] == "lo"
            groups = json.loads(proc.run(("ip", "-j", "-n", name, "-6", "maddress")).stdout)
            joined = {m["address"] for row in groups for m in row["maddr"]}
            # Of these two nobody tells (RFC 3810 section 6).
            assert joined <= {"ff02::1", "ff01::1"}, role


@pytest.mark.root
def test_wires_that_are_there_are_fitted_to_a_condition(tag: str) -> None:
    with lay_topology(tag) as topology:
        fit_topology(topology, 1280, 2)
        for role in ROLES:
            name = topology.role(role).name
            links = json.loads(proc.run(("ip", "-j", "-n", name, "link", "show")).stdout)
            assert {one["mtu"] for one in links if one["ifname"] != "lo"} == {1280}
        addresses = proc.run(("ip", "-n", topology.server.name, "address", "show", "lo")).stdout
        for address in (origin_address(0), origin_address(1), RESOLVER_ADDRESS):
            assert f" {address}/32 " in addresses
        assert origin_address(2) not in addresses


@pytest.mark.root
def test_nothing_is_left(tag: str) -> None:
    before = devices()
    with open_topology(tag, 1500, 1):
        assert namespaces(tag) == sorted(f"{tag}{role}" for role in ROLES)
        assert {"c0", "n0", "n1", "f0", "f1", "s0"}.isdisjoint(devices() - before)
    assert namespaces(tag) == []


@pytest.mark.root
def test_nothing_is_left_after_an_error(tag: str) -> None:
    with pytest.raises(KeyError), open_topology(tag, 1500, 1):
        raise KeyError
    assert namespaces(tag) == []
    with pytest.raises(ValueError, match="origins at the most"), open_topology(tag, 1500, 251):
        pytest.fail("it has no address for the last one")
    assert namespaces(tag) == []


@pytest.mark.root
def test_a_namespace_of_somebody_else_stays(tag: str) -> None:
    other = f"{tag}far"
    proc.run(("ip", "netns", "add", other))
    try:
        with pytest.raises(FileExistsError, match=other), open_topology(tag, 1500, 1):
            pytest.fail("the name is taken")
        assert namespaces(tag) == [other]
    finally:
        proc.run(("ip", "netns", "delete", other))


@pytest.mark.root
def test_two_labs_side_by_side(tag: str) -> None:
    with open_topology(f"{tag}x", 1500, 1) as one, open_topology(f"{tag}y", 1500, 1) as two:
        for topology in (one, two):
            assert send(topology, origin_address(0)) == 62
    assert namespaces(tag) == []
