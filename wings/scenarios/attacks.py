"""Attacks of a scenario: segments of somebody who has no TCP of his own.

Standard library only: this is what a guest executes.
"""

from __future__ import annotations

import struct

from testbed.base.addresses import pack_address
from testbed.capture.segments import make_segment
from wings.scenarios.network import Network
from wings.scenarios.script import Action
from wings.scenarios.words import (
    ADDRESSES,
    FLAG_BITS,
    OPTION_KINDS,
    address_of,
    parse_data,
    parse_flags,
)

_MSS = struct.pack("!H", 1460)
_SEQUENCE, _STEP = 0x10000000, 0x10000


def attack(network: Network, action: Action) -> str:
    """Send forged segments, each from the next port and with the next sequence number."""
    at = action.words.index(">")
    behind = action.words[at + 2 :]
    flags = next((bits for word in behind if (bits := parse_flags(word))), FLAG_BITS["S"])
    payload = next((data for word in behind if (data := parse_data(word)) is not None), b"")
    options = [(OPTION_KINDS["mss"], _MSS)] if flags & FLAG_BITS["S"] else []
    cookie = action.options.get("cookie")
    if cookie is not None:
        known = network.granted.get(cookie) if cookie in ADDRESSES else bytes.fromhex(cookie)
        if known is None:
            return "nothing"
        options.append((OPTION_KINDS["fastopen"], known))
    first = int(action.options.get("port", "40000"))
    ends = [action.words[at - 1], action.words[at + 1]]
    source, target = (pack_address(address_of(end, network.middlebox.ip)) for end in ends)
    for number in range(int(action.options.get("times", "1"))):
        network.attack(make_segment(
            (source, first + number), (target, 80), flags,
            seq=_SEQUENCE + number * _STEP, options=options, payload=payload,
        ))  # fmt: skip
    return "ok"
