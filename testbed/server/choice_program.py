"""Program that tells nginx which recorded answer a request gets: HTTP/1.0 on a socket of files.

nginx hands it whole requests that ``choice`` has to tell apart, and goes on where it says
(``X-Accel-Redirect``).  It runs in the server's folder; its order is what ``to_order`` returns.
"""

from __future__ import annotations

import json
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

if __name__ == "__main__":  # run by its path, it finds what it imports beside itself
    sys.path.insert(0, str(Path(__file__).parents[2]))

from testbed.server.choice import VISITS, Chooser, from_order, visits_of

SOCKET, READY = "choice.sock", "choice.ready"


def serve(end: socket.socket, chooser: Chooser) -> None:
    """Answer one request after the other, for ever; whoever has gone gets nothing."""
    while True:
        connection, _ = end.accept()
        with connection, suppress(OSError), connection.makefile("rb") as file:
            if headers := read_head(file):
                body = file.read(int(headers.get("content-length", 0)))
                chooser.begin(visits_of(Path(VISITS)))
                connection.sendall(answer(chooser, headers, body))


def read_head(file: BinaryIO) -> dict[str, str]:
    """Return the headers of a request; none where it broke off."""
    headers = {}
    while (line := file.readline().decode("latin-1")) != "\r\n":
        if not line:
            return {}
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return headers


def answer(chooser: Chooser, headers: dict[str, str], body: bytes) -> bytes:
    """Return the response to a request with the header X-Asked: port, then method and URL."""
    fixed, mark, query = headers["x-asked"].partition("?")
    chosen = chooser.choose(fixed, mark + query, headers, body)
    match = "exact" if chosen.exact else "inexact"
    head = f"X-Accel-Redirect: //{match}/{chosen.answer}\r\nContent-Length: 0"
    return f"HTTP/1.0 200 OK\r\n{head}\r\n\r\n".encode("latin-1")


def main() -> None:
    """Serve until the process is ended."""
    chooser = from_order(json.loads(Path(sys.argv[1]).read_text("utf-8")))
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(SOCKET)
        end.listen(128)
        Path(READY).touch()
        serve(end, chooser)


if __name__ == "__main__":
    main()
