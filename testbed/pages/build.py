"""Page builds: the archive of a page in the cache, once for each state of its inputs and code.

A build that is found there is compared with its checksums, and made again where it is damaged.

``python -m testbed.pages.build [NAME...]`` builds pages (all by default) and prints where they are.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from testbed.archive.reading import HAR_NAME, Entry, read_archive
from testbed.base import log
from testbed.base.checksums import damaged_files, write_checksums
from testbed.base.errors import ConfigurationError, StorageError
from testbed.base.sources import digest_sources, imported_sources
from testbed.base.whole_folder import new_folder
from testbed.pages.authority import TLS_FOLDER, make_authority
from testbed.pages.catalogue import (
    FACTS_NAME,
    TABLE_NAME,
    Kind,
    PageFacts,
    find_page,
    list_pages,
    read_facts,
    read_kind,
)
from testbed.pages.har_export import TABLE_CREATOR, make_har, write_content
from testbed.pages.synthesis.bodies import synthesise
from testbed.pages.synthesis.page import place_exchanges
from testbed.pages.table import PROTOCOLS, read_table

_log = log.logger(__name__)


def build_page(folder: Path, cache: Path) -> Path:
    """Build the page in ``folder``, a table or an archive, below ``cache`` unless it is there.

    A page with https origins gets their certificates beside it.  The built folder, which is
    returned, appears whole or not at all, also when two processes build it at once; one whose
    files are not those that were built is replaced.

    Raises:
        ConfigurationError: the page's files are wrong; every problem is named.
        StorageError: the cache cannot be written.
    """
    kind = read_kind(folder)
    if kind == "recipe":
        raise ConfigurationError(
            [f"{folder}: a recipe is installed from packages: `./run.sh pages build {folder.name}`"]
        )
    fill = _FILLS[kind](folder)
    target = cache / f"{folder.name}-{_inputs_digest(folder, _inputs(folder, kind))[:16]}"
    damaged = damaged_files(target) if target.is_dir() else ()
    if target.is_dir() and not damaged:
        return target
    if damaged:
        _log.info("%s: %s in the cache is damaged; building it again", folder.name, damaged[0])
    try:
        with new_folder(target, replace=bool(damaged)) as scratch:
            fill(scratch)
            _certify(scratch)
            write_checksums(scratch)
    except OSError as error:
        if damaged or not target.is_dir():  # else another process was first, with the same bytes
            raise StorageError(
                f"cannot write the page {folder.name} to {cache}: {error}; "
                "free some space there, or name a cache that you may write to with XDG_CACHE_HOME"
            ) from None
    return target


def _certify(folder: Path) -> None:
    hosts = read_archive(folder).tls_hosts
    if hosts:
        (folder / TLS_FOLDER).mkdir()
        for name, data in make_authority(hosts).items():
            (folder / TLS_FOLDER / name).write_bytes(data)


def _fill_from_table(folder: Path) -> Callable[[Path], None]:
    """Read and check the page; what is returned writes it to an empty folder."""
    facts = read_facts(folder / FACTS_NAME)
    path, protocol = _find_table(folder, facts)
    rows = tuple(replace(row, protocol=protocol or row.protocol) for row in read_table(path))

    def fill(target: Path) -> None:
        page = synthesise(folder.name, facts.title, rows)
        placed = place_exchanges(page)
        more = {"_made_up": True} if facts.made_up else {}
        har = make_har(
            folder.name, facts.title, facts.recorded, placed, creator=TABLE_CREATOR, more=more
        )
        (target / FACTS_NAME).write_bytes((folder / FACTS_NAME).read_bytes())
        write_content(target, har, (response.body.data for response in page.responses))

    return fill


def _find_table(folder: Path, facts: PageFacts) -> tuple[Path, str | None]:
    """Return the resource table of a page, and what all its rows speak if that is another page's.

    Raises:
        ConfigurationError: its ``[table]`` names no such page, or no protocol.
    """
    if facts.table is None:
        return folder / TABLE_NAME, None
    asked, path = facts.table, folder / FACTS_NAME
    base, protocol = asked.get("like"), asked.get("protocol")
    problems = [
        f"{path}: table.{key}: unknown; it has like and protocol"
        for key in asked
        if key not in ("like", "protocol")
    ]
    if not isinstance(base, str) or not (folder.parent / base / TABLE_NAME).is_file():
        problems.append(f"{path}: table.like: there is no page {base!r} with a {TABLE_NAME}")
    if protocol not in PROTOCOLS:
        problems.append(
            f"{path}: table.protocol is {protocol!r}, expected one of {', '.join(PROTOCOLS)}"
        )
    if problems:
        raise ConfigurationError(problems)
    return folder.parent / str(base) / TABLE_NAME, str(protocol)


def _fill_from_archive(folder: Path) -> Callable[[Path], None]:
    """As ``_fill_from_table``; nothing that is not in the folder itself is read."""
    archive = read_archive(folder)
    problems = [
        f"{folder / name}: is a link; an archive holds its files itself"
        for name in (FACTS_NAME, HAR_NAME, "bodies")
        if (folder / name).is_symlink()
    ]
    if problems:
        raise ConfigurationError(problems)

    def fill(target: Path) -> None:
        (target / "bodies").mkdir()
        for name in (FACTS_NAME, HAR_NAME):
            (target / name).write_bytes((folder / name).read_bytes())
        copy_problems = [_copy_body(entry, target) for entry in archive.entries]
        problems = [problem for problem in copy_problems if problem]
        if problems:
            raise ConfigurationError(list(dict.fromkeys(problems)))

    return fill


def _copy_body(entry: Entry, target: Path) -> str | None:
    """Copy one body; what is wrong with it instead, if anything is.

    No hard link: whoever edits the page's folder would change what is cached for the old hash.
    """
    if entry.body is None or (target / "bodies" / entry.body.name).exists():
        return None
    try:
        with os.fdopen(os.open(entry.body, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as f:
            data = f.read(entry.body_size + 1)
    except OSError as error:
        return f"{entry.body}: {error.strerror}"
    if hashlib.sha256(data).hexdigest() != entry.body.name or len(data) != entry.body_size:
        return f"{entry.body}: not the {entry.body_size} bytes that its hash says"
    (target / "bodies" / entry.body.name).write_bytes(data)
    return None


_FILLS: dict[Kind, Callable[[Path], Callable[[Path], None]]] = {
    "table": _fill_from_table,
    "archive": _fill_from_archive,
}


def _inputs(folder: Path, kind: Kind) -> tuple[Path, ...]:
    """Return the files that a page is built from; a HAR names the bodies by their hashes."""
    facts = folder / FACTS_NAME
    if kind == "table":
        return facts, _find_table(folder, read_facts(facts))[0]
    return facts, folder / HAR_NAME


def _inputs_digest(folder: Path, paths: Sequence[Path]) -> str:
    """Return SHA-256 over the page's files and the code that turns them into bodies."""
    code = imported_sources("testbed.pages.build")
    content = digest_sources([*paths, *code])
    return hashlib.sha256(f"{folder.name}\0{content}".encode()).hexdigest()


def main(argv: Sequence[str] | None = None) -> None:
    """Build the named pages."""
    parser = argparse.ArgumentParser(description="Build pages for development.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: every page")
    parser.add_argument("--pages", type=Path, default=Path("pages"))
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "pages")
    arguments = parser.parse_args(argv)
    folders = list_pages(arguments.pages)
    if arguments.names:
        folders = tuple(find_page(arguments.pages, name) for name in arguments.names)
    for folder in folders:
        print(build_page(folder, arguments.cache))


if __name__ == "__main__":
    main()
