"""Mechanisms of connection management, each a few words, and the combinations that make sense.

A mechanism says what happens to a connection for which there is no room, or how one ends.  It is a
mask of ``Mode``, which the virtual kernel's ``net.ipv4.tcp_overload`` and the BPF program for other
kernels share, and a sysctl that every kernel has.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag

from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean

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
class Mechanism:
    """One word of a combination.

    Attributes:
        name: the source's name.
        does: what it does, in one sentence.
        section: of the source.
        mode: what the kernel does differently.
        abort: whether an ACK that finds no room is answered by a reset, and its request forgotten.
        base: whether it is one of the ways to establish connections, of which there is exactly one.
    """

    name: str
    does: str
    section: str
    mode: Mode = NOTHING
    abort: bool = False
    base: bool = False


_ALL = (
    Mechanism(
        "default",
        "Drops SYNs and handshakes' ACKs in silence while the accept queue is full.",
        section="III-A",
        base=True,
    ),
    Mechanism(
        "abort",
        "Answers an ACK by a reset where the accept queue is full.",
        section="III-B.1",
        abort=True,
        base=True,
    ),
    Mechanism(
        "reserv",
        "Answers a SYN only if the accept queue has room for it beside all open handshakes.",
        section="III-B.1",
        mode=Mode.RESERVE,
        base=True,
    ),
    Mechanism(
        "no-syn-drop",
        "Answers every SYN, by a cookie if need be, and resets at the ACK where there is no room.",
        section="III-B.2",
        mode=Mode.ADMIT_SYN | Mode.RST_COOKIE,
        abort=True,
        base=True,
    ),
    Mechanism(
        "rst-syn",
        "Answers a SYN by a reset instead of dropping it.",
        section="III-B.2",
        mode=Mode.RST_SYN,
    ),
    Mechanism(
        "rst-fin",
        "Treats a FIN without data as a reset and answers it by one.",
        section="IV-B.1",
        mode=Mode.RST_FIN,
    ),
)
MECHANISMS = {mechanism.name: mechanism for mechanism in _ALL}
PUBLISHED = (
    *("default", "abort", "reserv", "abort rst-syn", "reserv rst-syn", "no-syn-drop"),
    *("default rst-fin", "abort rst-syn rst-fin"),
)
"""The source's combinations; those with close-rst are these with another client."""


@dataclass(frozen=True, slots=True)
class Management:
    """A combination of mechanisms: ``name`` is its words, in the order of ``MECHANISMS``."""

    name: str
    mode: Mode
    abort: bool


def parse_management(words: str) -> Management:
    """Return the combination of ``words``, such as ``abort rst-syn``.

    Raises:
        ConfigurationError: a word is unknown or there twice, or they contradict each other.
    """
    asked = words.split()
    problems = [
        f"no mechanism {word!r}{did_you_mean(word, tuple(MECHANISMS))}; "
        f"there are {', '.join(MECHANISMS)}"
        for word in asked
        if word not in MECHANISMS
    ]
    problems += [f"mechanism {word!r} is there twice" for word in dict.fromkeys(asked)
                 if asked.count(word) > 1]  # fmt: skip
    if problems:
        raise ConfigurationError(problems)
    chosen = [mechanism for name, mechanism in MECHANISMS.items() if name in asked]
    bases = [mechanism.name for mechanism in chosen if mechanism.base]
    if len(bases) != 1:
        every = ", ".join(name for name, mechanism in MECHANISMS.items() if mechanism.base)
        found = " and ".join(bases) or "none"
        problems.append(f"mechanisms {words!r}: exactly one of {every} is needed, not {found}")
    if "no-syn-drop" in asked and "rst-syn" in asked:
        problems.append(
            f"mechanisms {words!r}: no-syn-drop refuses no SYN that rst-syn could answer"
        )
    if problems:
        raise ConfigurationError(problems)
    mode = NOTHING
    for mechanism in chosen:
        mode |= mechanism.mode
    name = " ".join(mechanism.name for mechanism in chosen)
    return Management(name, mode, any(mechanism.abort for mechanism in chosen))


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

    def __post_init__(self) -> None:
        """Refuse what no kernel has.

        Raises:
            ConfigurationError: a queue without room, or an unknown value of ``tcp_syncookies``.
        """
        problems = [
            f"{name} queue of {size} connections: at least 1 is needed"
            for name, size in (("SYN", self.syn), ("accept", self.accept))
            if size < 1
        ]
        if 1 <= self.syn < self.accept:
            problems.append(
                f"SYN queue of {self.syn} connections and accept queue of {self.accept}: Linux has "
                "one backlog for both, so the SYN queue cannot be the shorter one"
            )
        if self.syncookies not in (0, 1, 2):
            problems.append(f"syncookies = {self.syncookies}: 0, 1 or 2 is needed")
        if problems:
            raise ConfigurationError(problems)


PUBLISHED_QUEUES = Queues(syn=1024, accept=128, young=True)
"""Linux 2.4.22 (section V); SYN cookies were off unless the kernel was built with them."""
TODAY = Queues(syn=4096, accept=4096, syncookies=1)
"""Linux since 5.4, where an application asks for as much as there is."""


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
