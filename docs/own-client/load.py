#!/usr/bin/env python3
"""An own client, as small as one can be: it asks for one resource after the other.

load.py URLS CA: URLS is a file with one address on each line, CA the authority to trust.  It opens
plain connections with Fast Open; those over TLS not, because Python's ssl begins its handshake on
connections that stand, so that a trial which asks for Fast Open there is unproven.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urljoin, urlsplit

TCP_FASTOPEN_CONNECT = 30  # linux/tcp.h; Python has no name for it
READ_BYTES = 65536


def connect(address: tuple[str, int], *_timeouts: object) -> socket.socket:
    """Return a connection whose first bytes go with its SYN, where Fast Open is on (tcp(7))."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with suppress(OSError):  # refused where Fast Open is off
        made.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)
    made.connect((socket.gethostbyname(address[0]), address[1]))
    return made


def open_origin(url: str, authority: str) -> http.client.HTTPConnection:
    """Return a connection to the origin of ``url`` that opens at the first request."""
    parts = urlsplit(url)
    opened: http.client.HTTPConnection
    if parts.scheme == "https":
        trust = ssl.create_default_context(cafile=authority)
        opened = http.client.HTTPSConnection(parts.netloc, context=trust)
    else:
        opened = http.client.HTTPConnection(parts.netloc)
        vars(opened)["_create_connection"] = connect
    return opened


def fetch(connection: http.client.HTTPConnection, url: str) -> tuple[int, int, str | None]:
    """Ask for ``url``; return its status (0: no answer), its body's bytes, and where it leads."""
    parts = urlsplit(url)
    target = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
    try:
        connection.request("GET", target)
        answer = connection.getresponse()
        size = 0
        while piece := answer.read(READ_BYTES):
            size += len(piece)
    except (OSError, http.client.HTTPException) as error:
        print(f"{url}: {error}", file=sys.stderr)
        connection.close()
        return 0, 0, None
    leads = answer.getheader("Location") if 300 <= answer.status < 400 else None
    return answer.status, size, leads


def main() -> None:
    """Load the page and say so as docs/own-client.md asks for."""
    began = time.monotonic()
    waiting = Path(sys.argv[1]).read_text("utf-8").split()
    origins: dict[str, http.client.HTTPConnection] = {}
    for url in waiting:  # which grows by redirects
        origin = "//".join(urlsplit(url)[:2])
        if origin not in origins:
            origins[origin] = open_origin(url, sys.argv[2])
        start = time.monotonic()
        status, size, leads = fetch(origins[origin], url)
        if leads is not None:
            waiting.append(urljoin(url, leads))
        told = {
            "url": url,
            "status": status,
            "start_ms": 1000 * (start - began),
            "end_ms": 1000 * (time.monotonic() - began),
            "body_bytes": size,
            "connection": origin,
        }
        if not status:
            del told["body_bytes"]
        print(json.dumps(told))
    print("version=1")
    print(f"plt_ms={1000 * (time.monotonic() - began)}")


if __name__ == "__main__":
    main()
