"""Confinement of the recording browser: its user, and the private addresses that it may reach.

The browser meets whatever a page sends, so it runs as an ordinary user.  ``native/guard.c``
refuses private addresses to its sockets, but for the page's own and those that the caller names.
A page's own host may be private if all of its addresses are; its name is then pinned to one of
them, so that no name server can first show a private address, to have it let through, and then be
the one that the page comes from.
"""

from __future__ import annotations

import ipaddress
import os
import pwd
import socket
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from testbed.archive.reading import split_url
from testbed.base.errors import ConfigurationError
from wings.pages.recorder.order import RecordOrder, parse_end

ORDINARY = "nobody"
TIED = ("setpriv", "--pdeathsig", "KILL")
_SYSTEM_SCRATCH = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - for mkdtemp
LIBRARY = "guard.so"
ANY_PORT, HTTP, HTTPS = 0, 80, 443
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Account:
    """``prefix`` starts a command as ``user``, and ends it with the thread that started it.

    ``remark`` says why the user is not as it should be.
    """

    user: int
    group: int = 0
    prefix: tuple[str, ...] = TIED
    remark: str = ""

    def own(self, folder: Path) -> None:
        """Give ``folder`` and what is in it to this account."""
        if self.user != os.geteuid():
            for path in (folder, *folder.rglob("*")):
                os.chown(path, self.user, self.group)


def choose_scratch(folder: Path) -> Path:
    """Return ``folder``; for root, a temporary one if an ordinary user cannot reach it."""
    if os.geteuid() != 0 or next(_closed([folder / "any"]), None) is None:
        return folder
    places = (Path(tempfile.gettempdir()), *_SYSTEM_SCRATCH)
    open_ones = (p for p in places if p.is_dir() and next(_closed([p / "any"]), None) is None)
    return next(open_ones, folder)


def choose_account(*needed: Path) -> Account:
    """Return this user; for root, an ordinary one that can reach all of ``needed``.

    Chromium refuses its sandbox to root.
    """
    if os.geteuid() != 0:
        return Account(os.geteuid())
    closed = next(_closed(needed), None)
    if closed is not None:
        return Account(0, remark=f"the browser runs as root, without its sandbox: {closed}")
    ordinary = pwd.getpwnam(ORDINARY)
    prefix = (*(*TIED, f"--reuid={ordinary.pw_uid}", f"--regid={ordinary.pw_gid}"),
              *("--clear-groups", "--no-new-privs"))  # fmt: skip
    return Account(ordinary.pw_uid, ordinary.pw_gid, prefix)


def _closed(needed: Iterable[Path]) -> Iterator[str]:
    for path in needed:
        for folder in path.resolve().parents:
            if not folder.stat().st_mode & 0o001:
                yield f"{folder} is closed to other users"


@dataclass(frozen=True, slots=True)
class Reach:
    """``ends`` are ADDRESS:PORT as the guard takes them; ``rules`` pin names for the browser."""

    ends: tuple[str, ...]
    rules: tuple[str, ...]


def find_reach(order: RecordOrder) -> Reach:
    """Return what of this machine and its network ``order`` lets its page reach.

    Raises:
        ConfigurationError: a host that it names is none.
    """
    _, host, port, _ = split_url(order.url)
    ends = [end for rule in order.resolver_rules for end in _ends_of_rule(rule, port)]
    problems = []
    for text in order.allowed:
        host_name, allowed_port = parse_end(text)
        addresses = _resolve(host_name)
        if not addresses:
            problems.append(f"--allow-private {text}: no such host")
        to_port = ANY_PORT if allowed_port is None else allowed_port
        ends += [_end(address, to_port) for address in addresses]
    if problems:
        raise ConfigurationError(problems)
    ruled = any(_is_for(rule, host, port) for rule in order.resolver_rules)
    own = [] if ruled else _resolve(host)
    if any(address.is_global for address in own):
        own = []
    rules: tuple[str, ...] = ()
    if own and not _is_fixed(host):
        own = own[:1]
        rules = (f"MAP {host} {_literal(own[0])}",)
    # A page at the usual port may send the browser to TLS.
    ports = (port, HTTPS) if port == HTTP else (port,)
    ends += [_end(address, number) for address in own for number in ports]
    return Reach(tuple(ends), rules)


def read_refused(log: Path) -> tuple[str, ...]:
    """Read ADDRESS:PORT of each attempt that the guard refused."""
    return tuple(log.read_text("ascii").splitlines())


def _ends_of_rule(rule: str, port: int) -> Iterator[str]:
    """Yield the ends that a resolver rule leads to, at its port or else at the page's."""
    words = rule.split()
    if len(words) != 3 or words[0].upper() != "MAP" or words[2][0] in "~^":
        return
    host, rule_port = parse_end(words[2])
    for address in _resolve(host):
        yield _end(address, port if rule_port is None else rule_port)


def _is_for(rule: str, host: str, port: int) -> bool:
    words = rule.split()
    pattern = words[1].lower() if len(words) == 3 and words[0].upper() == "MAP" else ""
    return fnmatchcase(host, pattern) or fnmatchcase(f"{host}:{port}", pattern)


def _is_fixed(host: str) -> bool:
    """Return whether no name server is asked: for an address, or a name of every machine's own."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return True


def _resolve(host: str) -> list[Address]:
    """Return the addresses of ``host``, those of IPv4 first; none if there is no such host."""
    try:
        answers = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    texts = dict.fromkeys(str(answer[4][0]).partition("%")[0] for answer in answers)
    return sorted(map(ipaddress.ip_address, texts), key=lambda address: address.version)


def _end(address: Address, port: int) -> str:
    return f"{_literal(address)}:{port}"


def _literal(address: Address) -> str:
    return f"[{address}]" if address.version == 6 else str(address)
