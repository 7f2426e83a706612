"""Checks a page from its files alone: hashes, sizes, contents, references, origins, files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from testbed.archive.reading import HAR_NAME, Archive, read_archive
from testbed.base.checksums import CHECKSUMS_FILE
from testbed.base.errors import ConfigurationError
from testbed.pages.authority import TLS_FOLDER, make_authority
from testbed.pages.facts import FACTS_NAME, read_facts
from testbed.pages.verify_entry import entry_problems
from testbed.pages.verify_origins import origin_problems
from testbed.pages.verify_references import reference_problems

_OURS = frozenset({FACTS_NAME, HAR_NAME, "bodies", TLS_FOLDER, CHECKSUMS_FILE})


def verify_archive(folder: Path) -> list[str]:
    """Everything that is wrong with the archive in ``folder``, one sentence each.

    Raises:
        ConfigurationError: the folder holds no page archive at all.
    """
    archive = read_archive(folder)
    problems = _facts_problems(folder)
    for entry in archive.entries:
        problems += entry_problems(entry)
    problems += reference_problems(archive)
    problems += origin_problems(archive)
    problems += _stray_files(folder, archive)
    return problems


def verify_tls(folder: Path) -> list[str]:
    """What is wrong with the certificates of the built page in ``folder``.

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
    found = sorted(path.name for path in tls.iterdir()) if tls.is_dir() else []
    unknown = [name for name in found if name not in expected]
    return [*problems, *(f"{TLS_FOLDER}/{name}: of no https host of the page" for name in unknown)]


def count_repeats(archive: Archive) -> int:
    """How many requests ask again for what was asked for before: no error, but good to know."""
    asked = Counter((entry.method, entry.url, entry.request_body_size) for entry in archive.entries)
    return sum(count - 1 for count in asked.values())


def _facts_problems(folder: Path) -> list[str]:
    try:
        read_facts(folder / FACTS_NAME)
    except ConfigurationError as error:
        return error.problems
    return []


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
