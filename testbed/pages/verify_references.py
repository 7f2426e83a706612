"""Checks what leads to what in an archive: parents, carriers and redirects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from testbed.archive.reading import Archive, Entry


def reference_problems(archive: Archive) -> Iterator[str]:
    """References to what is not there, or that go round in a circle; one sentence each."""
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
    yield from _ancestor_problems(first)
    targets: dict[str, set[str | None]] = {}
    for entry in archive.entries:
        targets.setdefault(entry.url, set()).add(entry.location)
    for entry in archive.entries:
        if entry.how == "redirect" and entry.url not in targets.get(entry.parent or "", ()):
            yield f"{entry.url}: {entry.parent} does not redirect to it"
    yield from _circles(archive)


def _parent_problems(entry: Entry, is_root: bool, first: Mapping[str, Entry]) -> Iterator[str]:
    for what, url in (("parent", entry.parent), ("carrier", entry.carrier)):
        if is_root:
            if url is not None:
                yield f"{entry.url}: the root has the {what} {url}"
        elif url is None:
            yield f"{entry.url}: nothing names it: no {what}"
        elif url not in first:
            yield f"{entry.url}: its {what} {url} is not in the archive"


def _ancestor_problems(first: Mapping[str, Entry]) -> Iterator[str]:
    """URLs whose parents never lead to the root; each circle once."""
    settled: set[str] = set()
    for start in first:
        path: dict[str, None] = {}
        url: str | None = start
        while url is not None and url in first and url not in path and url not in settled:
            path[url] = None
            url = first[url].parent
        if url in path:
            yield f"{url}: is its own ancestor"
        settled.update(path)


def _circles(archive: Archive) -> Iterator[str]:
    """Redirects that lead back to themselves and to nothing else; each circle once."""
    target: dict[str, str] = {}
    for entry in archive.entries:
        if entry.location is not None:
            target.setdefault(entry.url, entry.location)
    for entry in archive.entries:
        # A site may redirect to itself once, to see its cookie come back.
        if entry.location is None:
            target.pop(entry.url, None)
    settled: set[str] = set()
    for start in target:
        path: dict[str, None] = {}
        url: str | None = start
        while url is not None and url not in path and url not in settled:
            path[url] = None
            url = target.get(url)
        if url in path:
            yield f"{url}: redirects in a circle"
        settled.update(path)
