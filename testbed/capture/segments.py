"""TCP segments over IPv4 or IPv6, made, changed and refused as a middlebox or an attacker does.

Each function returns a whole packet with its length and checksums right (RFC 791, RFC 8200, RFC
9293).  By ``struct``: a library that could do as much takes a guest longer to import than a
trial of packets takes to run.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from testbed.capture.packets import checksum, read_options

_IP = struct.Struct("!BBHHHBBH4s4s")
_IP6 = struct.Struct("!IHBB16s16s")
_TCP = struct.Struct("!HHIIHHHH")
_TTL, _PROTOCOL = 64, 6
_DO_NOT_FRAGMENT = 0x4000
_IP_SUM, _TCP_SUM, _ICMP_SUM = 10, 16, 2
_ICMP, _ICMP6 = 1, 58
_QUOTED, _QUOTED_6 = 576 - 28, 1280 - 48
_LONGEST_OPTIONS = 40

Option = tuple[int, bytes]
"""Kind and data of a TCP option."""


def make_segment(
    source: tuple[bytes, int],
    target: tuple[bytes, int],
    flags: int,
    *,
    seq: int,
    ack: int = 0,
    window: int = 65_535,
    options: Iterable[Option] = (),
    payload: bytes = b"",
) -> bytes:
    """Return an IP packet with one segment; ends are addresses of 4 bytes or 16, and ports."""
    packed = pack_options(options)
    offset = (_TCP.size + len(packed)) // 4
    segment = _TCP.pack(
        source[1], target[1], seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, offset << 12 | flags, window, 0, 0
    )
    segment += packed + payload
    ends = (source[0], target[0])
    if len(source[0]) == 16:
        return _with_sums(_IP6.pack(6 << 28, len(segment), _PROTOCOL, _TTL, *ends), segment)
    total = _IP.size + len(segment)
    return _with_sums(
        _IP.pack(0x45, 0, total, 0, _DO_NOT_FRAGMENT, _TTL, _PROTOCOL, 0, *ends), segment
    )


def make_unreachable(packet: bytes, router: bytes) -> bytes:
    """Return what ``router`` answers the sender of ``packet``: its target cannot be reached.

    That is ICMP's *host unreachable* (RFC 792), or *address unreachable* (RFC 4443), with so much
    of the packet as every path takes.
    """
    ends = router + packet[8:24] if _is_ipv6(packet) else router + packet[12:16]
    if _is_ipv6(packet):
        said = struct.pack("!BBHI", 1, 3, 0, 0) + packet[:_QUOTED_6]
        pseudo = ends + struct.pack("!HH", _ICMP6, len(said))
        head = struct.pack("!IHBB", 6 << 28, len(said), _ICMP6, _TTL) + ends
        return head + _filled(said, _ICMP_SUM, pseudo)
    said = struct.pack("!BBHI", 3, 1, 0, 0) + packet[:_QUOTED]
    head = _IP.pack(0x45, 0, _IP.size + len(said), 0, 0, _TTL, _ICMP, 0, ends[:4], ends[4:])
    return _filled(head, _IP_SUM, b"") + _filled(said, _ICMP_SUM, b"")


def with_ends(
    packet: bytes,
    *,
    source: tuple[bytes, int] | None = None,
    target: tuple[bytes, int] | None = None,
) -> bytes:
    """Return ``packet`` with other ends, as a NAT makes it."""
    head, segment = _split(packet)
    form = _IP6 if _is_ipv6(head) else _IP
    fields = list(form.unpack_from(head))
    ports = list(struct.unpack_from("!HH", segment))
    for place, end in ((0, source), (1, target)):
        if end is not None:
            fields[place - 2], ports[place] = end
    changed = form.pack(*fields) + head[form.size :]
    return _with_sums(changed, struct.pack("!HH", *ports) + segment[4:])


def with_options(packet: bytes, options: Iterable[Option]) -> bytes:
    """Return ``packet`` with other TCP options.

    Raises:
        ValueError: they are too long.
    """
    head, segment = _split(packet)
    fields = list(_TCP.unpack_from(segment))
    packed = pack_options(options)
    payload = segment[(fields[4] >> 12) * 4 :]
    fields[4] = (_TCP.size + len(packed)) // 4 << 12 | fields[4] & 0x1FF
    segment = _TCP.pack(*fields) + packed + payload
    at, length = (4, len(segment)) if _is_ipv6(head) else (2, len(head) + len(segment))
    return _with_sums(head[:at] + struct.pack("!H", length) + head[at + 2 :], segment)


def options_of(packet: bytes) -> list[Option]:
    """Return the TCP options of ``packet`` but padding."""
    _, segment = _split(packet)
    end = (_TCP.unpack_from(segment)[4] >> 12) * 4
    return [(kind, data) for kind, data in read_options(segment[_TCP.size : end]) if kind]


def pack_options(options: Iterable[Option]) -> bytes:
    """Return ``options`` as a header has them, padded to four bytes.

    Raises:
        ValueError: they are longer than a header can be.
    """
    packed = b"".join(bytes((kind, len(data) + 2)) + data for kind, data in options)
    packed += bytes(-len(packed) % 4)  # end of the list (kind 0), as often as it takes
    if len(packed) > _LONGEST_OPTIONS:
        raise ValueError(f"TCP options of {len(packed)} bytes; a header has room for 40")
    return packed


def _is_ipv6(packet: bytes) -> bool:
    return packet[0] >> 4 == 6


def _split(packet: bytes) -> tuple[bytes, bytes]:
    size = _IP6.size if _is_ipv6(packet) else (packet[0] & 0xF) * 4
    return packet[:size], packet[size:]


def _with_sums(head: bytes, segment: bytes) -> bytes:
    addresses = head[8:40]
    if not _is_ipv6(head):
        head, addresses = _filled(head, _IP_SUM, b""), head[12:20]
    # Sums over the same words: that of RFC 8200 only has longer numbers.
    pseudo = addresses + struct.pack("!HH", _PROTOCOL, len(segment))
    return head + _filled(segment, _TCP_SUM, pseudo)


def _filled(data: bytes, place: int, before: bytes) -> bytes:
    """Return ``data`` with the sum over it and what is ``before`` it (RFC 1071) at ``place``."""
    start, end = data[:place], data[place + 2 :]
    return start + struct.pack("!H", checksum(before + start + b"\0\0" + end)) + end
