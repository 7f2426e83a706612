"""Counters of a network namespace: parsed from the kernel's tables, subtracted, read."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from testbed.capture.counters import WANTED, difference, parse_counters, read_counters
from tests.lab.wires import namespace

SNMP = """\
Ip: Forwarding DefaultTTL InReceives
Ip: 1 64 8027
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails RetransSegs
Tcp: 1 200 120000 -1 118 70 12 43
"""
NETSTAT = """\
TcpExt: SyncookiesSent TCPFastOpenActive TCPFastOpenPassive TCPSynRetrans
TcpExt: 0 54 53 1
IpExt: InNoRoutes InOctets
IpExt: 0 18446744073709551615
"""


def test_the_tables_are_parsed() -> None:
    counters = parse_counters(SNMP + NETSTAT)
    assert counters["TcpActiveOpens"] == 118
    assert counters["TcpMaxConn"] == -1
    assert counters["TcpExtTCPFastOpenActive"] == 54
    assert counters["TcpExtTCPFastOpenPassive"] == 53
    assert counters["IpExtInOctets"] == 2**64 - 1
    assert len(counters) == 3 + 8 + 4 + 2


def test_a_row_that_does_not_fit_its_names_is_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        parse_counters("Tcp: A B\nTcp: 1\n")
    with pytest.raises(ValueError, match="zip"):
        parse_counters("Tcp: A B\n")


def test_difference() -> None:
    assert difference({"a": 3, "b": 5}, {"a": 10, "b": 5, "c": 2}) == {"a": 7, "b": 0, "c": 2}


def test_this_kernels_tables_have_what_is_wanted() -> None:
    text = "".join(Path(f"/proc/self/net/{name}").read_text() for name in ("snmp", "netstat"))
    assert set(WANTED) <= set(parse_counters(text))


@pytest.mark.root
def test_only_the_namespace_is_counted() -> None:
    with namespace("k") as busy, namespace("q") as quiet:
        before = read_counters(busy)
        with busy.entered(), socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname()).close()
        grown = difference(before, read_counters(busy))
        assert (grown["TcpActiveOpens"], grown["TcpPassiveOpens"]) == (1, 1)
        assert read_counters(quiet) == dict.fromkeys(WANTED, 0)
