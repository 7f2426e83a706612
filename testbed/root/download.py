"""Download of a root's packages: from Debian's archives, several at once, resumed where cut off.

What comes is used only if its SHA-256 is the lock's, so that any server will do: the mirror that
this machine's apt or debootstrap names, or an archive of old versions with the layout of Debian's
snapshot service.
"""

from __future__ import annotations

import http.client
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from testbed.base.checksums import file_sha256
from testbed.base.debian import MIRROR_VARIABLE, debian_archives
from testbed.base.errors import MissingError
from testbed.base.units import format_bytes, format_duration
from testbed.root.lock import ARCHIVES, Lock, LockedPackage

SNAPSHOT_VARIABLE = "FIRSTFLIGHT_DEBIAN_ARCHIVE"
"""Address of an archive of old versions."""
_AT_ONCE = 6
_ATTEMPTS = 4
_STALL_S = 20.0
_PIECE_BYTES = 1 << 18
_PAUSE_S = 0.5

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PackageServer:
    """A server of packages: its name for people, and the address of each archive."""

    name: str
    addresses: dict[str, str]

    def address_of(self, package: LockedPackage) -> str | None:
        """Return where it has ``package``, if it has it; ``None``: not this archive."""
        address = self.addresses.get(package.archive)
        return address and f"{address}/{package.path}"


@dataclass(slots=True)
class _Pace:
    """How much has come, of how much, since when; ``stopped`` ends what still comes."""

    total: int
    started_s: float = field(default_factory=time.monotonic)
    done: int = 0
    stopped: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, count: int) -> None:
        with self.lock:
            self.done += count

    def describe(self) -> str:
        rate = self.done / max(time.monotonic() - self.started_s, 0.001)
        left = f", {format_duration((self.total - self.done) / rate)} left" if rate else ""
        return (
            f"packages: {format_bytes(self.done)} of {format_bytes(self.total)}, "
            f"{format_bytes(int(rate))}/s{left}"
        )


def list_sources(taken: str) -> tuple[PackageServer, ...]:
    """Return the servers to ask in turn for packages of the state of ``taken``."""
    sources = [PackageServer("the mirror", mirrors)] if (mirrors := debian_archives()) else []
    if snapshots := os.environ.get(SNAPSHOT_VARIABLE, "").rstrip("/"):
        addresses = {name: f"{snapshots}/archive/{name}/{taken}" for name in ARCHIVES}
        sources.append(PackageServer("the archive of old versions", addresses))
    return tuple(sources)


def package_file(folder: Path, package: LockedPackage) -> Path:
    """Return where the file of ``package`` is kept in ``folder``."""
    return folder / f"{package.sha256}.deb"


def list_absent(lock: Lock, folder: Path) -> list[LockedPackage]:
    """Return the packages of ``lock`` that ``folder`` does not have, or not as it says."""
    return [package for package in lock.packages if not _is_there(package, folder)]


def _is_there(package: LockedPackage, folder: Path) -> bool:
    file = package_file(folder, package)
    return _size(file) == package.size and file_sha256(file) == package.sha256


def download(
    lock: Lock, folder: Path, sources: Sequence[PackageServer], progress: Progress
) -> None:
    """Download the packages of ``lock`` that ``folder`` lacks, each from the first that has it.

    Raises:
        MissingError: some are nowhere to be had; all of them, with what each source said.
        OSError: the folder cannot be written.
    """
    absent = list_absent(lock, folder)
    if not absent:
        return
    folder.mkdir(parents=True, exist_ok=True)
    total = sum(package.size for package in absent)
    progress(f"downloading {len(absent)} packages, {format_bytes(total)}")
    pace, problems = _Pace(total), []
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="download") as workers:
        told_s = time.monotonic()
        # The largest first: they end last.
        by_size = sorted(absent, key=lambda package: -package.size)
        waiting = {workers.submit(_fetch, package, folder, sources, pace): package
                   for package in by_size}  # fmt: skip
        try:
            while waiting:
                time.sleep(0.05)
                for future in [future for future in waiting if future.done()]:
                    package = waiting.pop(future)
                    if said := future.result():
                        problems.append(f"{package.describe()}: {'; '.join(said)}")
                if time.monotonic() - told_s >= 3:
                    told_s = time.monotonic()
                    progress(pace.describe())
        except BaseException:
            pace.stopped = True
            workers.shutdown(wait=False, cancel_futures=True)
            raise
    if problems:
        raise MissingError("\n".join(sorted(problems)))


def _fetch(
    package: LockedPackage, folder: Path, sources: Sequence[PackageServer], pace: _Pace
) -> list[str]:
    """Download one package; return what each source said, if none has it."""
    said = []
    for source in sources:
        address = source.address_of(package)
        if address is None:
            continue
        problem = _fetch_from(address, package, folder, pace)
        if problem is None:
            return []
        said.append(f"{source.name}: {problem}")
    return said or [f"no source is known: set {MIRROR_VARIABLE} to the address of a mirror"]


def _fetch_from(address: str, package: LockedPackage, folder: Path, pace: _Pace) -> str | None:
    """Download from one address; return why it cannot be had there."""
    partial = package_file(folder, package).with_suffix(".part")
    problem = "nothing came"
    for attempt in range(_ATTEMPTS):
        if pace.stopped:
            return problem  # what came so far is kept for the next time
        if attempt:
            time.sleep(_PAUSE_S * 2**attempt)
        try:
            _receive(address, package.size, partial, pace)
        except urllib.error.HTTPError as error:
            problem = f"{error.code} {error.reason}"
            if error.code < 500 and error.code not in (408, 416, 429):
                break
        except (
            http.client.HTTPException,
            urllib.error.URLError,
            TimeoutError,
            ConnectionError,
        ) as error:
            problem = str(getattr(error, "reason", error)) or type(error).__name__
            continue
        except ValueError as error:  # no address
            problem = str(error)
            break
        else:
            if (sha256 := file_sha256(partial)) == package.sha256:
                partial.replace(package_file(folder, package))
                return None
            problem = f"what came has SHA-256 {sha256}, not {package.sha256}: it is not used"
        pace.add(-_size(partial))
        partial.unlink(missing_ok=True)
    partial.unlink(missing_ok=True)
    return problem


def _receive(address: str, size: int, partial: Path, pace: _Pace) -> None:
    """Append what is missing of a file to ``partial``."""
    have = _size(partial)
    headers = {"Range": f"bytes={have}-"} if have else {}
    # Any address will do, a file's as well: what comes is held against the lock's SHA-256.
    request = urllib.request.Request(address, headers=headers)  # noqa: S310
    with urllib.request.urlopen(request, timeout=_STALL_S) as response:  # noqa: S310
        if have and response.status != 206:
            pace.add(-have)
            have = 0
        with partial.open("ab" if have else "wb") as file:
            while piece := response.read(min(_PIECE_BYTES, size - have + 1)):
                file.write(piece)
                pace.add(len(piece))
                have += len(piece)
                if have > size or pace.stopped:
                    break
    if have < size:
        raise ConnectionError(f"cut off after {have} of {size} bytes")


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
