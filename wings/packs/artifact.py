"""Artifact: results with all that made them, in one root pack.

Beside the parts of a root pack it holds the pack of results and ``source.tar.gz``, the work tree at
the revision that the results name, so that in some years the code is there as well.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace as replace_fields
from pathlib import Path
from tempfile import TemporaryDirectory

from testbed.base import places, proc
from testbed.base.checksums import file_sha256
from testbed.base.errors import ConfigurationError, StorageError, TestbedError
from testbed.base.whole_file import refuse_existing
from testbed.kernel.build.cache import BINARY_FILE
from testbed.model import in_real_time
from testbed.results.manifest import Manifest
from testbed.setup.parts import CachePart, find_starter, gather_parts
from testbed.setup.root_pack import (
    RESULTS_MEMBER,
    SOURCE_MEMBER,
    Progress,
    is_pack,
    read_pack,
    write_pack,
)
from wings.packs.contents import PackedLane
from wings.packs.packing import WrittenPack, pack_results

_GIT_S = 120.0


def pack_artifact(
    folder: Path, file: Path, cache: Path, progress: Progress, *, license_: str | None = None,
    replace: bool = False,
) -> WrittenPack:  # fmt: skip
    """Write the results in ``folder`` to ``file``, with all that it takes to repeat them.

    Raises:
        ConfigurationError: the results ran on the machine's kernel, in another root or on
            another kernel than are here, or at a revision that is not; every problem.
        As ``pack_results`` and ``write_pack``.
    """
    refuse_existing(file, replace=replace)
    with TemporaryDirectory(prefix=f".{file.name}-", dir=file.absolute().parent) as scratch:
        results, source = Path(scratch) / RESULTS_MEMBER, Path(scratch) / SOURCE_MEMBER
        written = pack_results(folder, results, places.PAGES, cache, license_=license_)
        lanes = written.contents.lanes
        _refuse_machine(folder, lanes)
        experiments = [lane.manifest.experiment for lane in lanes]
        versions = tuple(dict.fromkeys(each.kernel_version for each in experiments))
        roots = tuple(dict.fromkeys(each.root for each in experiments))
        parts = gather_parts(roots, versions, cache, progress)
        facts = lanes[0].manifest.environment.facts
        revision = facts.get("git_revision", "unknown")
        problems = [*_list_moved(lanes, parts), *_list_changed(revision, parts)]
        if problems:
            raise ConfigurationError([f"{folder}: {problem}" for problem in problems])
        _archive(revision, source)
        sha256 = write_pack(*(file, parts, progress), packages=find_starter(cache, progress),
                            beside={RESULTS_MEMBER: results, SOURCE_MEMBER: source},
                            replace=replace)  # fmt: skip
    notes = written.contents.notes
    if facts.get("git_dirty") != "no":
        notes += ("They ran in a work tree with changes that its source, a commit, has not.",)
    return WrittenPack(replace_fields(written.contents, notes=notes), sha256)


@contextmanager
def results_in(file: Path) -> Iterator[Path]:
    """Yield the pack of results that is ``file``, or that is in the artifact ``file``.

    Raises:
        ConfigurationError: it is a pack of a root without results, or damaged.
        StorageError: there is no room to take it out.
    """
    if not is_pack(file):
        yield file
        return
    pack = read_pack(file)
    if RESULTS_MEMBER not in pack.members:
        raise ConfigurationError(
            [f"{file}: holds a root and no results; ./run.sh import {file} imports it"]
        )
    with TemporaryDirectory(prefix="firstflight-") as scratch:
        results = Path(scratch) / RESULTS_MEMBER
        try:
            with pack.open(RESULTS_MEMBER) as content, results.open("wb") as target:
                shutil.copyfileobj(content, target, 1 << 20)
        except OSError as error:
            raise StorageError(
                f"cannot take the results out of {file}: {error.strerror}; free space in {scratch}"
            ) from None
        yield results


def roots_of(manifests: Sequence[Manifest]) -> dict[str, str]:
    """Return the digest of each root that results ran in, by its name."""
    return {
        each.experiment.root: each.environment.parts["root"]
        for each in manifests
        if "root" in each.environment.parts
    }


def _refuse_machine(folder: Path, lanes: Sequence[PackedLane]) -> None:
    experiments = [lane.manifest.experiment for lane in lanes]
    if any(in_real_time(each.kernel) for each in experiments):
        raise ConfigurationError(
            [f"{folder}: its trials ran on this machine's kernel, which no file can carry; pack "
             "without --with-root"]
        )  # fmt: skip


def _list_moved(lanes: Sequence[PackedLane], parts: dict[CachePart, Path]) -> Iterator[str]:
    """Yield each part that is another now than when the results were made."""
    for lane in lanes:
        ran, experiment = lane.manifest.environment.parts, lane.manifest.experiment
        for part, place in parts.items():
            if part.kind == "root" and part.variant == experiment.root:
                here, then = part.digest(place), ran.get("root")
            elif part.kind == "kernel" and part.variant == experiment.kernel_version:
                here, then = file_sha256(place / BINARY_FILE), ran.get("kernel.binary_sha256")
            else:
                continue
            if here != then:
                yield (f"ran with another {part.title} ({then or 'none'}) than is here ({here}); "
                       "pack them in the tree that they ran in")  # fmt: skip


def _list_changed(revision: str, parts: dict[CachePart, Path]) -> Iterator[str]:
    """Yield why the parts are not those of a revision of the work tree."""
    sources = sorted({name for part in parts for name in part.list_sources()})
    try:
        changed = _git("diff", "--name-only", revision, "--", *sources).split()
    except TestbedError:
        yield (f"ran at the revision {revision}, which this tree's git does not know; pack them "
               "in the tree that they ran in")  # fmt: skip
        return
    if changed:
        yield (f"ran at the revision {revision[:12]}, and {', '.join(changed)} changed since; "
               f"git checkout {revision[:12]}, then pack")  # fmt: skip


def _archive(revision: str, target: Path) -> None:
    """Write the work tree of a revision; equal revisions give equal bytes."""
    plain = target.with_suffix("")
    prefix = f"--prefix=firstflight-{revision[:12]}/"
    _git("-c", "tar.umask=0022", "archive", "--format=tar", prefix, "-o", str(plain), revision)
    with (
        plain.open("rb") as content,
        target.open("wb") as stream,
        gzip.GzipFile("", "wb", 9, stream, mtime=0) as packed,
    ):
        shutil.copyfileobj(content, packed, 1 << 20)


def _git(*words: str) -> str:
    return proc.run(("git", "-C", str(places.ROOT), *words), timeout_s=_GIT_S).stdout
