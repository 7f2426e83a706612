"""Checks a page that was built from a table: each object is named exactly once, by its carrier."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from testbed.archive.reading import Archive, Entry, read_archive
from testbed.pages.coding import CodingError, decode
from testbed.pages.table.resources import MIN_HEADER_BYTES, REDIRECTS
from testbed.pages.verify import verify_archive

# Bodies name objects with their scheme or without it; filler has no slashes.
_URL = re.compile(rb"//([a-z0-9.-]+/[A-Za-z0-9_]+\.[a-z]+)")


def verify_table(folder: Path) -> list[str]:
    """Everything that is wrong with the page in ``folder``, built from a table.

    Raises:
        ConfigurationError: the folder holds no page archive at all.
    """
    archive = read_archive(folder)
    contents = {entry.url: _content(entry) for entry in archive.entries}
    return [
        *verify_archive(folder),
        *_entry_problems(archive),
        *_named_problems(archive, contents),
        *_naming_problems(archive, contents),
    ]


def _content(entry: Entry) -> bytes:
    """The decoded body as far as it can be had; ``verify_archive`` says why if it cannot."""
    codings = [value for name, value in entry.headers if name.lower() == "content-encoding"]
    try:
        data = b"" if entry.body is None else entry.body.read_bytes()
        return decode(data, ", ".join(codings), entry.decoded_size or 0)
    except (OSError, CodingError):
        return b""


def _entry_problems(archive: Archive) -> Iterator[str]:
    for url, count in Counter(entry.url for entry in archive.entries).items():
        if count > 1:
            yield f"{url}: {count} entries"
    for entry in archive.entries:
        if entry.headers_size is None:
            if entry.protocol != "h2":
                yield f"{entry.url}: the size of its response head is not known"
        elif entry.headers_size < MIN_HEADER_BYTES:
            yield f"{entry.url}: {entry.headers_size} header bytes, at least {MIN_HEADER_BYTES}"
        if (entry.status in REDIRECTS) != (entry.location is not None):
            yield f"{entry.url}: status {entry.status} does not go with Location {entry.location}"


def _named_problems(archive: Archive, contents: dict[str, bytes]) -> Iterator[str]:
    """Whatever a body names is in the archive, and its own."""
    known = {_without_scheme(entry.url): entry for entry in archive.entries}
    for entry in archive.entries:
        for match in _URL.findall(contents[entry.url]):
            named = "//" + match.decode()
            if named not in known:
                yield f"{entry.url}: names {named}, which is not in the archive"
            elif known[named].carrier != entry.url:
                yield f"{entry.url}: names {named}, which belongs to {known[named].carrier}"


def _naming_problems(archive: Archive, contents: dict[str, bytes]) -> Iterator[str]:
    """Whatever was found in a body is named there once."""
    for entry in archive.entries:
        if entry.how != "redirect" and entry.carrier in contents:
            named = _without_scheme(entry.url).encode()
            if (found := contents[entry.carrier].count(named)) != 1:
                yield f"{entry.url}: named {found} times by {entry.carrier}, expected once"


def _without_scheme(url: str) -> str:
    """The URL from its two slashes on."""
    return url.partition(":")[2]
