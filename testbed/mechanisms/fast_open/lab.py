"""Fast Open at both ends, and cookies: one for each origin before the load (RFC 7413, 4.1.2)."""

from __future__ import annotations

import hashlib
import socket
import struct
import time
from collections.abc import Iterator

from testbed.base.addresses import family_of
from testbed.base.errors import LabError
from testbed.lab.acting import Acting
from testbed.lab.laboratory import Lab
from testbed.lab.readback import ENDS, State
from testbed.lab.sysctls import FASTOPEN_KEY
from testbed.lab.topology import Topology, addresses_in, origin_address
from testbed.model import Linked

FASTOPEN = "net.ipv4.tcp_fastopen"
# Its bits: 1 client, 2 server, 4 client without cookie, 0x200 server without cookie.
WITH_COOKIES, COOKIE_NOT_REQUIRED = 3, 519

REQUEST = b"HEAD / HTTP/1.1\r\nHost: prime\r\nConnection: close\r\n\r\n"
TIMEOUT_S = 30
AT_ONCE = 32


class FastOpen(Acting):
    """Switches Fast Open on or off, and brings cookies into the state that is asked for."""

    def sysctls(self, condition: Linked) -> dict[str, str]:
        """Fast Open, on or off."""
        tcp = condition.tcp
        on = COOKIE_NOT_REQUIRED if tcp.cookies == "not-required" else WITH_COOKIES
        return {FASTOPEN: str(on if tcp.tfo else 0)}

    def act(self, topology: Topology, condition: Linked) -> None:
        """Give the server a key that is always the same."""
        set_key(topology, "first")

    def expect(self, condition: Linked) -> Iterator[tuple[str, str | None]]:
        """Fast Open, on or off."""
        for role in ENDS:
            yield from ((f"{role}.{name}", text) for name, text in self.sysctls(condition).items())

    def prepare(self, lab: Lab, origins: int) -> None:
        """Bring the client's cookies into the state that the condition asks for.

        ``cached``: a valid cookie for every origin.  ``cold``: a stale one (the server's key is
        rotated after the priming).  ``not-required``, or no Fast Open: nothing to do.  The link
        draws nothing meanwhile, and begins with the seed's draws for what follows.
        """
        tcp = lab.condition.tcp
        if tcp.tfo and tcp.cookies != "not-required":
            lab.link.draw_nothing()
            prime(lab.topology, origins, lab.settle_s, at_once=lab.exactness.real_time)
            lab.link.draw_anew()
            if tcp.cookies == "cold":
                set_key(lab.topology, "rotated")

    def judge(self, state: State, condition: Linked) -> Iterator[str]:
        """A sentence if the server's key is not that of primed cookies, or of stale ones."""
        tcp = condition.tcp
        purpose = "rotated" if tcp.tfo and tcp.cookies == "cold" else "first"
        if state.sysctls["server"].get(FASTOPEN_KEY) != key_for(purpose):
            yield f"server: {FASTOPEN_KEY} is not the {purpose} key"


FAST_OPEN = FastOpen()


def key_for(purpose: str) -> str:
    """A fixed Fast Open key in the sysctl's format, a different one for each purpose."""
    text = hashlib.sha256(f"fastopen key: {purpose}".encode()).hexdigest()[:32]
    return "-".join(text[i : i + 8] for i in range(0, 32, 8))


def set_key(topology: Topology, purpose: str) -> None:
    """Give the server a Fast Open key; cookies by another one, which clients hold, are stale."""
    topology.server.write_sysctls({FASTOPEN_KEY: key_for(purpose)})


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
            from concurrent.futures import ThreadPoolExecutor  # in virtual time nobody pays for it

            # A thread begins in the network namespace of the one that starts it.
            with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="cookie") as threads:
                list(threads.map(_prime, addresses))
        else:
            for address in addresses:
                _prime(address)
    # Let the last FINs and ACKs leave the link before anything is measured.
    time.sleep(settle_s)


def _prime(address: str) -> None:
    with socket.socket(family_of(address), socket.SOCK_STREAM) as connection:
        # Bounded in the kernel: Python's own time-outs make the socket non-blocking, and a first
        # Fast Open send without a cookie then fails instead of falling back.
        for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            connection.setsockopt(socket.SOL_SOCKET, option, struct.pack("@qq", TIMEOUT_S, 0))
        try:
            connection.sendto(REQUEST, socket.MSG_FASTOPEN, (address, 80))
            while connection.recv(4096):
                pass
        except OSError as error:
            raise LabError(f"no Fast Open cookie from {address}: {error}") from error
