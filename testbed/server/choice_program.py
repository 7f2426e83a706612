"""Program that tells nginx which recorded answer a request gets: HTTP/1.0 on a socket of files.

nginx hands it whole requests that ``choice`` has to tell apart, and goes on where it says
(``X-Accel-Redirect``).  It runs in the server's folder; its order is what ``to_order`` returns.
"""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

if __name__ == "__main__":  # run by its path, it finds what it imports beside itself
    sys.path.insert(0, str(Path(__file__).parents[2]))

from testbed.server.choice import VISITS, Chooser, from_order, visits_of

SOCKET, READY = "choice.sock", "choice.ready"
PIECE_BYTES = 1 << 16


def answer(chooser: Chooser, head: str, body: bytes) -> str:
    """Return the response to a request with the header X-Asked: port, then method and URL."""
    lines = (line.partition(":") for line in head.split("\r\n")[1:])
    headers = {name.lower(): value.strip() for name, _, value in lines}
    fixed, mark, query = headers["x-asked"].partition("?")
    choice = chooser.choose(fixed, mark + query, headers, body)
    match = "exact" if choice.exact else "inexact"
    redirect = f"X-Accel-Redirect: //{match}/{choice.answer}"
    return f"HTTP/1.0 200 OK\r\n{redirect}\r\nContent-Length: 0\r\n\r\n"


def serve(end: socket.socket, chooser: Chooser) -> None:
    """Answer one request after the other, for ever."""
    while True:
        connection, _ = end.accept()
        with connection:
            data = b""
            while b"\r\n\r\n" not in data:
                data += connection.recv(PIECE_BYTES)
            head, _, body = data.partition(b"\r\n\r\n")
            text = head.decode("latin-1")
            fields = (line.partition(":") for line in text.lower().split("\r\n"))
            length = next((int(value) for name, _, value in fields if name == "content-length"), 0)
            pieces, got = [body], len(body)
            while got < length:
                pieces.append(connection.recv(PIECE_BYTES))
                got += len(pieces[-1])
            chooser.begin(visits_of(Path(VISITS)))
            connection.sendall(answer(chooser, text, b"".join(pieces)).encode("latin-1"))


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
