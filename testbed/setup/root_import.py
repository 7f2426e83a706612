"""Import of a pack of a root or a kernel: its parts into the cache, checked before any is used.

The start of the program does it, since the pack may be what brings the Python packages
(``firstflight/start.py``).  Standard library only, and so is all that it imports.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from testbed.base.errors import MissingError, StorageError, caching
from testbed.base.exits import exit_code_of
from testbed.base.heartbeat import repeating
from testbed.base.places import cache as cache_folder
from testbed.base.places import using_cache
from testbed.base.units import format_bytes
from testbed.root.cache import (
    ASSEMBLED,
    PACKAGES,
    SCRATCH,
    Root,
    find_root,
    packed_place,
    read_root,
    roots_folder,
    roots_lock,
)
from testbed.root.spec import read_spec, root_names
from testbed.setup.parts import KINDS, CachePart
from testbed.setup.root_pack import PackedPart, Progress, RootPack, extract_parts, read_pack

_BYTES_PER_S = 40e6
CheckParts = Callable[[Mapping[str, Path]], Iterator[str]]
"""From where the files of each part are, by its name, to what is wrong with them."""


@dataclass(frozen=True, slots=True)
class ImportedPart:
    """A part of a pack, where it is in the cache, and whether it was not there before."""

    part: CachePart
    place: Path
    added: bool


def import_pack(file: Path, cache: Path, progress: Progress) -> tuple[ImportedPart, ...]:
    """Put the parts and packages of the pack ``file`` into ``cache``.

    Names, sizes and what each part is made from are checked before anything is written, all files
    before any part is in its place; each part is there as a whole or not at all.

    Raises:
        ConfigurationError: it is no whole pack, or of another tree than this; every problem.
        MissingError: it is for another machine.
        StorageError: the cache cannot be written.
    """
    pack = read_fitting(file)
    if problems := [problem for each in pack.parts for problem in _list_foreign(each)]:
        raise pack.refuse(problems)
    for name, sha256 in pack.packages.items():
        with pack.open(name) as content:
            if hashlib.file_digest(content, "sha256").hexdigest() != sha256:
                problems.append(f"{name}: damaged: it has another SHA-256")
    if problems:
        raise pack.refuse(problems)
    with writing(file, cache, progress):
        places = [(each, each.part.place(cache)) for each in pack.parts]
        put = [(each, place) for each, place in places if not is_there(each, place)]
        put_parts(pack, put, cache, progress, lambda made: list_unfit(put, made))
        _put_packages(pack, cache)
    return tuple(ImportedPart(each.part, place, (each, place) in put) for each, place in places)


def read_fitting(file: Path) -> RootPack:
    """Return the pack ``file``, which is one for machines like this.

    Raises:
        ConfigurationError: it is no whole pack.
        MissingError: it is for another machine.
    """
    pack = read_pack(file)
    if pack.machine != platform.machine():
        raise MissingError(
            f"{file}: is for {pack.machine}, and this machine is {platform.machine()}; "
            "export one on such a machine"
        )
    return pack


def import_roots(
    file: Path, wanted: Mapping[str, str], cache: Path, progress: Progress
) -> dict[str, Root]:
    """Put the roots that have the digests ``wanted``, by names, into ``cache``; return them.

    One that this tree's lock names as well is that one; others have a place by their digest.

    Raises:
        ConfigurationError: it is no whole pack, or has not these roots.
        StorageError: the cache cannot be written.
    """
    pack = read_pack(file)
    held = {each.digest: each for each in pack.parts if each.part.kind == "root"}
    if lost := sorted(name for name, digest in wanted.items() if digest not in held):
        raise pack.refuse([f"lacks the root {name} that its results ran in" for name in lost])
    with writing(file, cache, progress):
        found = {name: _find_root(name, digest, cache) for name, digest in wanted.items()}
        absent = [wanted[name] for name, root in found.items() if root is None]
        put = [(held[digest], packed_place(digest, cache)) for digest in absent]
        put_parts(pack, put, cache, progress, lambda _: iter(()))
        found = {name: _find_root(name, digest, cache) for name, digest in wanted.items()}
    return {name: root for name, root in found.items() if root is not None}


def _find_root(name: str, digest: str, cache: Path) -> Root | None:
    """Return the root of that digest, by this tree's lock or from a pack, if it is there."""
    here = find_root(read_spec(name), cache) if name in root_names() else None
    if here is not None and here.digest == digest:
        return here
    packed = read_root(name, packed_place(digest, cache))
    return packed if packed is not None and packed.digest == digest else None


