"""Recorder of packet headers at a device, which wakes nobody: a ring that is read at the end.

tcpdump is woken by each packet, and that takes virtual time.  Here the kernel copies the beginning
of each frame into memory, with the time; so a second capture moves no packet of the load.  Source:
packet(7), PACKET_RX_RING; linux/if_packet.h; pcap-savefile(5).
"""

from __future__ import annotations

import mmap
import socket
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from testbed.base.namespace import Namespace

_SOL_PACKET, _RX_RING, _STATISTICS, _VERSION, _VERSION_2 = 263, 5, 6, 10, 1
_EVERY_PROTOCOL = 0x0003
_FRAME, _BLOCK, _BLOCKS = 176, 1 << 18, 64
_IN_A_BLOCK = _BLOCK // _FRAME
MOST = _IN_A_BLOCK * _BLOCKS
"""Packets that the ring has room for, in 16 MB."""
RECORDED_BYTES = 110
"""Of each frame: its headers, and of TCP's options the sender's timestamp, also in a SYN."""
_HEAD = struct.Struct("=IIIHHII")  # status, length, captured, offsets of both headers, s, ns
_FILLED = 0x1  # TP_STATUS_USER
_FILE_HEAD = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, RECORDED_BYTES, 1)
_PACKET_HEAD = struct.Struct("<IIII")


@contextmanager
def recorded(namespace: Namespace, device: str, pcap: Path) -> Iterator[None]:
    """Record what passes ``device`` while the block runs; then ``pcap`` has the headers.

    Where more packets passed than ``MOST``, the file has none.
    """
    with namespace.entered():
        taken = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    with taken:
        taken.setsockopt(_SOL_PACKET, _VERSION, _VERSION_2)
        taken.setsockopt(_SOL_PACKET, _RX_RING, struct.pack("=IIII", _BLOCK, _BLOCKS, _FRAME, MOST))
        taken.bind((device, _EVERY_PROTOCOL))
        try:
            yield
        finally:
            _, missed = struct.unpack("=II", taken.getsockopt(_SOL_PACKET, _STATISTICS, 8))
            # Mapped now and not before: how long that takes depends on where there was memory.
            with closing(mmap.mmap(taken.fileno(), _BLOCK * _BLOCKS)) as ring:
                pcap.write_bytes(b"".join((_FILE_HEAD, *(_read(ring) if not missed else ()))))


def _read(ring: mmap.mmap) -> Iterator[bytes]:
    """Yield the packets of ``ring``, each as a capture file has it."""
    for place in range(MOST):
        block, frame = divmod(place, _IN_A_BLOCK)
        start = block * _BLOCK + frame * _FRAME
        status, length, captured, first, _, seconds, ns = _HEAD.unpack_from(ring, start)
        if not status & _FILLED:
            return
        yield _PACKET_HEAD.pack(seconds, ns, captured, length)
        yield ring[start + first : start + first + captured]
