"""A small package and the page that is made from it, written by tests."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

FACTS = """\
title = "Small"
url = "{url}"
recorded = 2026-01-01
source = "a test"
licence = "none"
bodies = "as they are"
deviations = []
"""

TABLE = """\
[recipe]
registry = "npm"
package = "small"
version = "1.0.0"
integrity = "{integrity}"
root = "package"
index = "index.html"
main = "www.small.test"
hosts = [
    {{ match = "img/*", host = "img.small.test" }},
    {{ match = "*.css", host = "static.small.test" }},
]
protocol = "http"
"""
NO_INTEGRITY = f"sha512-{'A' * 86}=="

FILES = {
    "package/index.html": (
        b'<!doctype html><link rel=stylesheet href="a.css"><img src="img/1.gif"><script src=a.js>'
        b"</script>"
    ),
    "package/a.css": b"@font-face { font-family: f; src: url(f.woff2?v=1) } body { background: "
    b"url('img/2.gif') }", "package/a.js": b"document.title = 'done';",
    "package/img/1.gif": b"GIF89a1", "package/img/2.gif": b"GIF89a2", "package/f.woff2": b"wOF2",
    "package/not-asked-for.txt": b"x", "other/secret.txt": b"x",
}  # fmt: skip


def write_page(
    pages: Path, name: str = "small", table: str = TABLE, integrity: str = NO_INTEGRITY
) -> Path:
    """A page folder with a recipe."""
    folder = pages / name
    folder.mkdir(parents=True)
    url = "https" if 'protocol = "h2"' in table else "http"
    facts = FACTS.format(url=f"{url}://www.small.test/index.html")
    (folder / "page.toml").write_text(facts + table.format(integrity=integrity))
    return folder


def tarball(files: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    """A gzipped tar archive of ``files``, and of symbolic ``links``."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return buffer.getvalue()
