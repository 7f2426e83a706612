"""Sockets at both ends of the lab that tell when the kernel had a packet (SO_TIMESTAMPNS)."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from testbed.lab.topology import CLIENT_ADDRESS, SERVER_ADDRESS, Topology

IP_UDP_HEADER_BYTES = 28
SOCKET_BUFFER_BYTES = 8 << 20
# socket(7); Python has no names for them.
SO_SNDBUFFORCE = 32
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35


@dataclass(frozen=True, slots=True)
class Ends:
    """One UDP socket in the client's namespace and one in the server's, connected."""

    client: socket.socket
    server: socket.socket


@contextmanager
def open_ends(topology: Topology) -> Iterator[Ends]:
    """Open both sockets; the undo closes them."""
    sockets = []
    try:
        for namespace, address in (
            (topology.client, CLIENT_ADDRESS),
            (topology.server, SERVER_ADDRESS),
        ):
            with namespace.entered():
                end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sockets.append(end)
            time_arrivals(end)
            end.bind((address, 0))
        client, server = sockets
        client.connect(server.getsockname())
        server.connect(client.getsockname())
        yield Ends(client, server)
    finally:
        for end in sockets:
            end.close()


def time_arrivals(end: socket.socket) -> None:
    """Make room for a whole train, and have the kernel note when each packet arrives."""
    end.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, SOCKET_BUFFER_BYTES)
    end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BUFFER_BYTES)
    end.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)


def receive(end: socket.socket, timeout_s: float) -> tuple[int, bytes] | None:
    """When the next packet arrived, in ns of the real-time clock, and its start; None: no more."""
    end.settimeout(timeout_s)
    try:
        data, ancillary, _, _ = end.recvmsg(64, 64)
    except TimeoutError:
        return None
    for _, kind, content in ancillary:
        if kind == SO_TIMESTAMPNS:
            seconds, nanoseconds = struct.unpack("@qq", content[:16])
            return int(seconds * 1_000_000_000 + nanoseconds), data
    raise OSError("the kernel gave no arrival time (SO_TIMESTAMPNS)")
