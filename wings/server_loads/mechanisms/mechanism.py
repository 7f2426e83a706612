"""Mechanisms of connection management, combined as the source does it, and a server's queues.

A mechanism says what happens to a connection for which there is no room, or how one ends.  It is a
mask of ``Mode``, which the virtual kernel's ``net.ipv4.tcp_overload`` and the BPF program for other
kernels share, and a sysctl that every kernel has.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag

from wings.server_loads.spec import Mechanism, ServerSpec

ABORT_ON_OVERFLOW = "net.ipv4.tcp_abort_on_overflow"
SYNCOOKIES = "net.ipv4.tcp_syncookies"
MAX_SYN_BACKLOG = "net.ipv4.tcp_max_syn_backlog"
SOMAXCONN = "net.core.somaxconn"
OVERLOAD = "net.ipv4.tcp_overload"
ACCEPT_LIMIT = "net.ipv4.tcp_accept_limit"


class Mode(IntFlag):
    """What is done differently; the bits are those of ``overload.bpf.c`` and ``tcp_overload.h``."""

    RST_SYN = 0x01
    RESERVE = 0x02
    ADMIT_SYN = 0x04
    RST_COOKIE = 0x08
    RST_FIN = 0x10
    YOUNG = 0x20


NOTHING = Mode(0)
MECHANISMS: dict[Mechanism, tuple[Mode, bool]] = {
    # III-A: drops SYNs and handshakes' ACKs in silence while the accept queue is full.
    "default": (NOTHING, False),
    # III-B.1: answers an ACK by a reset where the accept queue is full.
    "abort": (NOTHING, True),
    # III-B.1: answers a SYN only if the accept queue has room for it beside all open handshakes.
    "reserv": (Mode.RESERVE, False),
    # III-B.2: answers a SYN by a reset instead of dropping it.
    "abort rst-syn": (Mode.RST_SYN, True),
    "reserv rst-syn": (Mode.RESERVE | Mode.RST_SYN, False),
    # III-B.2: answers every SYN, by a cookie if need be; resets at the ACK where there is no room.
    "no-syn-drop": (Mode.ADMIT_SYN | Mode.RST_COOKIE, True),
    # IV-B.1: treats a FIN without data as a reset and answers it by one.
    "default rst-fin": (Mode.RST_FIN, False),
    "abort rst-syn rst-fin": (Mode.RST_SYN | Mode.RST_FIN, True),
}
"""The source's combinations: what the kernel does differently, and whether an ACK that finds no
room is answered by a reset, and its request forgotten.  Those with close-rst are these with another
client."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A combination with its queues, as a kernel of today is told of them.

    Attributes:
        mode: of the BPF program or the patched kernel.
        backlog: what the server has to give to listen(2).
        limit: of the accept queue, where it is not the backlog; 0: it is.
        sysctls: what every kernel has, for the server's namespace.
    """

    mode: Mode
    backlog: int
    limit: int
    sysctls: dict[str, str]

    @property
    def patched(self) -> dict[str, str]:
        """The sysctls of a patched kernel, which has two more."""
        return self.sysctls | {OVERLOAD: str(int(self.mode)), ACCEPT_LIMIT: str(self.limit)}


def settings_of(server: ServerSpec) -> Settings:
    """Return how a kernel of today gets the mechanism and the queues of ``server``.

    Its one backlog limits both queues, and as in every Linux one more connection than that has room
    to wait for accept(2).  Where they differ, the backlog is that of the SYN queue, and the limit
    of the accept queue is kept beside it.
    """
    mode, aborts = MECHANISMS[server.mechanism]
    if server.admission == "linux-2.4":
        mode |= Mode.YOUNG
    syn, accept = server.syn_backlog, server.listen_backlog
    own = syn == accept and not mode & (Mode.ADMIT_SYN | Mode.YOUNG)
    # One more, so that the kernel's own limit of the accept queue is never reached.
    backlog = accept if own else max(syn, accept + 1)
    cookies = max(server.syncookies, 1) if mode & Mode.ADMIT_SYN else server.syncookies
    sysctls = {
        SOMAXCONN: str(backlog),
        # Without cookies a kernel keeps its last quarter for peers that it knows; not here.
        MAX_SYN_BACKLOG: str(2 * backlog),
        SYNCOOKIES: str(cookies),
        ABORT_ON_OVERFLOW: str(int(aborts)),
    }
    return Settings(mode, backlog, 0 if own else accept, sysctls)
