"""Checks a built page from its files alone: hashes, sizes, references and origins."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from testbed.page.archive import Archive, Entry, read_archive
from testbed.page.table import MIN_HEADER_BYTES, REDIRECTS

# Bodies name objects by scheme-relative URLs only; filler has no slashes.
_URL = re.compile(rb"//([a-z0-9.-]+/[A-Za-z0-9_]+\.[a-z]+)")


def verify_archive(folder: Path) -> list[str]:
    """Everything that is wrong with the built page in ``folder``, one sentence each.

    Raises:
        ConfigurationError: the folder holds no page archive at all.
    """
    archive = read_archive(folder)
    decoded: dict[str, bytes] = {}
    problems: list[str] = []
    for entry in archive.entries:
        found, content = _body_problems(entry)
        decoded[entry.url] = content
        problems += found
        problems += _head_problems(entry)
    problems += _reference_problems(archive, decoded)
    kept = {entry.body for entry in archive.entries}
    stray = (path for path in sorted((folder / "bodies").iterdir()) if path not in kept)
    return [*problems, *(f"{path.name}: a body that no entry uses" for path in stray)]


def _body_problems(entry: Entry) -> tuple[list[str], bytes]:
    """Problems of one body, and its decoded content as far as it can be had."""
    if entry.body is None:
        wrong = entry.body_size or entry.decoded_size
        return ([f"{entry.url}: no body, but sizes are not 0"] if wrong else []), b""
    try:
        data = content = entry.body.read_bytes()
    except OSError as error:
        return [f"{entry.url}: {entry.body.name}: {error.strerror}"], b""
    problems = []
    if hashlib.sha256(data).hexdigest() != entry.body.name:
        problems.append(f"{entry.url}: the body is not what its hash says")
    if len(data) != entry.body_size:
        problems.append(f"{entry.url}: body of {len(data)} bytes, recorded {entry.body_size}")
    if ("Content-Encoding", "gzip") in entry.headers:
        try:
            content = zlib.decompress(data, 16 + zlib.MAX_WBITS)
        except zlib.error as error:
            problems.append(f"{entry.url}: not gzip: {error}")
    if len(content) != entry.decoded_size:
        problems.append(f"{entry.url}: decodes to {len(content)}, recorded {entry.decoded_size}")
    return problems, content


def _head_problems(entry: Entry) -> Iterator[str]:
    if entry.headers_size < MIN_HEADER_BYTES:
        yield f"{entry.url}: {entry.headers_size} header bytes, at least {MIN_HEADER_BYTES} needed"
    if (entry.status in REDIRECTS) != (entry.location is not None):
        yield f"{entry.url}: status {entry.status} does not go with Location {entry.location}"
    if entry.location is not None and ("Location", entry.location) not in entry.headers:
        yield f"{entry.url}: redirectURL is not the Location header"


def _reference_problems(archive: Archive, decoded: dict[str, bytes]) -> Iterator[str]:
    """Each object is named exactly once, by its carrier, and nothing else is named."""
    urls = [entry.url for entry in archive.entries]
    for url, count in Counter(urls).items():
        if count > 1:
            yield f"{url}: {count} entries"
    known = {entry.url: entry for entry in archive.entries}
    for entry in archive.entries:
        for match in _URL.findall(decoded[entry.url]):
            named = "http://" + match.decode()
            if named not in known:
                yield f"{entry.url}: names {named}, which is not in the archive"
            elif known[named].carrier != entry.url:
                yield f"{entry.url}: names {named}, which belongs to {known[named].carrier}"
        if entry.location is not None and entry.location not in known:
            yield f"{entry.url}: redirects to {entry.location}, which is not in the archive"
    for entry in archive.entries:
        if entry.carrier is None:
            if entry.url != archive.root_url:
                yield f"{entry.url}: nothing names it"
        elif entry.carrier not in known:
            yield f"{entry.url}: its carrier {entry.carrier} is not in the archive"
        elif entry.how == "redirect":
            if known[entry.carrier].location != entry.url:
                yield f"{entry.url}: {entry.carrier} does not redirect to it"
        elif (found := decoded[entry.carrier].count(_named(entry))) != 1:
            yield f"{entry.url}: named {found} times by {entry.carrier}, expected once"


def _named(entry: Entry) -> bytes:
    return entry.url.removeprefix("http:").encode()
