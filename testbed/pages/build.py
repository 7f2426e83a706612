"""Page builds: the archive of a page in the cache, once for each state of its inputs and code.

A build that is found there is compared with its checksums, and made again where it is damaged.
Archives are built here; what other kinds of pages are built by, wings provide.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from testbed.archive.reading import HAR_NAME, TLS_FOLDER, Entry, read_archive
from testbed.base import log
from testbed.base.checksums import damaged_files, write_checksums
from testbed.base.errors import ConfigurationError, MissingError, StorageError
from testbed.base.sources import digest_sources, imported_sources
from testbed.base.whole_folder import new_folder
from testbed.base.wings import provided
from testbed.model.device import BrowserDevice
from testbed.pages.authority import make_authority
from testbed.pages.catalogue import FACTS_NAME, TABLE_NAME, list_sources, read_facts, read_kind

Tell = Callable[[str], None]
Fill = Callable[[Path], None]
"""Writes an archive into an empty folder."""
Builder = Callable[[Path, Path, Tell], Path]
"""What wings provide to ``page_builders`` by the kind of page: as ``build_page`` for that kind."""
_log = log.logger(__name__)


def build_page(folder: Path, cache: Path, tell: Tell = _log.info) -> Path:
    """Build the page in ``folder`` in ``cache/pages`` unless it is there.

    The built folder, which is returned, is an archive, with certificates beside it if it has https
    origins.  It appears whole or not at all, also when two processes build it at once; one whose
    files are not those that were built is replaced.

    Raises:
        ConfigurationError: the page's files are wrong; every problem is named.
        MissingError: what builds it cannot be had.
        StorageError: the cache cannot be written.
    """
    kind = read_kind(folder)
    if kind == "archive":
        return build_archive(folder, folder, cache)
    for builder in provided("page_builders"):
        if builder.name == kind:
            build: Builder = builder.load()
            return build(folder, cache, tell)
    return _find_build(folder, cache, kind)


def build_archive(folder: Path, archive: Path, cache: Path) -> Path:
    """Build the page in ``folder`` of the folder ``archive``; raises what ``build_page`` does."""
    sources = (archive / FACTS_NAME, archive / HAR_NAME)
    fill = _fill_from_archive(archive, folder.name)
    return cached_build(folder, cache, sources, __name__, fill)


def cached_build(
    folder: Path, cache: Path, sources: Sequence[Path], module: str, fill: Fill
) -> Path:
    """Return the build of the page in ``folder``, which ``fill`` makes unless it is there.

    ``sources`` are the files that it is made of, a HAR for the bodies that it names by their
    hashes, and ``module`` is what makes it; both decide which build it is.

    Raises:
        ConfigurationError, StorageError: as ``build_page``.
    """
    code = imported_sources(module)
    digest = hashlib.sha256(f"{folder.name}\0{digest_sources([*sources, *code])}".encode())
    target = cache / "pages" / f"{_build_prefix(folder)}{digest.hexdigest()[:16]}"
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


def _build_prefix(folder: Path) -> str:
    """Return how the names of all builds of the page begin: they differ in the code behind it."""
    names = (FACTS_NAME, TABLE_NAME, HAR_NAME)
    files = [source / name for source in list_sources(folder) for name in names]
    return f"{folder.name}-{digest_sources(file for file in files if file.is_file())[:8]}-"


def _find_build(folder: Path, cache: Path, kind: str) -> Path:
    """Return the newest whole build of a page whose builder is not there.

    Raises:
        MissingError: there is none.
    """
    builds = (cache / "pages").glob(f"{glob.escape(_build_prefix(folder))}*")
    for build in sorted(builds, key=lambda path: path.stat().st_mtime, reverse=True):
        if not damaged_files(build):
            _log.info("%s: nothing here builds a %s; taking %s", folder.name, kind, build)
            return build
    raise MissingError(
        f"{folder}: nothing here builds a {kind}, and {cache / 'pages'} has no build of it: put "
        "wings/pages back, which has what does, or take an archive (wings/pages/README.md)"
    )


def _certify(folder: Path) -> None:
    hosts = read_archive(folder).tls_hosts
    if hosts:
        (folder / TLS_FOLDER).mkdir()
        for name, data in make_authority(hosts).items():
            (folder / TLS_FOLDER / name).write_bytes(data)


def _fill_from_archive(folder: Path, name: str) -> Fill:
    """Read and check the archive; what is returned reads nothing that is not in its folder."""
    archive, device = read_archive(folder), read_facts(folder / FACTS_NAME).device
    parts = (folder / name for name in (FACTS_NAME, HAR_NAME, "bodies"))
    links = [part for part in parts if part.is_symlink()]
    problems = [f"{link}: is a link; an archive holds its files itself" for link in links]
    if problems:
        raise ConfigurationError(problems)

    def fill(target: Path) -> None:
        (target / "bodies").mkdir()
        (target / FACTS_NAME).write_bytes((folder / FACTS_NAME).read_bytes())
        har = (folder / HAR_NAME).read_bytes()
        same = (name, device) == (archive.name, archive.device)
        (target / HAR_NAME).write_bytes(har if same else _settled(har, name, device))
        copy_problems = [_copy_body(entry, target) for entry in archive.entries]
        problems = [problem for problem in copy_problems if problem]
        if problems:
            raise ConfigurationError(list(dict.fromkeys(problems)))

    return fill


def _settled(har: bytes, name: str, device: BrowserDevice | None) -> bytes:
    """Return the HAR by the folder's name, and with the device of its ``page.toml``.

    Guests read the HAR alone, and digests cover it.
    """
    log = json.loads(har)["log"]
    log["pages"][0] |= {"id": name, "_device": None if device is None else device.plain()}
    for entry in log["entries"]:
        entry["pageref"] = name
    return (json.dumps({"log": log}, indent=1) + "\n").encode()


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
