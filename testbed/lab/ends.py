"""Sockets at both ends of the lab that tell when the kernel had a packet (SO_TIMESTAMPNS)."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from testbed.base.addresses import family_of
from testbed.lab.topology import CLIENT_ADDRESS, SERVER_ADDRESS, Topology, addresses_in
from testbed.model import Ip

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

    @property
    def ways(self) -> dict[str, tuple[socket.socket, socket.socket]]:
        """Who sends and who receives, by direction."""
        return {"down": (self.server, self.client), "up": (self.client, self.server)}


def headers_bytes(ip: Ip) -> int:
    """Bytes of a probe's headers, of IP and UDP (RFC 791, RFC 8200, RFC 768)."""
    return 48 if ip == "6" else 28


@contextmanager
def open_ends(topology: Topology) -> Iterator[Ends]:
    """Open both sockets, over IPv4 if there is one; the undo closes them."""
    sockets = []
    try:
        for namespace, address in (
            (topology.client, CLIENT_ADDRESS),
            (topology.server, SERVER_ADDRESS),
        ):
            address = addresses_in(topology.plan.ip, address)[0]
            with namespace.entered():
                end = socket.socket(family_of(address), socket.SOCK_DGRAM)
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
