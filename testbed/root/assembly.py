"""Assembly of a root: its packages' files below one ``usr``, without any privilege or script.

What ``/bin``, ``/sbin`` and ``/lib*`` hold joins ``usr``, as on each Debian since 12; what a
package has elsewhere no guest sees.  Owners, times and set-user bits are dropped.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import tarfile
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, cast

from testbed.base.checksums import file_sha256
from testbed.base.errors import StorageError
from testbed.root.package import open_content

MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
TIME_S = 1_700_000_000
"""Of every file: no guest sees when a root was assembled."""


class Assembly:
    """Files of packages in ``folder``, which is empty at first.

    Attributes:
        owners: each file's package, by its path.
    """

    def __init__(self, folder: Path, left_out: Collection[str]) -> None:
        self._folder = folder
        self._left_out = _matcher(left_out)
        self.owners: dict[str, str] = {}

    def add(self, name: str, package: Path) -> None:
        """Unpack the file of the package ``name``.

        Raises:
            StorageError: it is damaged, leads out of the root, or has a file of another package.
            OSError: it cannot be written.
        """
        with open_content(package) as archive:
            for member in archive:
                path = place_of(member.name)
                if path is None or self._left_out(path):
                    continue
                self.write(name, path, member, archive)

    def write(
        self, name: str, path: str, member: tarfile.TarInfo, archive: tarfile.TarFile
    ) -> None:
        """Write the next ``member`` of an archive to ``path``, which has no ``..``, for ``name``.

        Raises:
            StorageError: it is there, is no file, folder or link, or leads out of the root.
            OSError: it cannot be written.
        """
        try:
            self._write(name, path, member, archive)
        except FileExistsError:
            raise StorageError(
                f"{name} and {self.owners.get(path, 'another package')} both have {path}"
            ) from None

    def _write(
        self, name: str, path: str, member: tarfile.TarInfo, archive: tarfile.TarFile
    ) -> None:
        target = self._folder / path
        self._check_parents(name, target)
        if member.isdir():
            target.mkdir(parents=True, exist_ok=True)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        if member.issym():
            target.symlink_to(member.linkname)
        elif member.islnk():
            first = place_of(member.linkname)
            if first is None or self.owners.get(first) != name:
                raise StorageError(f"{name}: {path} is a link to {member.linkname}, not its own")
            os.link(self._folder / first, target, follow_symlinks=False)
        elif member.isreg():
            with target.open("xb") as file:
                shutil.copyfileobj(_content(archive, member), file, 1 << 20)
                os.fchmod(file.fileno(), 0o755 if member.mode & 0o111 else 0o644)
            os.utime(target, (TIME_S, TIME_S))
        else:
            raise StorageError(f"{name}: {path} is no file, folder or link")
        self.owners[path] = name

    def _check_parents(self, name: str, target: Path) -> None:
        for parent in target.relative_to(self._folder).parents:
            if (self._folder / parent).is_symlink():
                raise StorageError(
                    f"{name}: {target.name} would be written through the link {parent}"
                )


def place_of(name: str) -> str | None:
    """Return where the path ``name`` of a package is in a root; ``None``: it is left out."""
    parts = PurePosixPath(name).parts
    if ".." in parts or name.startswith("/"):
        raise StorageError(f"a package has the path {name!r}")
    # The folder itself may be a link of a package, as Debian 13 has it.
    if len(parts) > 1 and parts[0] in MERGED:
        parts = ("usr", *parts)
    return "/".join(parts) if len(parts) > 1 and parts[0] == "usr" else None


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    return cast(IO[bytes], archive.extractfile(member))  # a plain file's is never None


def _matcher(patterns: Collection[str]) -> Callable[[str], bool]:
    """Return what says whether a path matches one of ``patterns``: ``*`` within, ``**`` across."""
    if not patterns:
        return lambda path: False
    words = (
        re.escape(pattern).replace(r"\*\*", ".*").replace(r"\*", "[^/]*") for pattern in patterns
    )
    matches = re.compile("|".join(f"(?:{word})" for word in words)).fullmatch
    return lambda path: matches(path) is not None


def list_files(folder: Path, left_out: Collection[str] = ()) -> Iterator[tuple[str, Path]]:
    """Yield what is in a folder, by path, but for what matches a pattern in ``left_out``."""
    is_left_out = _matcher(left_out)
    for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).parts):
        name = path.relative_to(folder).as_posix()
        if not is_left_out(name):
            yield name, path


def _describe(files: Iterable[tuple[str, Path]]) -> Iterator[str]:
    """Yield a line for each file of a root, by path: kind, what it holds or leads to, path."""
    for name, path in files:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            yield f"link {path.readlink()} {name}"
        elif stat.S_ISREG(mode):
            yield f"{'program' if mode & 0o111 else 'file'} {file_sha256(path)} {name}"


def digest_files(folder: Path, left_out: Collection[str] = ()) -> str:
    """Return the digest that names a root of the files in ``folder``."""
    lines = _describe(list_files(folder, left_out))
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
