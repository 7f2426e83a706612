"""Packages of Debian made for tests, and a mirror of them on loopback."""

from __future__ import annotations

import hashlib
import io
import lzma
import ssl
import tarfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from testbed.root.lock import LockedPackage
from tests.web import Handler, Server, running

INDEX = "main/binary-amd64/Packages.xz"
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


def locked(name: str, data: bytes, archive: str = "debian", version: str = "1.0") -> LockedPackage:
    """Return what a lock says of a package."""
    sha256 = hashlib.sha256(data).hexdigest()
    path = f"pool/main/{name[0]}/{name}/{name}_{version}_amd64.deb"
    return LockedPackage(name, version, archive, path, len(data), sha256)


@dataclass
class Mirror:
    """A server of files by their paths.

    Attributes:
        cut: after how many bytes an answer ends, for the first answers of a path.
        refused: status of the first answers of a path.
        stalled: after how many bytes an answer stands still, while the server is there.
        asked: path and ``Range`` of each request.
    """

    files: dict[str, bytes]
    address: str = ""
    cut: dict[str, list[int]] = field(default_factory=dict)
    refused: dict[str, list[int]] = field(default_factory=dict)
    stalled: dict[str, int] = field(default_factory=dict)
    redirected: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    def add(self, *packages: tuple[LockedPackage, bytes], below: str = "debian") -> None:
        """Serve packages as an archive below a path does."""
        self.files |= {f"/{below}/{package.path}": data for package, data in packages}


@contextmanager
def serving(files: Mapping[str, bytes] = {}, certificate: Path | None = None) -> Iterator[Mirror]:
    """Serve ``files`` on loopback for the time of the block, by TLS with a ``certificate``."""
    mirror = Mirror(dict(files))
    ended = threading.Event()

    class MirrorHandler(Handler):
        protocol_version = "HTTP/1.0"

        def get(self) -> None:
            wanted = self.headers.get("Range")
            mirror.asked.append((self.path, wanted))
            if target := mirror.redirected.get(self.path):
                self.send_response(302)
                self.send_header("Location", target)
                self.end_headers()
                return
            data = mirror.files.get(self.path)
            refused = mirror.refused.get(self.path)
            if data is None or refused:
                self.send_error(refused.pop(0) if refused else 404)
                return
            first = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
            self.send_response(206 if wanted else 200)
            self.send_header("Content-Length", str(len(data) - first))
            self.end_headers()
            if self.path in mirror.stalled:
                self.wfile.write(data[first : mirror.stalled[self.path]])
                ended.wait()
                return
            cuts = mirror.cut.get(self.path)
            self.wfile.write(data[first : cuts.pop(0)] if cuts else data[first:])

    context = None
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    with running(Server(MirrorHandler, context)) as server:
        place = f"https://localhost:{server.server_port}"
        mirror.address = place if certificate else f"http://127.0.0.1:{server.server_port}"
        try:
            yield mirror
        finally:
            ended.set()


def publish(
    packages: Mapping[str, Iterable[tuple[LockedPackage, bytes, str]]], archive: str = "debian"
) -> dict[str, bytes]:
    """Return the files of a mirror of an archive: its suites, and the packages of each.

    A package is what a lock says, its file, and further fields of its paragraph in the index.
    """
    files: dict[str, bytes] = {}
    for suite, entries in packages.items():
        paragraphs = []
        for package, data, fields in entries:
            files[f"/{archive}/{package.path}"] = data
            paragraphs.append(
                f"Package: {package.name}\nVersion: {package.version}\nArchitecture: amd64\n"
                f"{fields}Filename: {package.path}\nSize: {package.size}\n"
                f"SHA256: {package.sha256}\n"
            )
        index = lzma.compress("\n".join(paragraphs).encode())
        sums = f"{hashlib.sha256(index).hexdigest()} {len(index)} {INDEX}"
        files[f"/{archive}/dists/{suite}/{INDEX}"] = index
        release = f"Suite: {suite}\nSHA256:\n {sums}\n"
        files[f"/{archive}/dists/{suite}/InRelease"] = release.encode()
    return files


def write_certificate(folder: Path) -> Path:
    """Return a file with a certificate of ``localhost`` and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now().astimezone()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, SHA256())
    )
    file = folder / "both.pem"
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(plain + certificate.public_bytes(Encoding.PEM))
    return file
