"""Checks whether the lab can serve the origins of an archive."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from testbed.archive.reading import Archive

MOST_HOSTS = 250  # addresses that the lab has for them
_PLAIN_PORT = 80


def origin_problems(archive: Archive) -> Iterator[str]:
    """What the lab cannot serve, one sentence for each host or port."""
    if len(archive.hosts) > MOST_HOSTS:
        yield f"{len(archive.hosts)} hosts; the lab has addresses for {MOST_HOSTS}"
    for host in archive.hosts:
        problem = host_problem(host)
        if problem is not None:
            yield f"{host}: {problem}"
    schemes: dict[tuple[str, int], str] = {}
    for origin in archive.origins:
        if origin.scheme == "https" and origin.port == _PLAIN_PORT:
            yield f"{origin.host}: https on port {_PLAIN_PORT}, where the lab speaks plain HTTP"
        known = schemes.setdefault((origin.host, origin.port), origin.scheme)
        if known != origin.scheme:
            yield f"{origin.host}: both http and https on port {origin.port}"


def host_problem(host: str) -> str | None:
    """Why the lab cannot serve a host of this name, or ``None``."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        return "an address; browsers ask no name server for it, so that it cannot be served"
    last = host.rpartition(".")[2]
    if last.isdigit():
        return "browsers take it for an address, because it ends in a number"
    if last == "localhost":
        return "browsers take it for their own machine"
    return None
