"""Transfer of results between machines: a folder into a pack, and a pack into a folder.

A pack's digests protect from damage.  They say nothing about who made it (docs/security.md).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.base.checksums import file_sha256
from testbed.base.errors import ConfigurationError, StorageError, TestbedError
from testbed.base.whole_file import open_whole, refuse_existing
from testbed.base.whole_folder import OccupiedError, new_folder
from testbed.experiment.lanes import LANES_FILE, read_lanes
from testbed.results.folder import locked
from testbed.results.manifest import MANIFEST_FILE, holds_results, load_manifest
from wings.packs.container import Container, ListedFile, open_container, write_container
from wings.packs.contents import METADATA_FILE, RESULTS_PACK, PackContents, gather_contents
from wings.packs.crate import OtherFormatError, check_license, parse_metadata, render_metadata


@dataclass(frozen=True, slots=True)
class WrittenPack:
    """A pack that was written: what is in it, and the SHA-256 of the file."""

    contents: PackContents
    sha256: str


def pack_results(
    folder: Path, file: Path, pages: Path, cache: Path, *, license_: str | None = None,
    replace: bool = False,
) -> WrittenPack:  # fmt: skip
    """Write the results in ``folder`` to ``file``, the same bytes for equal results.

    Raises:
        ConfigurationError: the file is there and is not to be replaced, the folder holds what no
            pack does, or the licence is none.
        StorageError: it cannot be read or written.
    """
    if license_ is not None:
        check_license(license_)
    refuse_existing(file, replace=replace)
    contents = gather_contents(folder, pages, cache)
    metadata = render_metadata(contents, license_)
    with open_whole(file, "choose another place with -o FILE") as stream:
        write_container(stream, RESULTS_PACK, metadata, contents.files)
    return WrittenPack(contents, file_sha256(file))


def unpack_results(file: Path, folder: Path, *, replace: bool = False) -> int:
    """Write what is packed in ``file`` to ``folder``, and return how many files it was.

    Names, kinds, sizes and the list of all files are checked before anything is written, digests
    and manifests before the folder appears, whole or not at all.  Nothing but results, or an empty
    folder, is ever replaced.

    Raises:
        ConfigurationError: it is no pack, or not whole; with every problem seen before unpacking,
            or the folder is there and is not to be replaced, or cannot be made.
        StorageError: the folder cannot be written, or a run writes to what is to be replaced.
    """
    _refuse_occupied(folder, replace=replace)
    with open_container(file, RESULTS_PACK) as container:
        listed = _read_list(file, container)
        _check_room(file, folder, sum(each.size for each in listed.values()))
        try:
            with _held(folder), new_folder(folder, replace=replace) as scratch:
                (scratch / METADATA_FILE).write_bytes(container.read_list())
                problems = list(_extract(container, listed, scratch))
                problems = problems or list(_list_unreadable(scratch))
                if problems:
                    raise RESULTS_PACK.refuse(file, problems)
        except OccupiedError:  # since we looked
            raise _occupied(folder) from None
        except OSError as error:
            raise StorageError(
                f"cannot unpack {file} to {folder}: {error.strerror or error}; what was there "
                "before is intact; free space or name another folder"
            ) from None
    return len(listed)


def _read_list(file: Path, container: Container) -> dict[str, ListedFile]:
    """Return what the metadata says of each file, which is what the archive holds.

    Raises:
        ConfigurationError: it is not; every difference.
    """
    try:
        listed = parse_metadata(container.read_list())
    except OtherFormatError as error:
        raise ConfigurationError([f"{file}: {error}"]) from None
    except ValueError as error:
        raise RESULTS_PACK.refuse(file, [f"no pack of results, or damaged: {error}"]) from None
    problems = list(container.list_differences(listed))
    if not {MANIFEST_FILE, LANES_FILE} & listed.keys():
        problems.append(f"holds no results: neither {MANIFEST_FILE} nor {LANES_FILE} is in it")
    if problems:
        raise RESULTS_PACK.refuse(file, problems)
    return listed


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Keep runs out of the results that are to be replaced, each lane of them.

    Raises:
        StorageError: one writes there.
    """
    with ExitStack() as held:
        for each in (folder, *sorted(folder.glob("*/"))):
            if each.is_dir() and not each.is_symlink():
                held.enter_context(locked(each))
        yield


def _refuse_occupied(folder: Path, *, replace: bool) -> None:
    """Let a folder be written that is not there, or that may be replaced.

    Raises:
        ConfigurationError: it is neither, or has a name that no folder can have.
    """
    try:
        folder.lstat()
        ours = not folder.is_symlink() and folder.is_dir()
        ours = ours and (holds_results(folder) or not any(folder.iterdir()))
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigurationError([f"{folder}: {error.strerror}; name another folder"]) from None
    if not ours:
        raise ConfigurationError(
            [f"{folder} is there and is no folder of results, which alone are replaced; name "
             "another folder"]
        )  # fmt: skip
    if not replace:
        raise _occupied(folder)


def _occupied(folder: Path) -> ConfigurationError:
    return ConfigurationError([f"{folder} is there; name another folder, or give --replace"])


def _extract(container: Container, listed: Mapping[str, ListedFile], folder: Path) -> Iterator[str]:
    """Write every file to ``folder``, and yield each damage."""
    for name, entry in listed.items():
        try:
            container.extract(name, folder / name, entry.sha256)
        except ValueError as error:
            yield str(error)


def _list_unreadable(folder: Path) -> Iterator[str]:
    """Yield what is wrong with the manifests in ``folder``, by their names in the pack."""
    try:
        names = read_lanes(folder) or ("",)
    except TestbedError as error:
        names = ()
        yield str(error).replace(f"{folder}/", "")
    for name in names:
        try:
            load_manifest(folder / name)
        except TestbedError as error:
            yield str(error).replace(f"{folder}/", "")


def _check_room(file: Path, folder: Path, size: int) -> None:
    above = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    free = shutil.disk_usage(above).free
    if size > free:
        raise StorageError(
            f"{file} unpacks to {size} bytes, and {above} has {free} free; free space or name "
            "another folder"
        )
