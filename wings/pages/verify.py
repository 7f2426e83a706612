"""Checks of a page from its files alone: hashes, sizes, contents, references, origins, files."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from testbed.archive import head
from testbed.archive.head import BODILESS, REASONS, natural_size, reachable_size
from testbed.archive.reading import HAR_NAME, TLS_FOLDER, Archive, Entry, read_archive
from testbed.base.checksums import CHECKSUMS_FILE
from testbed.base.errors import ConfigurationError
from testbed.pages.authority import make_authority
from testbed.pages.catalogue import FACTS_NAME, read_facts
from wings.pages.coding import CodingError, content_coding, decode
from wings.pages.exchange import find_circles, redirect_circles, redirect_target
from wings.pages.fidelity import FIDELITY_NAME, read_seen
from wings.pages.limits import CONTENT_BYTES, HOSTS
from wings.pages.match_rules import idle_rules
from wings.pages.table import MIN_HEADER_BYTES, REDIRECTS

_OURS = frozenset({FACTS_NAME, HAR_NAME, "bodies", TLS_FOLDER, CHECKSUMS_FILE, FIDELITY_NAME})
_PROTOCOLS = frozenset({"http/1.1", "h2"})
_PLAIN_PORT = 80
# Bodies name objects with their scheme or without it; filler has no slashes.
_NAMED = re.compile(rb"//([a-z0-9.-]+/[A-Za-z0-9_]+\.[a-z]+)")


def verify_archive(folder: Path) -> list[str]:
    """Return everything that is wrong with the archive in ``folder``, one sentence each.

    Raises:
        ConfigurationError: the folder holds no page archive at all.
    """
    archive = read_archive(folder)
    problems: list[str] = []
    try:
        read_facts(folder / FACTS_NAME)
        read_seen(folder)
    except ConfigurationError as error:
        problems += error.problems
    for entry in archive.entries:
        own = (*_request_problems(entry), *_body_problems(entry), *_head_problems(entry))
        problems += [f"{entry.url}: {problem}" for problem in own]
    problems += reference_problems(archive)
    problems += origin_problems(archive)
    problems += idle_rules(archive)
    problems += _stray_files(folder, archive)
    return problems


def verify_tls(folder: Path) -> list[str]:
    """Return what is wrong with the certificates of the built page in ``folder``.

    They follow from the hosts' names alone, so they are made again and compared.

    Raises:
        ConfigurationError: the folder holds no page archive at all.
    """
    hosts = read_archive(folder).tls_hosts
    expected = make_authority(hosts) if hosts else {}
    tls = folder / TLS_FOLDER
    problems = []
    for name, data in expected.items():
        path = tls / name
        if not path.is_file():
            problems.append(f"{TLS_FOLDER}/{name}: is missing")
        elif path.read_bytes() != data:
            problems.append(f"{TLS_FOLDER}/{name}: not what the lab's authority makes")
    names = sorted(path.name for path in tls.iterdir()) if tls.is_dir() else []
    unknown = [name for name in names if name not in expected]
    return [*problems, *(f"{TLS_FOLDER}/{name}: of no https host of the page" for name in unknown)]


def count_repeats(archive: Archive) -> int:
    """Return how many requests repeat an earlier one, which is no error."""
    requests = {
        (e.method, e.url, e.range, e.request_body_size, e.posted and e.posted.whole)
        for e in archive.entries
    }
    return len(archive.entries) - len(requests)


def _stray_files(folder: Path, archive: Archive) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        if path.name not in _OURS:
            yield f"{path.name}: no part of a page"
        elif path.is_symlink():
            yield f"{path.name}: is a link; a page holds its files itself"
    used = {entry.body.name for entry in archive.entries if entry.body is not None}
    bodies = folder / "bodies"
    for path in sorted(bodies.iterdir()) if bodies.is_dir() else ():
        if path.name not in used:
            yield f"{path.name}: a body that no entry uses"


def _request_problems(entry: Entry) -> Iterator[str]:
    if (problem := head.request_problem(entry.method, entry.host, entry.path)) is not None:
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
    # A little beyond the recorded size, so that the message has the true one.
    limit = CONTENT_BYTES if entry.decoded_size is None else 2 * entry.decoded_size + 65536
    try:
        decoded = len(decode(data, content_coding(entry.headers), limit))
    except CodingError as error:
        yield f"the body does not decode: {error}"
        return
    if entry.decoded_size is not None and decoded != entry.decoded_size:
        yield f"decodes to {decoded}, recorded {entry.decoded_size}"


def _head_problems(entry: Entry) -> Iterator[str]:
    for name, value in entry.headers:
        if (problem := head.header_problem(name, value)) is not None:
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


def origin_problems(archive: Archive) -> Iterator[str]:
    """Yield what the lab cannot serve, one sentence for each host or port."""
    if len(archive.hosts) > HOSTS:
        yield f"{len(archive.hosts)} hosts; the lab has addresses for {HOSTS}"
    for host in archive.hosts:
        if (problem := host_problem(host)) is not None:
            yield f"{host}: {problem}"
    schemes: dict[tuple[str, int], str] = {}
    for origin in archive.origins:
        if origin.scheme == "https" and origin.port == _PLAIN_PORT:
            yield f"{origin.host}: https on port {_PLAIN_PORT}, where the lab speaks plain HTTP"
        first_scheme = schemes.setdefault((origin.host, origin.port), origin.scheme)
        if first_scheme != origin.scheme:
            yield f"{origin.host}: both http and https on port {origin.port}"


def host_problem(host: str) -> str | None:
    """Return why the lab cannot serve a host of this name, or ``None``."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        return "an address; browsers ask no name server for it, so that it cannot be served"
    last = host.rpartition(".")[2]
    if last.isdigit():
        return "browsers take it for an address, because it ends in a number"
    if last == "localhost":
        return "browsers take it for their own machine"
    return None


