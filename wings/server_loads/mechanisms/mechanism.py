"""Mechanisms of connection management, combined as the source does it, and a server's queues.

A mechanism says what happens to a connection for which there is no room, or how one ends.  It is a
mask of ``Mode``, which the virtual kernel's ``net.ipv4.tcp_overload`` and the BPF program for other
kernels share, and a sysctl that every kernel has.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag

ABORT_ON_OVERFLOW = "net.ipv4.tcp_abort_on_overflow"
SYNCOOKIES = "net.ipv4.tcp_syncookies"
MAX_SYN_BACKLOG = "net.ipv4.tcp_max_syn_backlog"
SOMAXCONN = "net.core.somaxconn"


class Mode(IntFlag):
    """What is done differently; the bits are those of ``overload.bpf.c`` and ``tcp_overload.h``."""

    RST_SYN = 0x01
    RESERVE = 0x02
    ADMIT_SYN = 0x04
    RST_COOKIE = 0x08
    RST_FIN = 0x10
    YOUNG = 0x20


NOTHING = Mode(0)


@dataclass(frozen=True, slots=True)
class Management:
    """A combination of mechanisms.

    Attributes:
        name: the source's words, by which an experiment asks for it (``ServerSpec.mechanism``).
        mode: what the kernel does differently.
        abort: whether an ACK that finds no room is answered by a reset, and its request forgotten.
    """

    name: str
    mode: Mode = NOTHING
    abort: bool = False


_ALL = (
    # III-A: drops SYNs and handshakes' ACKs in silence while the accept queue is full.
    Management("default"),
    # III-B.1: answers an ACK by a reset where the accept queue is full.
    Management("abort", abort=True),
    # III-B.1: answers a SYN only if the accept queue has room for it beside all open handshakes.
    Management("reserv", Mode.RESERVE),
    # III-B.2: answers a SYN by a reset instead of dropping it.
    Management("abort rst-syn", Mode.RST_SYN, abort=True),
    Management("reserv rst-syn", Mode.RESERVE | Mode.RST_SYN),
    # III-B.2: answers every SYN, by a cookie if need be; resets at the ACK where there is no room.
    Management("no-syn-drop", Mode.ADMIT_SYN | Mode.RST_COOKIE, abort=True),
    # IV-B.1: treats a FIN without data as a reset and answers it by one.
    Management("default rst-fin", Mode.RST_FIN),
    Management("abort rst-syn rst-fin", Mode.RST_SYN | Mode.RST_FIN, abort=True),
)
MECHANISMS = {management.name: management for management in _ALL}
"""The source's combinations; those with close-rst are these with another client."""


@dataclass(frozen=True, slots=True)
class Queues:
    """Queues of a listening socket.

    Attributes:
        syn: connections whose handshake is open, at the most.
        accept: connections that wait for accept(2).  As in every Linux, one more has room.
        syncookies: ``tcp_syncookies``; 0: a full SYN queue drops SYNs, 1: it answers by cookies, 2:
            every SYN is answered by one.
        young: a full accept queue refuses a SYN only while two requests are open whose SYN-ACK was
            sent only once: Linux 2.4.
    """

    syn: int
    accept: int
    syncookies: int = 0
    young: bool = False


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
    def aborts(self) -> bool:
        """Whether an ACK that finds no room is answered by a reset."""
        return self.sysctls[ABORT_ON_OVERFLOW] == "1"

    @property
    def has_cookies(self) -> bool:
        """Whether a full SYN queue refuses nothing."""
        return self.sysctls[SYNCOOKIES] != "0"


def settings_of(management: Management, queues: Queues) -> Settings:
    """Return how a kernel of today gets ``management`` with ``queues``.

    Its one backlog limits both queues.  Where they differ, the backlog is that of the SYN queue,
    and the limit of the accept queue is kept beside it.
    """
    mode = management.mode | (Mode.YOUNG if queues.young else NOTHING)
    own = queues.syn == queues.accept and not mode & (Mode.ADMIT_SYN | Mode.YOUNG)
    # One more, so that the kernel's own limit of the accept queue is never reached.
    backlog = queues.accept if own else max(queues.syn, queues.accept + 1)
    cookies = max(queues.syncookies, 1) if mode & Mode.ADMIT_SYN else queues.syncookies
    sysctls = {
        SOMAXCONN: str(backlog),
        # Without cookies a kernel keeps its last quarter for peers that it knows; not here.
        MAX_SYN_BACKLOG: str(2 * backlog),
        SYNCOOKIES: str(cookies),
        ABORT_ON_OVERFLOW: str(int(management.abort)),
    }
    return Settings(mode, backlog, 0 if own else queues.accept, sysctls)
