"""Loopback server: a built page for any tool of this machine, without the lab.

Each listener of the lab gets a port of 127.0.0.1, so that an ordinary user can serve and any tool
that maps host and port to another address can ask; URLs and names stay those of the recording.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from testbed.archive.reading import TLS_FOLDER, Archive, read_archive
from testbed.base.errors import ConfigurationError, LabError
from testbed.base.scratch import scratch_folder
from testbed.model import Replay
from testbed.server.listeners import Listener, lab_listeners
from testbed.server.nginx import ERROR_LOG, NGINX, ServerOptions, serve
from testbed.server.replay_log import read_replay

ADDRESS = "127.0.0.1"
AUTHORITY_HASH = "authority.spki"
FIRST_PORT = 1024
LAST_PORT = 65535
GIVEN_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
ANSWER_S = 10.0
_PRIME = b"HEAD / HTTP/1.1\r\nHost: prime\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class LoopbackSite:
    """A page that is being served.

    ``resolver_rules`` are for Chromium's ``--host-resolver-rules``; with them it reaches this page
    and nothing else.  ``authority`` is the file with the hash of the lab authority's public key,
    for ``--ignore-certificate-errors-spki-list``, and ``tls`` its folder; both ``None`` for a page
    without https.  ``scratch`` is a folder that goes with the site.  ``replay`` says how the
    requests so far were answered, and raises LabError when the server has ended.
    """

    archive: Archive
    resolver_rules: tuple[str, ...]
    authority: Path | None
    tls: Path | None
    listeners: tuple[Listener, ...]
    scratch: Path
    replay: Callable[[], Replay]


@contextmanager
def serve_loopback(
    built: Path,
    protocol: str = "as-recorded",
    first_port: int | None = None,
    nginx: tuple[str, ...] = NGINX,
) -> Iterator[LoopbackSite]:
    """Serve the built page in ``built`` for the time of the block.

    ``protocol`` is as in ``lab_listeners``.  Listeners take ports one after the other from
    ``first_port``; without it, free ones.  ``nginx`` are the words that start it.

    Raises:
        ConfigurationError: there is no such page, it cannot be replayed, or ports do not suffice.
        LabError: nginx could not listen there.
        MissingError: there is no such nginx.
    """
    archive = read_archive(built)
    addresses = dict.fromkeys(archive.hosts, (ADDRESS,))
    planned = lab_listeners(archive, addresses, protocol)
    tls = built / TLS_FOLDER if any(listener.tls for listener in planned) else None
    with ExitStack() as undo:
        scratch = undo.enter_context(scratch_folder("serve"))
        ports = (
            _free_ports(len(planned)) if first_port is None else _ports(first_port, len(planned))
        )
        listeners = tuple(
            replace(listener, bound_port=port)
            for listener, port in zip(planned, ports, strict=True)
        )
        server = scratch / "server"
        terms = ServerOptions(tls=tls, buffered_log=False, program=nginx)
        undo.enter_context(serve(None, archive, listeners, server, terms))
        # A signal that comes before nginx waits for events would be heard at the next event only.
        _ping(server, ports[0])
        yield LoopbackSite(
            archive=archive,
            resolver_rules=resolver_rules(listeners),
            authority=None if tls is None else tls / AUTHORITY_HASH,
            tls=tls,
            listeners=listeners,
            scratch=scratch,
            replay=lambda: _replay(server, archive, ports[0]),
        )


def resolver_rules(listeners: tuple[Listener, ...]) -> tuple[str, ...]:
    """Return the rules for Chromium: each origin to its listener, all other names to nowhere."""
    rules = (f"MAP {listener.host}:{listener.port} {listener.sockets[0]}" for listener in listeners)
    return (*rules, "MAP * ~NOTFOUND")


def _ports(first: int, count: int) -> tuple[int, ...]:
    if first + count - 1 > LAST_PORT:
        raise ConfigurationError(
            [f"port {first}: this page needs {count} ports, and {LAST_PORT} is the last"]
        )
    return tuple(range(first, first + count))


def _free_ports(count: int) -> tuple[int, ...]:
    """Draw ports; first of those that the system gives to nobody who asks for any.

    A port that it gives may be another's by the time that nginx takes it.
    """
    low, high = map(int, GIVEN_PORTS.read_text("ascii").split())
    drawn = random.sample(range(FIRST_PORT, LAST_PORT + 1), LAST_PORT + 1 - FIRST_PORT)
    found: list[int] = []
    for port in sorted(drawn, key=lambda port: low <= port <= high):
        if len(found) == count:
            return tuple(found)
        with socket.socket() as end, suppress(OSError):
            end.bind((ADDRESS, port))
            found.append(port)
    raise LabError(f"this page needs {count} free ports of {ADDRESS}; there are {len(found)}")


def _replay(server: Path, archive: Archive, plain_port: int) -> Replay:
    # nginx does one thing after the other: what was answered before this is in its log now.
    _ping(server, plain_port)
    return read_replay(server, archive.served)


def _ping(server: Path, plain_port: int) -> None:
    """Ask nginx for what it does not log, and wait for the answer."""
    try:
        with socket.create_connection((ADDRESS, plain_port), timeout=ANSWER_S) as end:
            end.sendall(_PRIME)
            while end.recv(4096):
                pass
    except OSError as error:
        log_text = (server / ERROR_LOG).read_text(errors="replace")[-2000:]
        raise LabError(
            f"the server does not answer ({error}); its log: {log_text.strip()}"
        ) from None
