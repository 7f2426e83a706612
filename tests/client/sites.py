"""A small page under construction, and the same page over TLS."""

from __future__ import annotations

import dataclasses
import hashlib
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.archive.reading import Archive, Entry, split_url


def png(shade: int) -> bytes:
    """A valid one-pixel picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixel = zlib.compress(bytes([0, shade]))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")


@dataclass
class Site:
    """A small page under construction: its archive entries, and the bytes that are served."""

    root: str = "http://www.page.test/"
    entries: list[Entry] = field(default_factory=list)
    bodies: dict[str, bytes] = field(default_factory=dict)

    def add(
        self, url: str, body: bytes, mime: str, how: str = "parser", parent: str | None = None,
        **more: Any,
    ) -> None:  # fmt: skip
        """Add one resource; ``more`` are further fields of its entry."""
        scheme, host, port, path = split_url(url)
        depth = 0 if how == "root" else 1
        values: dict[str, Any] = {
            "id": str(len(self.entries)), "url": url, "scheme": scheme, "host": host, "port": port,
            "path": path, "method": "GET", "status": 200, "protocol": "http/1.1",
            "headers": (("Content-Type", mime),), "headers_size": 200, "body_size": len(body),
            "decoded_size": len(body), "request_body_size": 0, "mime": mime, "body": _named(body),
            "location": None, "parent": None if how == "root" else parent or self.root,
            "carrier": None if how == "root" else parent or self.root, "how": how, "gap_ms": None,
            "start_ms": None, "dur_ms": None, "depth": depth, "after_load": False,
        }  # fmt: skip
        self.entries.append(Entry(**(values | more)))
        self.bodies[url] = body

    def over_tls(self, protocol: str) -> Site:
        """The same page with https everywhere, recorded over ``protocol``."""
        bodies = {_https(u): b.replace(b"http://", b"https://") for u, b in self.bodies.items()}
        entries = [
            dataclasses.replace(
                entry, url=_https(entry.url), scheme="https", port=443, protocol=protocol,
                headers=tuple((name, _https(value)) for name, value in entry.headers),
                body=_named(bodies[_https(entry.url)]), body_size=len(bodies[_https(entry.url)]),
                location=entry.location and _https(entry.location),
                parent=entry.parent and _https(entry.parent),
                carrier=entry.carrier and _https(entry.carrier),
            )
            for entry in self.entries
        ]  # fmt: skip
        return Site(_https(self.root), entries, bodies)

    def archive(self) -> Archive:
        """The page as a client gets it."""
        digest = hashlib.sha256(repr(self.entries).encode()).hexdigest()
        return Archive("site", "A small site", self.root, tuple(self.entries), digest)


def _named(body: bytes) -> Path | None:
    """The file that an archive would have for a body."""
    return Path("bodies", hashlib.sha256(body).hexdigest()) if body else None


def _https(url: str) -> str:
    return url.replace("http://", "https://", 1)
