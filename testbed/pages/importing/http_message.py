"""Pieces of HTTP/1.1 messages as recorders keep them (RFC 9112)."""

from __future__ import annotations

import re

_CHUNK = re.compile(rb"[0-9A-Fa-f]{1,8}")


def dechunk(data: bytes) -> bytes | None:
    """The content of a chunked body (RFC 9112 section 7.1); ``None`` if it is not chunked."""
    pieces: list[bytes] = []
    at = 0
    while True:
        end = data.find(b"\r\n", at, at + 4096)
        size = _CHUNK.fullmatch(data[at:end].partition(b";")[0].strip()) if end >= 0 else None
        if size is None:
            return None
        length = int(size.group(), 16)
        at = end + 2
        if length == 0:
            return b"".join(pieces)
        pieces.append(data[at : at + length])
        if data[at + length : at + length + 2] != b"\r\n":
            return None
        at += length + 2


def plain_body(data: bytes, transfer_encoding: str) -> bytes:
    """The body without its transfer coding; recorders may have undone it and left the header."""
    if "chunked" not in transfer_encoding.lower():
        return data
    content = dechunk(data)
    return data if content is None else content
