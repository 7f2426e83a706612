"""Counters of TCP and UDP of a network namespace (nstat(8); /proc/net/snmp and netstat)."""

from __future__ import annotations

from pathlib import Path

from testbed.base.namespace import Namespace

WANTED = (
    "TcpActiveOpens",
    "TcpPassiveOpens",
    "TcpAttemptFails",
    "TcpInSegs",
    "TcpOutSegs",
    "TcpRetransSegs",
    "TcpExtTCPFastOpenActive",
    "TcpExtTCPFastOpenActiveFail",
    "TcpExtTCPFastOpenPassive",
    "TcpExtTCPFastOpenPassiveFail",
    "TcpExtTCPFastOpenListenOverflow",
    "TcpExtTCPFastOpenCookieReqd",
    "TcpExtTCPFastOpenBlackhole",
    "TcpExtTCPFastOpenPassiveAltKey",
    "TcpExtTCPSynRetrans",
    "TcpExtTCPTimeouts",
    "UdpInDatagrams",
    "UdpOutDatagrams",
    "UdpInErrors",
)


def parse_counters(text: str) -> dict[str, int]:
    """Counters from the two-line tables of /proc/net/snmp and netstat, named as nstat does."""
    counters: dict[str, int] = {}
    lines = text.splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        prefix, _, header = names.partition(":")
        row = values.partition(":")[2]
        for name, value in zip(header.split(), row.split(), strict=True):
            counters[prefix + name] = int(value)
    return counters


def read_counters(namespace: Namespace) -> dict[str, int]:
    """The wanted counters of ``namespace``; one that the kernel does not have is left out."""
    counters = read_all_counters(namespace)
    return {name: counters[name] for name in WANTED if name in counters}


def read_all_counters(namespace: Namespace) -> dict[str, int]:
    """All counters of TCP and UDP of ``namespace``."""
    with namespace.entered():
        text = Path("/proc/thread-self/net/snmp").read_text()
        text += Path("/proc/thread-self/net/netstat").read_text()
    return {name: n for name, n in parse_counters(text).items() if name.startswith(("Tcp", "Udp"))}


def grown(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """What each counter grew by, those of ``WANTED`` and all others that did."""
    differences = difference(before, after)
    return {name: more for name, more in differences.items() if more or name in WANTED}


def difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """What each counter grew by."""
    return {name: after[name] - before.get(name, 0) for name in after}
