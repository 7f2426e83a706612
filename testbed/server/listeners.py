"""Listening sockets of the server: one for each origin of a page, and for priming cookies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from testbed.archive.reading import Archive, ServedOrigin
from testbed.base.addresses import with_port
from testbed.base.errors import ConfigurationError

PRIMING_PORT = 80


@dataclass(frozen=True, slots=True)
class Listener:
    """One listening socket and the origin that it serves.

    ``host`` and ``port`` are those of the origin's URLs, at ``addresses`` the server listens.
    ``tls``, ``h2`` and ``h3`` say which protocols it offers, the last by UDP as well.
    ``bound_port`` is the port it listens on; ``None``: the same.
    """

    host: str
    addresses: tuple[str, ...]
    port: int
    tls: bool
    h2: bool
    bound_port: int | None = None
    h3: bool = False

    @property
    def speaks(self) -> str:
        """What it is to speak, as logs have it."""
        return "HTTP/3.0" if self.h3 else "HTTP/2.0" if self.h2 else "HTTP/1.1"

    @property
    def scheme(self) -> str:
        """The scheme of the origin's URLs."""
        return "https" if self.tls else "http"

    @property
    def sockets(self) -> tuple[str, ...]:
        """Addresses and port on which the server listens, as in URLs."""
        port = self.bound_port or self.port
        return tuple(with_port(address, port) for address in self.addresses)


def list_plain(archive: Archive) -> list[str]:
    """Return the page's origins without TLS, as their URLs begin."""
    return [
        f"http://{with_port(origin.host, origin.port)}"
        for origin in archive.origins
        if origin.scheme == "http"
    ]


def lab_listeners(
    archive: Archive, addresses: Mapping[str, tuple[str, ...]], protocol: str
) -> tuple[Listener, ...]:
    """Return the listeners of a page whose hosts have ``addresses``.

    Every host listens on plain port 80, where cookies are primed, and for each of its origins.
    ``protocol`` is what TLS origins speak: ``as-recorded`` (HTTP/2 where any response came over
    it), ``h1``, ``h2``, or ``h3`` beside HTTP/2 over TCP.

    Raises:
        ConfigurationError: a host has no address, or http and https on one port.
    """
    listeners: dict[tuple[str, int], Listener] = {}
    problems = []

    def add(origin: ServedOrigin, h2: bool = False, h3: bool = False) -> None:
        tls = origin.scheme == "https"
        listener = Listener(
            *(origin.host, addresses[origin.host], origin.port, tls, h2 and tls), h3=h3 and tls
        )
        if listeners.setdefault((origin.host, origin.port), listener).tls != tls:
            problems.append(f"{origin.host}: port {origin.port} has both http and https")

    for host in archive.hosts:
        if host in addresses:
            add(ServedOrigin("http", host, PRIMING_PORT, False))
        else:
            problems.append(f"{host}: has no address")
    if not problems:
        for origin in archive.origins:
            h2 = protocol in ("h2", "h3") or (protocol == "as-recorded" and origin.h2)
            add(origin, h2, h3=protocol == "h3")
    if problems:
        raise ConfigurationError(
            [f"{archive.name} cannot be served: {problem}" for problem in problems]
        )
    return tuple(listeners.values())
