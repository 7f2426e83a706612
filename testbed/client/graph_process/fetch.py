"""Fetch of one resource: its request as Chrome sent them in 2013, its times and its response."""

from __future__ import annotations

TYPE_CHECKING = False  # not from typing, whose import costs every start
if TYPE_CHECKING:
    from typing import Any

    from testbed.client.graph_process.discovery import Node
    from testbed.client.graph_process.response import HttpResponse

# Bytes of a request header in all: the median of what Chrome sent to the recorded pages in 2013.
REQUEST_BYTES = 490
USER_AGENT = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.22 (KHTML, like Gecko) "
    "Chrome/25.0.1364.160 Safari/537.22"
)


class Fetch:
    """Times are in s on the loader's clock; ``None`` for what has not happened."""

    __slots__ = (
        "body",
        "connection",
        "ended",
        "error",
        "first_byte",
        "known",
        "next_child",
        "node",
        "request",
        "response",
        "retried",
        "sent",
        "server",
    )

    def __init__(self, node: Node, known: float) -> None:
        self.node = node
        self.known = known
        self.request = request_head(node)
        self.body = b"0" * node.request_body_size
        self.sent: float | None = None
        self.first_byte: float | None = None
        self.ended: float | None = None
        self.error: str | None = None
        self.response: HttpResponse | None = None
        self.connection: int | None = None
        self.server: str | None = None
        self.retried = False
        self.next_child = 0  # index in node.on_body

    def take_known(self) -> list[tuple[float, Node]]:
        """Return the children that the response so far reveals, each once, and think times in s."""
        response, node = self.response, self.node
        if response is None or not response.status:
            return []
        ready = [(0.0, child) for child in node.on_headers]
        node.on_headers = []
        full_size = response.length or node.body_size or 1
        share = 1.0 if response.done else response.body_bytes / full_size
        while self.next_child < len(node.on_body) and node.on_body[self.next_child][0] <= share:
            ready.append((0.0, node.on_body[self.next_child][1]))
            self.next_child += 1
        if response.done:
            ready += node.on_end
            node.on_end = []
        return ready

    def report(self, start: float) -> dict[str, Any]:
        """Return what was seen, for the result file; times in ms since ``start``, never rounded."""
        response = self.response
        return {
            "url": self.node.url,
            "method": self.node.method,
            "initiator": self.node.parent,
            "known_ms": _since(start, self.known),
            "sent_ms": _since(start, self.sent),
            "first_byte_ms": _since(start, self.first_byte),
            "end_ms": _since(start, self.ended),
            "error": self.error,
            "status": response.status if response and not self.error else 0,
            "reason": response.reason if response else "",
            "headers": response.headers if response else [],
            "header_bytes": response.header_bytes if response else None,
            "body_bytes": response.body_bytes if response else None,
            "body_sha256": response.digest.hexdigest() if response else None,
            "connection": self.connection,
            "server": self.server,
            "request": self.request.decode("latin-1"),
        }


def _since(start: float, moment: float | None) -> float | None:
    return None if moment is None else (moment - start) * 1000.0


def request_head(node: Node) -> bytes:
    """Return the head of a request for ``node``, filled up by a cookie to ``REQUEST_BYTES``."""
    default_port = 443 if node.tls else 80
    sends_body = node.method not in ("GET", "HEAD")
    lines = [
        f"{node.method} {node.target} HTTP/1.1",
        f"Host: {node.host}" if node.port == default_port else f"Host: {node.host}:{node.port}",
        "Connection: keep-alive",
        f"User-Agent: {USER_AGENT}",
        "Accept: */*",
        *([f"Referer: {node.parent}"] if node.parent else []),
        *([f"Content-Length: {node.request_body_size}"] if sends_body else []),
        *(["If-None-Match: *"] if node.revalidates else []),
        *node.marks,
        "Accept-Encoding: gzip,deflate,sdch",
        "Accept-Language: en-US,en;q=0.8",
        "Accept-Charset: ISO-8859-1,utf-8;q=0.7,*;q=0.3",
    ]
    size = sum(len(line) + 2 for line in lines) + 2
    room = REQUEST_BYTES - size - len("Cookie: id=\r\n")
    if room > 0:
        lines.append("Cookie: id=" + "0" * room)
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
