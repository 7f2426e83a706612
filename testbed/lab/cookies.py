"""Fast Open cookies: fetch one for each origin before the measurement (RFC 7413 section 4.1.2)."""

from __future__ import annotations

import socket
import struct
import time

from testbed.errors import LabError
from testbed.lab.topology import Topology, origin_address

REQUEST = b"HEAD / HTTP/1.1\r\nHost: prime\r\nConnection: close\r\n\r\n"
SETTLE_S = 2.0


def _limit(connection: socket.socket, timeout_s: float) -> None:
    """Bound send and receive in the kernel.

    Python's own time-outs make the socket non-blocking, and a first Fast Open send without a
    cookie then fails instead of falling back.
    """
    limit = struct.pack("@qq", int(timeout_s), 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)


def prime(topology: Topology, origins: int, timeout_s: float = 30.0) -> None:
    """Open and close one connection from the client to each origin, so that it holds a cookie.

    Raises:
        LabError: an origin did not answer.
    """
    with topology.client.entered():
        for index in range(origins):
            address = origin_address(index)
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
                _limit(connection, timeout_s)
                try:
                    connection.sendto(REQUEST, socket.MSG_FASTOPEN, (address, 80))
                    while connection.recv(4096):
                        pass
                except OSError as error:
                    raise LabError(f"no Fast Open cookie from {address}: {error}") from error
    # Let the last FINs and ACKs leave the link before anything is measured.
    time.sleep(SETTLE_S)
