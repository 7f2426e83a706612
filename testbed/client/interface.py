"""Interface of the clients: the order of a load, what every client can do, and its environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from testbed.archive.reading import Archive
from testbed.base.errors import TrialError
from testbed.client.program import Program
from testbed.model import KEYS_FILE, NO_OPENING, Opening, PageLoad
from testbed.model.device import BrowserDevice

# The lab's authority inside a built page's folder ``tls``.
AUTHORITY_NAME = "authority.pem"
SPKI_NAME = "authority.spki"


class LoadError(TrialError):
    """The client could not load the page; the message names the client and the log's end."""


class LoadTimeoutError(LoadError):
    """The load did not end within the order's time."""


@dataclass(frozen=True, slots=True)
class ClientPlace:
    """Where a client runs: what of an order neither page nor condition has a say in.

    ``real_time`` says that nobody waits for a round instant, ``timeout_s`` how long a process may
    take to be ready, ``trusting`` that the lab's authority is trusted, ``opening`` what else
    the condition asks of a process's start; the rest is as in ``LoadOrder``.
    """

    prefix: tuple[str, ...]
    bundle: Path
    scratch: Path
    out: Path
    user: int | None = None
    real_time: bool = False
    timeout_s: float = 60.0
    trusting: bool = True
    opening: Opening = NO_OPENING


@dataclass(frozen=True, slots=True)
class LoadOrder:
    """Order of one page load.

    ``prefix`` runs a command inside the client's network namespace.  ``tfo`` says whether Fast
    Open is under test.  ``think_time`` is "recorded" or "none" (graph client).  ``bundle`` holds
    ``native/`` and ``js/``; ``scratch`` is private, writable and empty; ``out`` keeps the
    client's files.  ``wait_until_ns`` is the CLOCK_REALTIME at which the load starts, ``None`` for
    at once; what can be started before that moment is.  ``user`` is the user id that ``prefix``
    switches to, ``None`` when it does not.  ``tls`` is the built page's folder with the lab's
    authority (``authority.pem``, ``authority.spki``); without it no server is trusted.
    ``tls_version`` ("1.3" or "1.2") is the highest that the client offers.  ``protocol``
    ("as-recorded", "h1" or "h2") is what https origins are to speak.  ``pinned`` gives the page's
    scripts pinned clocks and random numbers, in clients that run scripts.  ``think_spread_pct``
    and ``seed`` vary recorded think times (graph client; see ``testbed.base.seeding``).
    ``command`` is what the client of that name runs; ``began`` is the file in which ``prefix``
    notes when that starts, in ns of CLOCK_REALTIME, ``None`` when it does not.  ``restart`` is
    called in virtual time at ``wait_until_ns``, by a client whose process was started long before,
    and returns a second later: the guest then has forgotten what was.  ``load_ns`` is the
    CLOCK_REALTIME at which neighbours may expect the load, where there are any.  ``opening``
    is what a process had to know at its start; ``resumption`` says whether sessions are resumed,
    by a client that chooses.  ``visits`` is how often the page is loaded in one process;
    ``preconnect_pct`` is the hit rate of PRECONNECT, ``None`` without it (graph client).
    ``keep_cache`` says that the cache is kept from one to the next, and ``idle`` returns when that
    begins.  ``film`` has frames of the last visit kept as ``frame-MS.png``, by a browser.
    ``device`` is what a browser is to be; ``None``: as it is.  ``blocked`` are hosts that it is to
    ask for nothing.
    """

    archive: Archive
    prefix: tuple[str, ...]
    tfo: bool
    think_time: str
    bundle: Path
    scratch: Path
    out: Path
    timeout_s: float
    wait_until_ns: int | None = None
    user: int | None = None
    tls: Path | None = None
    tls_version: str = "1.3"
    protocol: str = "as-recorded"
    pinned: bool = False
    think_spread_pct: float = 0.0
    seed: int = 0
    command: str = ""
    began: Path | None = None
    restart: Callable[[], None] | None = None
    load_ns: int | None = None
    opening: Opening = NO_OPENING
    resumption: bool = False
    preconnect_pct: float | None = None
    visits: int = 1
    keep_cache: bool = False
    idle: Callable[[], None] | None = None
    film: bool = False
    device: BrowserDevice | None = None
    blocked: tuple[str, ...] = ()

    @property
    def seat(self) -> ClientPlace:
        """Where the client runs."""
        return ClientPlace(
            *(self.prefix, self.bundle, self.scratch, self.out, self.user),
            real_time=self.wait_until_ns is None,
            timeout_s=self.timeout_s,
            trusting=self.tls is not None,
            opening=self.opening,
        )


class PageLoader(Protocol):
    """Something that loads a page: a client, or one whose process has been started already."""

    def load(self, order: LoadOrder) -> PageLoad:
        """Load the page once, with empty caches, and write ``load.har`` to ``order.out``.

        Raises:
            LoadTimeoutError: it did not end in time.
            LoadError: the client itself failed; failed requests are no error but a result.
        """


class Client(PageLoader, Protocol):
    """A program that loads a page."""

    @property
    def name(self) -> str:
        """Name in the registry, in configurations and in results."""

    @property
    def programs(self) -> tuple[Program, ...]:
        """What it runs; a client that is part of the harness runs none."""

    @property
    def tcp_alone(self) -> bool:
        """Whether its requests follow from the network alone: a difference is then TCP's."""

    @property
    def honours(self) -> frozenset[str]:
        """What not every client can do: knobs by their names, or their values such as ``h3``."""


@runtime_checkable
class EarlyClient(Client, Protocol):
    """A client whose process can be started before it is known what it is to load."""

    def started(self, seat: ClientPlace) -> AbstractContextManager[PageLoader]:
        """Start it, and have it ready for one load; the undo ends it.

        Raises:
            LoadError: it did not start.
        """


# Clears bit 62, RDRAND.  Where the processor has it (BoringSSL: Intel's only), every random number
# would differ between two boots of one seed, and with it the bytes and the length of a ClientHello.
# Read by BoringSSL and OpenSSL; see OPENSSL_ia32cap(3).  GnuTLS does not use the instruction.
NO_RDRAND = "~0x4000000000000000"


# The loader looks into other folders on each level of x86-64, and so makes another number of
# system calls, which moves a browser's heap and the order of its threads: everywhere those of
# x86-64-v2 (ld.so(8), glibc.cpu.hwcaps).  The same as native/init.c has it.
SAME_PROCESSOR = "glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-ERMS,-FSRM"


KEYS_VARIABLE = "SSLKEYLOGFILE"


def client_environment(order: LoadOrder | ClientPlace) -> dict[str, str]:
    """Return the environment of a client's processes: the same for all users, without settings.

    ``SSLKEYLOGFILE`` is the name by which Chromium, curl, GnuTLS's wget2 and ours know the file.
    """
    keys = {KEYS_VARIABLE: str(order.out / KEYS_FILE)} if order.opening.keys else {}
    return keys | {
        "GLIBC_TUNABLES": SAME_PROCESSOR,
        "HOME": str(order.scratch),
        "LANG": "C.UTF-8",
        "OPENSSL_ia32cap": NO_RDRAND,
        "PATH": os.environ.get("PATH", os.defpath),
        "TMPDIR": str(order.scratch),
        "TZ": "UTC",
    }
