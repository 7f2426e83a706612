"""Crossings of a scenario: what each packet had to come as, by the rules of its middlebox.

The middlebox knows no chance: its rules, taken up and back when the script did so, make of the
packets that were sent those that came.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from testbed.capture.packets import ETHERNET_BYTES, Packet, read_frame
from testbed.capture.segments import with_ends
from testbed.capture.transits import Crossed, Crossings
from wings.scenarios.measurement import Passage, Performance
from wings.scenarios.middlebox import Middlebox
from wings.scenarios.script import Script
from wings.scenarios.words import MIDDLEBOX

_HEADER_OF_IPV4 = 0x45
"""Its version, and its length without options, of which no host of a scenario sends any."""
_SUM_AT = {"4": 20 + 16, "6": 40 + 16}
"""Where the checksum of TCP is."""


def read_script_crossings(
    script: Script, ip: str, performed: Performance, captures: Mapping[str, Sequence[Packet]]
) -> Crossings:
    """Return how packets crossed, by who sent them; each is as the middlebox had to pass it on.

    Raises:
        IndexError: a capture lacks a packet.
        ValueError: one is none that a middlebox could pass on.
    """
    found: Crossings = {}
    for passage, due in _pass_on(script, ip, performed, captures):
        crossing = found.setdefault(passage.sender, Crossed([], [], [], []))
        came = [captures[each.host][each.number] for each in passage.arrivals]
        for place, packet in enumerate(came):
            if place >= len(due):
                crossing.copies.append(packet)
            elif packet.frame[ETHERNET_BYTES:] != due[place].frame[ETHERNET_BYTES:]:
                crossing.strange.append(packet)
            else:
                crossing.pairs.append((due[place], packet))
    return found


def _pass_on(
    script: Script, ip: str, performed: Performance, captures: Mapping[str, Sequence[Packet]]
) -> Iterator[tuple[Passage, list[Packet]]]:
    """Yield each passage with the packets that come of it, in their order."""
    middlebox = Middlebox(ip)
    rules = [
        (call.at_ns, action)
        for call, action in zip(performed.calls, script.actions, strict=False)
        if action.actor == MIDDLEBOX
    ]
    for passage in performed.passages:
        while rules and rules[0][0] <= passage.at_ns:
            _, action = rules.pop(0)
            middlebox.obey(action.verb, action.words, action.options)
        sent = captures[passage.sender][passage.number]
        try:
            copies = sorted(middlebox.pass_on(sent, passage.sender), key=itemgetter(0))
        except struct.error as error:
            raise ValueError(
                f"packet {passage.number} of {passage.sender}.pcap: {error}"
            ) from error
        frames = [sent.frame[:ETHERNET_BYTES] + data for _, data in copies]
        yield passage, [read_frame(sent.at_ns, frame, len(frame)) for frame in frames]


def is_summed(packet: Packet) -> bool:
    """Whether the checksums of a segment are right: hosts of a scenario leave none out."""
    data = packet.frame[ETHERNET_BYTES:]
    if packet.protocol != "TCP":
        return True
    if packet.ip == "4" and data[0] != _HEADER_OF_IPV4:
        return False
    due, at = with_ends(data), _SUM_AT[packet.ip]
    # A kernel may write 0 as the other zero of ones' complement (CSUM_MANGLED_0).
    mangled = due[at : at + 2] == bytes(2) and due[:at] + b"\xff\xff" + due[at + 2 :] == data
    return due == data or mangled
