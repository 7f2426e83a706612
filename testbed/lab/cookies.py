"""Fast Open cookies: fetch one for each origin before the measurement (RFC 7413 section 4.1.2)."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence

from testbed.base.addresses import family_of
from testbed.base.errors import LabError
from testbed.lab.topology import Topology, addresses_in, origin_address

REQUEST = b"HEAD / HTTP/1.1\r\nHost: prime\r\nConnection: close\r\n\r\n"
TIMEOUT_S = 30.0
AT_ONCE = 32


def _limit(connection: socket.socket, timeout_s: float) -> None:
    """Bound send and receive in the kernel.

    Python's own time-outs make the socket non-blocking, and a first Fast Open send without a
    cookie then fails instead of falling back.
    """
    limit = struct.pack("@qq", int(timeout_s), 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)


def prime(topology: Topology, origins: int, settle_s: float, *, at_once: bool = False) -> None:
    """Open and close one connection from the client to each origin, so that it holds a cookie.

    Over IPv4 and IPv6 it is another (RFC 7413 section 4.1.2); broken IPv6 brings none.

    One after the other, or (``at_once``, where waiting costs something) side by side.  The link
    loses nothing meanwhile: a SYN that is sent again asks for no cookie (tcp_retransmit_skb).

    Raises:
        LabError: an origin did not answer.
    """
    ip = "4" if topology.plan.ip == "dual-broken" else topology.plan.ip
    addresses = [
        each for index in range(origins) for each in addresses_in(ip, origin_address(index))
    ]
    with topology.client.entered():
        if at_once:
            _prime_at_once(addresses)
        else:
            for address in addresses:
                _prime(address)
    # Let the last FINs and ACKs leave the link before anything is measured.
    time.sleep(settle_s)


def _prime_at_once(addresses: Sequence[str]) -> None:
    from concurrent.futures import ThreadPoolExecutor  # in virtual time nobody pays for it

    # A thread begins in the network namespace of the one that starts it.
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="cookie") as threads:
        for _ in threads.map(_prime, addresses):
            pass


def _prime(address: str) -> None:
    with socket.socket(family_of(address), socket.SOCK_STREAM) as connection:
        _limit(connection, TIMEOUT_S)
        try:
            connection.sendto(REQUEST, socket.MSG_FASTOPEN, (address, 80))
            while connection.recv(4096):
                pass
        except OSError as error:
            raise LabError(f"no Fast Open cookie from {address}: {error}") from error