def _list_foreign(packed: PackedPart) -> Iterator[str]:
    """Yield how a part is none of this tree's, by the files that it is made from."""
    here, title = packed.part.list_sources(), packed.part.title
    for name in sorted({*here, *packed.sources}):
        if name not in here:
            yield f"{title}: is made from {name!a}, which this tree has not"
        elif name not in packed.sources:
            yield f"{title}: is made without {name}, which this tree has"
        elif here[name] != packed.sources[name]:
            yield f"{title}: is made from another {name} than this tree's"


def is_there(packed: PackedPart, place: Path) -> bool:
    """Return whether ``place`` has a part as it is packed."""
    part = packed.part
    if part.kind == "root":
        root = read_root(part.variant, place)
        return root is not None and root.digest == packed.digest
    return place.is_dir() and part.digest(place) == packed.digest


def put_parts(
    pack: RootPack, wanted: Sequence[tuple[PackedPart, Path]], cache: Path, progress: Progress,
    check: CheckParts,
) -> None:  # fmt: skip
    """Put parts into their places, if all of them are whole and ``check`` finds nothing wrong.

    Raises:
        ConfigurationError: they are not; every problem.
        StorageError: there is no room.
        OSError: they cannot be written.
    """
    if not wanted:
        return
    size, free = sum(each.size for each, _ in wanted), shutil.disk_usage(cache).free
    if size > free:
        raise StorageError(
            f"{pack.file} unpacks to {format_bytes(size)}, and {cache} has {format_bytes(free)} "
            "free; free space, or set XDG_CACHE_HOME to a folder with more"
        )
    progress(f"unpacking {format_bytes(size)}, about {size / _BYTES_PER_S:.0f} s")
    beside = roots_folder(cache) / ASSEMBLED
    beside.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=SCRATCH, dir=beside) as folder:
        made = extract_parts(pack, [each for each, _ in wanted], Path(folder))
        if problems := list(check(made)):
            raise pack.refuse(problems)
        for each, place in wanted:
            new = made[each.part.name]
            for path, _, _ in os.walk(new):
                Path(path).chmod(0o755)
            if (finish := KINDS[each.part.kind].finish) is not None:
                finish(new, each.digest)
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.exists():
                place.rename(Path(folder) / f"old-{each.part.name}")
            new.rename(place)


def list_unfit(
    wanted: Sequence[tuple[PackedPart, Path]], made: Mapping[str, Path]
) -> Iterator[str]:
    """Yield how parts, whose files are where ``made`` says by their names, are not this tree's."""
    for each, _ in wanted:
        part, check = each.part, KINDS[each.part.kind].check
        if check is not None:
            said = check(part.variant, part.folder, made[part.name], each.digest)
            yield from (f"{part.title}: {problem}" for problem in said)


def _put_packages(pack: RootPack, cache: Path) -> None:
    folder = roots_folder(cache) / PACKAGES
    folder.mkdir(parents=True, exist_ok=True)
    for name, sha256 in pack.packages.items():
        file = folder / f"{sha256}.deb"
        if not file.exists():
            partial = folder / f"{SCRATCH}{file.name}"
            with pack.open(name) as content, partial.open("wb") as stream:
                shutil.copyfileobj(content, stream, 1 << 20)
            partial.replace(file)


@contextmanager
def writing(file: Path, cache: Path, progress: Progress) -> Iterator[None]:
    """Keep others from importing during the block.

    Raises:
        StorageError: the cache cannot be written, as the block finds.
    """
    with caching(f"import {file} to {cache}"), roots_lock(cache, progress):
        yield


def describe(done: Sequence[ImportedPart]) -> str:
    """Return a line for each part of an import."""
    return "\n".join(
        f"{each.part.title}: {'imported to' if each.added else 'already in'} {each.place}"
        for each in done
    )


def import_named(arguments: Sequence[str]) -> int:
    """Import the pack that a command line names, and say what came of it; return the exit code."""
    cache = cache_folder()

    def work() -> None:
        with using_cache(cache), repeating(_print_error) as progress:
            print(describe(import_pack(Path(arguments[-1]), cache, progress)))

    return exit_code_of(work, _print_error)


def _print_error(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
