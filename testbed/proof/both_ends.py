"""Bytes at both ends: what came is what was sent, but for what routers and queues change of it.

A router takes one from the hop limit, and reckons the header's checksum anew (RFC 1812 section
5.3.1, RFC 8200); a queue marks what declares itself capable of it (RFC 3168).  All else of a packet
has to be alike in the captures of both ends: options, flags, numbers and ports among it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from testbed.capture.packets import ETHERNET_BYTES, TOO_LONG, Packet, checksum, read_unreachable
from testbed.capture.transits import CE, Crossed
from testbed.proof.check import check
from testbed.proof.evidence import Evidence

_HEADER = slice(ETHERNET_BYTES, ETHERNET_BYTES + 20)
_NOT_CAPABLE, _MARKS = 0, 3
_WASH = "wash"
"""The word by which CAKE clears the code points of services (tc-cake(8))."""


@check("bytes at both ends", "crossings", source="RFC 1812, RFC 3168")
def check_bytes(seen: Evidence) -> Iterator[str]:
    """Packets came as they were sent, to the byte, but for hop limits, and marks that queues set.

    As many as the link damaged came otherwise at most, and as many as it copied came twice.  Of a
    narrow path routers may tell by ICMP.
    """
    queues = seen.link.queues if seen.has("link") else {}
    for way in dict.fromkeys(way for each in seen.crossings for way in each):
        crossings = [each[way] for each in seen.crossings if each]
        washed = _WASH in queues.get(way, "").split()
        wrong = [
            each
            for crossing in crossings
            for each in _list_wrong(crossing, seen.routers, washed=washed)
        ]
        damaged = seen.counted.get(f"{way}.corrupted", 0)
        if len(wrong) > damaged:
            packet, how = wrong[0]
            ends = f" from {packet.sender} to {packet.receiver}" if packet.source else ""
            yield (
                f"{way}: {len(wrong)} packets came otherwise than they were sent, the link damaged "
                f"{damaged}; the first of them, {packet.protocol}{ends}, {how}"
            )
        copies = sum(len(crossing.copies) for crossing in crossings)
        doubled = seen.counted.get(f"{way}.duplicated", 0)
        if copies > doubled:
            yield f"{way}: {copies} packets came once more than sent, the link copied {doubled}"


def _list_wrong(crossing: Crossed, routers: int, *, washed: bool) -> Iterator[tuple[Packet, str]]:
    """Yield the packets that came otherwise than they were sent, and how."""
    for packet in crossing.strange:
        if read_unreachable(packet) != TOO_LONG:
            yield packet, "was not sent like that"
    for number in (0, 1):
        yield from _list_apart([pair[number] for pair in crossing.pairs])
    for sent, came in crossing.pairs:
        how = _describe_change(sent, came, routers, washed=washed)
        if how:
            yield came, how


def _list_apart(packets: Sequence[Packet]) -> Iterator[tuple[Packet, str]]:
    """Yield the packets with other Ethernet addresses than most at this end of a wire."""
    addresses = [packet.frame[:12] for packet in packets]
    usual = max(dict.fromkeys(addresses), key=addresses.count, default=b"")
    for packet, address in zip(packets, addresses, strict=True):
        if address != usual:
            yield packet, f"has the Ethernet addresses {address.hex(':')}"


def _describe_change(sent: Packet, came: Packet, routers: int, *, washed: bool) -> str:
    """Return what of a packet was changed that nothing on its way changes; empty: nothing was."""
    if not (_is_summed(sent) and _is_summed(came)):
        return "has another checksum than its header"
    passed = _hop_limit(sent) - _hop_limit(came)
    if passed != routers:
        return f"passed {passed} routers, there are {routers}"
    if sent.frame_bytes != came.frame_bytes:
        return f"was {came.frame_bytes} bytes long, sent were {sent.frame_bytes}"
    if sent.traffic_class == came.traffic_class:
        return ""
    mark, marked = sent.traffic_class & _MARKS, came.traffic_class & _MARKS
    if mark != marked and (mark == _NOT_CAPABLE or marked != CE):
        return f"came with the mark {marked}, and was sent with {mark}"
    services = sent.traffic_class >> 2, came.traffic_class >> 2
    if services[0] != services[1] and not washed:
        return f"came with the code point {services[1]}, and was sent with {services[0]}"
    return ""


def _hop_limit(packet: Packet) -> int:
    return packet.frame[ETHERNET_BYTES + (7 if packet.ip == "6" else 8)]


def _is_summed(packet: Packet) -> bool:
    """Whether the checksum of a header of IPv4 is right (RFC 791); none has options here."""
    return packet.ip == "6" or checksum(packet.frame[_HEADER]) == 0