def reference_problems(archive: Archive) -> Iterator[str]:
    """Yield references to what is missing, or that go round in a circle; one sentence each."""
    first: dict[str, Entry] = {}
    for entry in archive.entries:
        first.setdefault(entry.url, entry)
    for index, entry in enumerate(archive.entries):
        if (entry.how == "root") != (index == 0):
            yield f"{entry.url}: _how is {entry.how}; the first entry, and only it, is the root"
        yield from _parent_problems(entry, index == 0, first)
        if entry.location is not None and entry.location not in first:
            yield f"{entry.url}: redirects to {entry.location}, which is not in the archive"
    for name, count in Counter(entry.id for entry in archive.entries).items():
        if count > 1:
            yield f"_id {name}: {count} entries"
    for url, _ in find_circles({url: entry.parent for url, entry in first.items() if entry.parent}):
        yield f"{url}: is its own ancestor"
    targets: dict[str, set[str | None]] = {}
    for entry in archive.entries:
        targets.setdefault(entry.url, set()).add(entry.location)
    for entry in archive.entries:
        if entry.how == "redirect" and entry.url not in targets.get(entry.parent or "", ()):
            yield f"{entry.url}: {entry.parent} does not redirect to it"
    for url, _ in redirect_circles((entry.url, entry.location) for entry in archive.entries):
        yield f"{url}: redirects in a circle"


def _parent_problems(entry: Entry, is_root: bool, first: Mapping[str, Entry]) -> Iterator[str]:
    for what, url in (("parent", entry.parent), ("carrier", entry.carrier)):
        if is_root:
            if url is not None:
                yield f"{entry.url}: the root has the {what} {url}"
        elif url is None:
            yield f"{entry.url}: nothing names it: no {what}"
        elif url not in first:
            yield f"{entry.url}: its {what} {url} is not in the archive"


def verify_table(folder: Path) -> list[str]:
    """Return everything that is wrong with the page in ``folder``, built from a table.

    Raises:
        ConfigurationError: the folder holds no page archive at all.
    """
    archive = read_archive(folder)
    contents = {entry.url: _content(entry) for entry in archive.entries}
    return [*verify_archive(folder), *_table_entry_problems(archive),
            *_named_problems(archive, contents), *_naming_problems(archive, contents)]  # fmt: skip


def _content(entry: Entry) -> bytes:
    """Return the decoded body as far as it can be had; ``verify_archive`` says why if it cannot."""
    try:
        data = b"" if entry.body is None else entry.body.read_bytes()
        return decode(data, content_coding(entry.headers), entry.decoded_size or 0)
    except (OSError, CodingError):
        return b""


def _table_entry_problems(archive: Archive) -> Iterator[str]:
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
    """Yield the URLs in bodies that are not in the archive, or belong to another body."""
    by_url = {_without_scheme(entry.url): entry for entry in archive.entries}
    for entry in archive.entries:
        for match in _NAMED.findall(contents[entry.url]):
            named = "//" + match.decode()
            if named not in by_url:
                yield f"{entry.url}: names {named}, which is not in the archive"
            elif by_url[named].carrier != entry.url:
                yield f"{entry.url}: names {named}, which belongs to {by_url[named].carrier}"


def _naming_problems(archive: Archive, contents: dict[str, bytes]) -> Iterator[str]:
    """Yield each entry that the body of its carrier does not name exactly once."""
    for entry in archive.entries:
        if entry.how != "redirect" and entry.carrier in contents:
            named = _without_scheme(entry.url).encode()
            if (occurrences := contents[entry.carrier].count(named)) != 1:
                yield f"{entry.url}: named {occurrences} times by {entry.carrier}, expected once"


def _without_scheme(url: str) -> str:
    return url.partition(":")[2]
