"""IP version of the packets in a capture, and which one the client chose where it had both.

A client that is offered both tries IPv6 first and, if that does not answer soon, IPv4 beside it
(Happy Eyeballs, RFC 8305).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from testbed.base.addresses import format_address
from testbed.capture.flows import Flow, Flows
from testbed.capture.lookups import ADDRESSES, DNS_PORT, parse_question
from testbed.model import Ip
from testbed.proof.check import check
from testbed.proof.evidence import Evidence

_ANSWERS = slice(6, 8)
"""Where a DNS message says how many answers it has (RFC 1035 section 4.1.1)."""


@check("ip", "capture", "flows", "link", source="RFC 8305")
def check_ip(seen: Evidence) -> Iterator[str]:
    """Packets are of the IP asked for; of two, names have both, and broken IPv6 is silent."""
    ip = seen.link.ip
    if ip in ADDRESSES:
        packets = [packet for packet in seen.capture.packets if packet.source]
        others = sum(packet.ip != ip for packet in packets)
        if others:
            yield f"{others} of {len(packets)} packets are not of IPv{ip}, and link.ip = {ip}"
        return
    asked = [
        packet.payload
        for packet in seen.capture.packets
        if packet.protocol == "UDP" and packet.source_port == DNS_PORT
        and (question := parse_question(packet.payload)) and question[1] == ADDRESSES["6"]
    ]  # fmt: skip
    none = sum(not any(answer[_ANSWERS]) for answer in asked)
    if none:
        yield f"{none} of {len(asked)} hosts have no address of IPv6, and link.ip = {ip}"
    tried = [flow for flow in seen.flows.flows if flow.syn.ip == "6"]
    if ip == "dual-broken":
        came = sum(not by_client for flow in tried for by_client, _ in flow.packets)
        if came:
            yield f"{came} packets came down over IPv6, which was to be broken"
    elif seen.own_client and not (seen.lost or seen.link.changes):
        silent = sum(flow.synack is None for flow in tried)
        if silent:
            yield (
                f"{silent} of {len(tried)} connections over IPv6 got no answer, and link.ip = {ip}"
            )


def describe_choice(flows: Flows, ip: Ip, hosts: Mapping[str, str]) -> dict[str, float]:
    """Return what a client chose that was offered both, as ``Proof.ip`` has it.

    ``hosts`` maps the lab's addresses to the host names of the page.
    """
    if ip in ADDRESSES:
        return {}
    found: dict[str, float] = {
        version: sum(f.syn.ip == version and f.synack is not None for f in flows.flows)
        for version in ADDRESSES
    }
    found["6.unanswered"] = sum(f.syn.ip == "6" and f.synack is None for f in flows.flows)
    waits = list(_fallbacks_ms(flows, hosts))
    if waits:
        found["fallback_ms"] = max(waits)
    return found


def _fallbacks_ms(flows: Flows, hosts: Mapping[str, str]) -> Iterator[float]:
    """Yield after how long each SYN over IPv4 followed one over IPv6 that had no answer yet."""
    tried: dict[str, list[Flow]] = {}
    for flow in flows.flows:
        address, at_ns = format_address(flow.syn.target), flow.syn.at_ns
        waiting = tried.setdefault(hosts.get(address, address), [])
        if flow.syn.ip == "6":
            waiting.append(flow)
            continue
        silent = (six for six in waiting if six.synack is None or six.synack.at_ns > at_ns)
        before = next(silent, None)
        if before is not None:
            waiting.remove(before)
            yield (at_ns - before.syn.at_ns) / 1e6
