"""Packages of Debian made for tests, and a mirror of them on loopback."""

from __future__ import annotations

import hashlib
import http.server
import io
import lzma
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from testbed.root.lock import LockedPackage

Member = str | bytes | Path | None
"""A file's text or content, where a link leads, or ``None``: a folder."""


def pack(files: Mapping[str, Member], compress: Callable[[bytes], bytes] = lzma.compress) -> bytes:
    """Return a package that installs ``files``, by their paths; a ``bytes`` is a program."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"./{name}")
            member.mtime, member.uid, member.mode = 1_234_567_890, 12, 0o4755
            match content:
                case None:
                    member.type = tarfile.DIRTYPE
                    archive.addfile(member)
                case Path():
                    member.type, member.linkname = tarfile.SYMTYPE, str(content)
                    archive.addfile(member)
                case _:
                    data = content if isinstance(content, bytes) else content.encode()
                    member.mode = 0o4755 if isinstance(content, bytes) else 0o600
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))
    ending = ".xz" if compress is lzma.compress else ".gz"
    parts = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", f"data.tar{ending}": compress(
        stream.getvalue())}  # fmt: skip
    return b"!<arch>\n" + b"".join(_member(name, data) for name, data in parts.items())


def _member(name: str, data: bytes) -> bytes:
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode()
    return head + data + b"\n" * (len(data) % 2)


def locked(name: str, data: bytes, archive: str = "debian") -> LockedPackage:
    """Return what a lock says of a package."""
    sha256 = hashlib.sha256(data).hexdigest()
    path = f"pool/main/{name[0]}/{name}/{name}_1.0_amd64.deb"
    return LockedPackage(name, "1.0", archive, path, len(data), sha256)


@dataclass
class Mirror:
    """A server of files by their paths.

    Attributes:
        cut: after how many bytes an answer ends, for the first answers of a path.
        asked: path and ``Range`` of each request.
    """

    files: dict[str, bytes]
    address: str = ""
    cut: dict[str, list[int]] = field(default_factory=dict)
    redirected: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    def add(self, *packages: tuple[LockedPackage, bytes], below: str = "debian") -> None:
        """Serve packages as an archive below a path does."""
        self.files |= {f"/{below}/{package.path}": data for package, data in packages}


@contextmanager
def serving(files: Mapping[str, bytes] = {}) -> Iterator[Mirror]:
    """Serve ``files`` on loopback for the time of the block."""
    mirror = Mirror(dict(files))

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            mirror.asked.append((self.path, wanted))
            if target := mirror.redirected.get(self.path):
                self.send_response(302)
                self.send_header("Location", target)
                self.end_headers()
                return
            data = mirror.files.get(self.path)
            if data is None:
                self.send_error(404)
                return
            first = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
            self.send_response(206 if wanted else 200)
            self.send_header("Content-Length", str(len(data) - first))
            self.end_headers()
            cuts = mirror.cut.get(self.path)
            self.wfile.write(data[first : cuts.pop(0)] if cuts else data[first:])

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    mirror.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield mirror
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
