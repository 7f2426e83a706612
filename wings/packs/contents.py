"""Contents of a pack: a results folder, and the sources of the pages that were loaded."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.archive.reading import read_archive
from testbed.base.checksums import file_sha256
from testbed.base.errors import ConfigurationError, StorageError
from testbed.base.units import format_bytes, format_count
from testbed.experiment.lanes import read_lanes
from testbed.kinds import commands_of
from testbed.pages.build import build_page
from testbed.pages.catalogue import list_pages, list_sources, read_kind
from testbed.results.manifest import PARTIAL_FILE, Manifest, load_manifest
from testbed.results.records import read_records
from wings.packs.container import PackFile, PackFormat, describe_wrong_name, first_of

METADATA_FILE = "ro-crate-metadata.json"
PAGES_FOLDER = "pages"
RESULTS_PACK = PackFormat(
    title="pack of results",
    list_file=METADATA_FILE,
    remedy="nothing was unpacked; get it again, or ask who made it",
    max_files=100_000,
    max_bytes=16 << 30,  # the captures of a thousand loads take a tenth of it
    max_list_bytes=128 << 20,
)


@dataclass(frozen=True, slots=True)
class PackedLane:
    """One results folder of a pack: its place in it, its manifest, and how many trials are ok."""

    folder: str
    manifest: Manifest
    done: int


@dataclass(frozen=True, slots=True)
class PackContents:
    """All that belongs into a pack.

    Attributes:
        lanes: the results folder, or one for each kernel of a run on several.
        files: every file, sorted by its name in the pack.
        pages: the names of the pages whose sources are in it.
        missing: why a page that was loaded, or a command, is not in it, by its name; then there is
            no re-run.
        notes: what else a reader should know, a sentence each.
    """

    lanes: tuple[PackedLane, ...]
    files: tuple[PackFile, ...]
    pages: tuple[str, ...]
    missing: Mapping[str, str]
    notes: tuple[str, ...]


def gather_contents(folder: Path, pages: Path, cache: Path) -> PackContents:
    """Return what belongs into a pack of the results in ``folder``.

    A page is taken from the results themselves, where they came out of a pack, else from ``pages``.
    It is built below ``cache`` to see whether it still is what was loaded; a recipe is not, since
    that takes a browser: a re-run tells.

    Raises:
        ConfigurationError: it is no results folder, or holds what no pack does: every problem.
        StorageError: it cannot be read.
    """
    names = read_lanes(folder) or ("",)
    lanes = tuple(_read_lane(folder / name, name) for name in names)
    loaded = {page: manifest.environment.pages.get(page, "")
              for manifest in (lane.manifest for lane in lanes)
              for page in manifest.experiment.pages}  # fmt: skip
    files = dict(_walk(folder, ""))
    files.pop(METADATA_FILE, None)
    files.pop(PARTIAL_FILE, None)
    packed: dict[str, None] = {}
    notes: list[str] = []
    missing: dict[str, str] = {}
    for page, digest in sorted(loaded.items()):
        try:
            source = _find_source(folder, pages, page)
            for each in list_sources(source):
                packed[each.name] = None
                files |= dict(_walk(each, f"{PAGES_FOLDER}/{each.name}/"))
        except ConfigurationError as error:
            missing[page] = _without_places(error, folder, pages, cache)
            continue
        try:
            notes += _changed(source, digest, cache)
        except ConfigurationError as error:
            why = _without_places(error, folder, pages, cache)
            notes.append(f"Page {page} cannot be built any more: {why}.")
    if any(commands_of(lane.manifest.experiment) for lane in lanes):
        missing["command"] = "it is of your own, and a pack brings none along"
    wanted = tuple(f"{PAGES_FOLDER}/{page}/" for page in packed)
    files = {
        name: path
        for name, path in files.items()
        if not name.startswith(f"{PAGES_FOLDER}/") or name.startswith(wanted)
    }
    _refuse(folder, files)
    notes += [
        f"{lane.done} of {format_count(len(lane.manifest.trials), 'planned trial')} have a result."
        for lane in lanes
        if lane.done < len(lane.manifest.trials)
    ]
    return PackContents(lanes, _digested(files), tuple(packed), missing, tuple(notes))


def _read_lane(folder: Path, name: str) -> PackedLane:
    manifest = load_manifest(folder)
    planned = set(manifest.trials)
    done = {record.trial_id for record in read_records(folder) if record.outcome == "ok"}
    return PackedLane(name, manifest, len(done & planned))


def _find_source(folder: Path, pages: Path, name: str) -> Path:
    """Return where a page's sources are.

    Raises:
        ConfigurationError: nowhere.
    """
    own = folder / PAGES_FOLDER
    root = own if (own / name).is_dir() else pages
    # ``find_page`` would name all the others, which a pack tells nobody.
    if name not in [page.name for page in list_pages(root)]:
        raise ConfigurationError([f"{root}: no page {name!r}"])
    read_kind(root / name)
    return root / name


def _without_places(error: ConfigurationError, folder: Path, pages: Path, cache: Path) -> str:
    """Return what an error says, with the paths in a pack instead of those on this machine."""
    said = "; ".join(error.problems)
    for place in (folder / PAGES_FOLDER, pages):
        said = said.replace(str(place), PAGES_FOLDER)
    return said.replace(str(cache), "cache")


def _changed(source: Path, digest: str, cache: Path) -> list[str]:
    """Return a note if a page is another than what was loaded.

    Raises:
        ConfigurationError: it cannot be built any more.
    """
    if read_kind(source) == "recipe" or read_archive(build_page(source, cache)).digest == digest:
        return []
    return [
        f"Page {source.name} is packed as it is now, which is another than what was loaded: "
        "a re-run will differ in it."
    ]


def _walk(folder: Path, prefix: str) -> Iterator[tuple[str, Path]]:
    """Yield everything below ``folder`` that is no folder, by its name in the pack."""
    try:
        for path in sorted(folder.iterdir()):
            if path.is_dir() and not path.is_symlink():
                yield from _walk(path, f"{prefix}{path.name}/")
            else:
                yield f"{prefix}{path.name}", path
    except OSError as error:
        raise StorageError(f"cannot read {error.filename}: {error.strerror}") from None


def _refuse(folder: Path, files: Mapping[str, Path]) -> None:
    """Refuse what could not be unpacked again.

    Raises:
        ConfigurationError: with every problem.
    """
    problems = [
        f"{path} is a link or no plain file; a pack holds files: remove it, or put a copy there"
        for path in files.values()
        if not stat.S_ISREG(path.lstat().st_mode)
    ]
    problems += [
        f"{path}: its name {wrong}; rename it"
        for name, path in files.items()
        if (wrong := describe_wrong_name(name))
    ]
    size = sum(path.lstat().st_size for path in files.values())
    if len(files) > RESULTS_PACK.max_files or size > RESULTS_PACK.max_bytes:
        problems.append(
            f"{folder}: {len(files)} files of {size} bytes are more than a pack may hold, which is "
            f"{RESULTS_PACK.max_files} files and {format_bytes(RESULTS_PACK.max_bytes)}"
        )
    if problems:
        raise ConfigurationError(first_of(problems))


def _digested(files: Mapping[str, Path]) -> tuple[PackFile, ...]:
    try:
        return tuple(
            PackFile(name, path, path.stat().st_size, file_sha256(path))
            for name, path in sorted(files.items())
        )
    except OSError as error:
        raise StorageError(f"cannot read {error.filename}: {error.strerror}") from None
