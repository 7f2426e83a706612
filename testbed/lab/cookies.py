"""Fast Open cookies: fetch one for each origin before the measurement (RFC 7413 section 4.1.2)."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence
from itertools import repeat

from testbed.base.addresses import family_of
from testbed.base.errors import LabError
from testbed.lab.topology import Topology, addresses_in, origin_address

REQUEST = b"HEAD / HTTP/1.1\r\nHost: prime\r\nConnection: close\r\n\r\n"
TIMEOUT_S = 30.0
AT_ONCE = 32
TRIES = 20
_TOTAL_RETRANSMISSIONS = 100  # where TCP_INFO has tcpi_total_retrans (linux/tcp.h)


def _limit(connection: socket.socket, timeout_s: float) -> None:
    """Bound send and receive in the kernel.

    Python's own time-outs make the socket non-blocking, and a first Fast Open send without a
    cookie then fails instead of falling back.
    """
    limit = struct.pack("@qq", int(timeout_s), 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)


def prime(
    topology: Topology,
    origins: int,
    settle_s: float,
    *,
    at_once: bool = False,
    lossy: bool = False,
) -> None:
    """Open and close one connection from the client to each origin, so that it holds a cookie.

    Over IPv4 and IPv6 it is another (RFC 7413 section 4.1.2); broken IPv6 brings none.

    One after the other, or (``at_once``, where waiting costs something) side by side; on a
    ``lossy`` link again until one lost nothing.

    Raises:
        LabError: an origin did not answer, or the link lost too much.
    """
    ip = "4" if topology.plan.ip == "dual-broken" else topology.plan.ip
    addresses = [
        each for index in range(origins) for each in addresses_in(ip, origin_address(index))
    ]
    with topology.client.entered():
        if at_once:
            _prime_at_once(addresses, lossy)
        else:
            for address in addresses:
                _prime(address, lossy)
    # Let the last FINs and ACKs leave the link before anything is measured.
    time.sleep(settle_s)


def _prime_at_once(addresses: Sequence[str], lossy: bool) -> None:
    from concurrent.futures import ThreadPoolExecutor  # in virtual time nobody pays for it

    # A thread begins in the network namespace of the one that starts it.
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="cookie") as threads:
        for _ in threads.map(_prime, addresses, repeat(lossy)):
            pass


def _prime(address: str, lossy: bool) -> None:
    for _ in range(TRIES if lossy else 1):
        if _visit(address, lossy):
            return
    raise LabError(
        f"no Fast Open cookie from {address}: packets of {TRIES} connections to it were lost; ask "
        "for less loss"
    )


def _visit(address: str, lossy: bool) -> bool:
    """Open and close a connection; whether it brought a cookie.

    A SYN that is sent again asks for none (tcp_retransmit_skb), so on a link with loss nothing may
    have been.
    """
    with socket.socket(family_of(address), socket.SOCK_STREAM) as connection:
        _limit(connection, TIMEOUT_S)
        try:
            connection.sendto(REQUEST, socket.MSG_FASTOPEN, (address, 80))
            while connection.recv(4096):
                pass
            return not lossy or _total_retransmissions(connection) == 0
        except OSError as error:
            raise LabError(f"no Fast Open cookie from {address}: {error}") from error


def _total_retransmissions(connection: socket.socket) -> int:
    told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TOTAL_RETRANSMISSIONS + 4)
    count: int = struct.unpack_from("=I", told, _TOTAL_RETRANSMISSIONS)[0]
    return count
