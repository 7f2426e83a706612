"""Segmentation and merging by the network stack, off unless asked for (ethtool(8)).

With TSO a veth hands over up to 64 KB uncut, and no buffer or rate would hold for that.
Source: include/uapi/linux/ethtool.h, SIOCETHTOOL.
"""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct

from testbed.base.namespace import Namespace

SIOCETHTOOL = 0x8946
# Name: the commands that get and set it.
OFFLOADS = {"tso": (0x1E, 0x1F), "gso": (0x23, 0x24), "gro": (0x2B, 0x2C)}
# ETHTOOL_GFEATURES: 32 features a word, of each: available, requested, active, never changed.
GET_FEATURES, FEATURE_WORDS, WORD = 0x3A, 4, "=IIII"


def read_offloads(namespace: Namespace, device: str) -> tuple[str, ...]:
    """Which of ``OFFLOADS`` are on."""
    with namespace.entered():
        return tuple(name for name, (get, _) in OFFLOADS.items() if _ask(device, get, 0))


def clear_offloads(namespace: Namespace, device: str) -> None:
    """Switch all of ``OFFLOADS`` off.

    Raises:
        OSError: the device does not let one be changed.
    """
    for name in OFFLOADS:
        switch_offload(namespace, device, name, on=False)


def switch_offload(namespace: Namespace, device: str, name: str, *, on: bool) -> None:
    """Switch one of ``OFFLOADS`` on or off.

    Raises:
        OSError: the device does not let it be changed.
    """
    _, change = OFFLOADS[name]
    with namespace.entered():
        _ask(device, change, int(on))


def read_features(device: str) -> str:
    """Everything that ``device`` does for the stack, as the kernel's own bits, of this namespace.

    What a bit means differs from version to version; that none changes is what counts.
    """
    size = struct.calcsize(WORD)
    header = struct.pack("=II", GET_FEATURES, FEATURE_WORDS)
    answer = _exchange(device, header.ljust(len(header) + FEATURE_WORDS * size, b"\0"))
    words = [struct.unpack_from(WORD, answer, len(header) + i * size) for i in range(FEATURE_WORDS)]
    return "".join(f"{active:08x}" for _, _, active, _ in reversed(words)).lstrip("0")


def _ask(device: str, command: int, value: int) -> int:
    """One struct ethtool_value there and back."""
    return int(struct.unpack("=II", _exchange(device, struct.pack("=II", command, value)))[1])


def _exchange(device: str, structure: bytes) -> bytes:
    """One structure of ethtool there and back."""
    exchanged = ctypes.create_string_buffer(structure, len(structure))
    request = struct.pack("@16sP", device.encode(), ctypes.addressof(exchanged))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        # struct ifreq has 40 bytes.
        fcntl.ioctl(control, SIOCETHTOOL, request.ljust(40, b"\0"))
    return exchanged.raw
