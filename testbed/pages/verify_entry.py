"""Checks one entry of an archive: its body, its head, and whether nginx can send them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from testbed.archive.head import (
    BODILESS,
    REASONS,
    header_problem,
    natural_size,
    reachable_size,
    request_problem,
)
from testbed.archive.reading import Entry
from testbed.pages.coding import CodingError, decode
from testbed.pages.recording.har import redirect_target

LARGEST_CONTENT_BYTES = 1 << 28  # of a body whose decoded size is not known
_PROTOCOLS = frozenset({"http/1.1", "h2"})


def entry_problems(entry: Entry) -> Iterator[str]:
    """What is wrong with one entry, one sentence each."""
    for problem in (*_request_problems(entry), *_body_problems(entry), *_head_problems(entry)):
        yield f"{entry.url}: {problem}"


def _request_problems(entry: Entry) -> Iterator[str]:
    problem = request_problem(entry.method, entry.host, entry.path)
    if problem is not None:
        yield problem
    if entry.protocol not in _PROTOCOLS:
        yield f"recorded over {entry.protocol!r}, which is neither HTTP/1.1 nor h2"
    elif entry.protocol == "h2" and entry.scheme != "https":
        yield "recorded over h2 without TLS, which no browser speaks"


def _body_problems(entry: Entry) -> Iterator[str]:
    if entry.body is None:
        if entry.body_size or entry.decoded_size:
            yield "no body, but sizes are not 0"
        return
    if entry.status in BODILESS or entry.method == "HEAD":
        yield f"a body, which a response to {entry.method} with status {entry.status} has not"
    try:
        if entry.body.is_symlink():
            raise OSError(0, "is a link; an archive holds its files itself")
        data = entry.body.read_bytes()
    except OSError as error:
        yield f"{entry.body.name}: {error.strerror}"
        return
    if hashlib.sha256(data).hexdigest() != entry.body.name:
        yield "the body is not what its hash says"
    if len(data) != entry.body_size:
        yield f"body of {len(data)} bytes, recorded {entry.body_size}"
    yield from _content_problems(entry, data)


def _content_problems(entry: Entry, data: bytes) -> Iterator[str]:
    codings = [value for name, value in entry.headers if name.lower() == "content-encoding"]
    # A little beyond the recorded size, so that the true one can be told.
    limit = LARGEST_CONTENT_BYTES if entry.decoded_size is None else 2 * entry.decoded_size + 65536
    try:
        decoded = len(decode(data, ", ".join(codings), limit))
    except CodingError as error:
        yield f"the body does not decode: {error}"
        return
    if entry.decoded_size is not None and decoded != entry.decoded_size:
        yield f"decodes to {decoded}, recorded {entry.decoded_size}"


def _head_problems(entry: Entry) -> Iterator[str]:
    for name, value in entry.headers:
        problem = header_problem(name, value)
        if problem is not None:
            yield problem
    target = redirect_target(entry.url, entry.status, entry.headers)
    if target != entry.location:
        yield f"redirectURL is {entry.location}, but the Location header leads to {target}"
    if entry.status not in REASONS:
        yield f"a response with status {entry.status} cannot be replayed"
    elif entry.headers_size is not None:
        natural = natural_size(entry.status, entry.body_size, entry.headers)
        if reachable_size(entry.headers_size, natural) != entry.headers_size:
            yield (
                f"a head of {entry.headers_size} bytes cannot be made; nginx's own has {natural}, "
                f"the next larger {reachable_size(natural + 1, natural)}"
            )
