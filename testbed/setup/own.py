"""Own files: the programs and folders that a user's commands name, given to trials on purpose.

A guest and an enclosure see the /usr of a root and nothing of the user's, so a folder is copied
beside the harness, and each of its files counts in the environment by its digest.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from testbed.base.checksums import file_sha256
from testbed.base.errors import ConfigurationError, MissingError
from testbed.base.units import format_bytes
from testbed.client.program import Program
from testbed.kernel.run.enclosure import PATH
from testbed.model.command import FOLDER, split_words
from testbed.setup.programs import find

MOST_FILES = 2000
MOST_BYTES = 512 << 20


def list_own(folder: Path) -> dict[str, Path]:
    """Return the files of a user's folder by their names in it; links are followed.

    Raises:
        ConfigurationError: it is too large, or holds what cannot be copied.
    """
    files: dict[str, Path] = {}
    size = 0
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        try:
            seen = path.stat()
        except OSError as error:
            raise ConfigurationError([f"{path}: {error.strerror}"]) from None
        if stat.S_ISDIR(seen.st_mode):
            if path.is_symlink():
                raise ConfigurationError(
                    [f"{path}: a link to a folder is not followed; copy what it leads to"]
                )
            continue
        if not stat.S_ISREG(seen.st_mode) or not name.isprintable():
            raise ConfigurationError([f"{path}: not a file that can be given to trials; remove it"])
        files[name] = path
        size += seen.st_size
        if len(files) > MOST_FILES or size > MOST_BYTES:
            raise ConfigurationError(
                [f"{folder}: more than {MOST_FILES} files or {format_bytes(MOST_BYTES)}; name a "
                 "folder that holds what the command needs and nothing else"]
            )  # fmt: skip
    return files


def find_programs(commands: Iterable[str], usr: Path) -> None:
    """Look for the programs that ``commands`` begin with in the root ``usr``.

    Those of the user's own folder are none of them.

    Raises:
        MissingError: some are not there, or not in /usr; all of them, with the remedy.
    """
    names = dict.fromkeys(split_words(command)[0] for command in commands)
    absent = [name for name in names if not name.startswith(f"{{{FOLDER}}}/")
              and not _is_there(name, usr)]  # fmt: skip
    if absent:
        raise MissingError(
            f"command {' and '.join(map(repr, absent))}: trials find no such program ({PATH} of "
            "the root); choose a root that has it, or put it into a folder of yours and name that "
            "with command_folder"
        )


def _is_there(name: str, usr: Path) -> bool:
    places = (Path(name),) if "/" in name else ()
    file = find(Program(name, packages="", places=places), usr)
    return file is not None and file.is_relative_to(usr.resolve())


def digest_own(files: Mapping[str, Path]) -> dict[str, str]:
    """Return a user's files as parts of an environment: the SHA-256 of each."""
    return {f"file.{{{FOLDER}}}/{name}": file_sha256(path) for name, path in files.items()}


def check_programs(commands: Iterable[str], files: Collection[str]) -> list[str]:
    """Return a sentence for each program of ``commands`` that the user's folder does not hold."""
    prefix = f"{{{FOLDER}}}/"
    named = (split_words(command)[0] for command in commands)
    return [
        f"command {name}: command_folder has no file {name.removeprefix(prefix)!r}"
        for name in dict.fromkeys(named)
        if name.startswith(prefix) and name.removeprefix(prefix) not in files
    ]
