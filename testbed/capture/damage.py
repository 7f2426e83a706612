"""Damage on the way: frames of a capture that no kernel takes, for their checksums are wrong.

Only what came over the link is looked at: it was damaged before it was captured, and what an end
sends behind that (RFC 791, RFC 768, RFC 9293: the checksum of RFC 1071).  Within a machine a
kernel leaves the checksum of a payload out: only that of the pseudo-header is there.  Before netem
damages a packet it completes it.
"""

from __future__ import annotations

import struct
from dataclasses import replace

from testbed.capture.packets import ETHERNET_BYTES, Capture, Packet, checksum

_IPV4, _TCP, _UDP = 4, 6, 17
_LEAST_HEADER = 20
_CHECKSUM_AT = {_TCP: 16, _UDP: 6}


def split_damaged(capture: Capture, mac: bytes) -> tuple[Capture, tuple[Packet, ...]]:
    """Return ``capture`` without the damaged frames, and those.

    ``mac`` is the address of the device that was captured at.  Damage is asked of IPv4 alone.
    """
    sorted_out: dict[bool, list[Packet]] = {False: [], True: []}
    for packet in capture.packets:
        sorted_out[_is_damaged(packet.frame, mac)].append(packet)
    return replace(capture, packets=tuple(sorted_out[False])), tuple(sorted_out[True])


def _is_damaged(frame: bytes, mac: bytes) -> bool:
    if frame[6:12] == mac:
        return False
    if frame[:6] != mac or frame[12:14] != b"\x08\x00":
        return True
    head = frame[ETHERNET_BYTES:]
    header_bytes = (head[0] & 0xF) * 4
    if len(head) < _LEAST_HEADER or head[0] >> 4 != _IPV4 or header_bytes < _LEAST_HEADER:
        return True
    (ip_bytes,) = struct.unpack_from("!H", head, 2)
    if checksum(head[:header_bytes]) or ip_bytes > len(head):
        return True
    carried, body = head[9], head[header_bytes:ip_bytes]
    if carried not in (_TCP, _UDP):
        return True  # nothing else comes over it
    pseudo = head[12:20] + struct.pack("!BBH", 0, carried, len(body))
    place = _CHECKSUM_AT[carried]
    is_left_out = body[place : place + 2] == struct.pack("!H", checksum(pseudo) ^ 0xFFFF)
    return not is_left_out and bool(checksum(pseudo + body))
