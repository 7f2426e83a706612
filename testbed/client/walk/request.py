"""The head of a request as Chrome sent them in 2013."""

from __future__ import annotations

TYPE_CHECKING = False  # not from typing, whose import costs every start
if TYPE_CHECKING:
    from testbed.client.walk.discovery import Node

# Bytes of a request header in all: the median of what Chrome sent to the recorded pages in 2013.
REQUEST_BYTES = 490
USER_AGENT = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.22 (KHTML, like Gecko) "
    "Chrome/25.0.1364.160 Safari/537.22"
)


def request_head(node: Node) -> bytes:
    """The request for ``node`` without its body, filled up by a cookie to ``REQUEST_BYTES``."""
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
        "Accept-Encoding: gzip,deflate,sdch",
        "Accept-Language: en-US,en;q=0.8",
        "Accept-Charset: ISO-8859-1,utf-8;q=0.7,*;q=0.3",
    ]
    size = sum(len(line) + 2 for line in lines) + 2
    room = REQUEST_BYTES - size - len("Cookie: id=\r\n")
    if room > 0:
        lines.append("Cookie: id=" + "0" * room)
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
