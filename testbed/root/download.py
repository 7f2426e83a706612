"""Download of packages: from Debian's archives, several at once, resumed where cut off.

What comes is used only if its SHA-256 is the lock's, so that any server will do: the mirror that
this machine's apt or debootstrap names, or an archive of old versions with the layout of Debian's
snapshot service.  Standard library only: there is no Python environment yet.
"""

from __future__ import annotations

import http.client
import os
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

from testbed.base.checksums import file_sha256
from testbed.base.debian import ARCHIVES, MIRROR_VARIABLE, debian_archives
from testbed.base.errors import MissingError
from testbed.base.units import format_bytes, format_duration
from testbed.root.lock import LockedPackage

SNAPSHOT_VARIABLE = "FIRSTFLIGHT_DEBIAN_ARCHIVE"
"""Address of an archive of old versions."""
_AT_ONCE = 6
_ATTEMPTS = 4
_STALL_S = 20.0
_PIECE_BYTES = 1 << 18
_PAUSE_S = 0.5
_TELL_S = 3.0
_LEAVE_S = 0.5
_GONE = (403, 404, 410)  # 403: stores of objects say it of what they do not have
_TRY_AGAIN = (408, 416, 429)

Progress = Callable[[str], None]


class GoneError(MissingError):
    """Servers answered, and none has some of the packages; the message is as ``download`` says."""

    def __init__(self, packages: Sequence[LockedPackage], message: str) -> None:
        self.packages = tuple(packages)
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class PackageServer:
    """A server of packages: its name for people, and the address of each archive."""

    name: str
    addresses: dict[str, str]

    def address_of(self, package: LockedPackage) -> str | None:
        """Return where it has ``package``, if it has it; ``None``: not this archive."""
        address = self.addresses.get(package.archive)
        return address and f"{address}/{package.path}"

    def describe(self) -> str:
        """Return its name and addresses."""
        return f"{self.name} ({', '.join(sorted(self.addresses.values()))})"


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a package did not come from a server.

    ``gone``: the server answered, and does not have it.  ``silent``: nothing came of it at all.
    """

    words: str
    gone: bool = False
    silent: bool = False


_Refusals = dict[str, _Refusal]
"""What each server said of a package, by the server's name."""


@dataclass(slots=True)
class _Pace:
    """How much has come, of how much, since when; and what ends that for all.

    Attributes:
        stopped: set, nothing more is asked for.
        silent: servers that do not answer, by name: they are not waited for again.
    """

    total: int
    started_s: float = field(default_factory=time.monotonic)
    done: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)
    silent: dict[str, _Refusal] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, count: int) -> None:
        with self.lock:
            self.done += count

    def describe(self) -> str:
        rate = self.done / max(time.monotonic() - self.started_s, 0.001)
        left_s = max(self.total - self.done, 0) / rate if rate > 0 else None
        left = "" if left_s is None else f", {format_duration(left_s)} left"
        return (
            f"packages: {format_bytes(max(self.done, 0))} of {format_bytes(self.total)}, "
            f"{format_bytes(int(max(rate, 0)))}/s{left}"
        )


def list_sources(taken: str | None = None) -> tuple[PackageServer, ...]:
    """Return the servers to ask in turn for packages of the state of ``taken``, or of now."""
    sources = [PackageServer("the mirror", mirrors)] if (mirrors := debian_archives()) else []
    snapshots = os.environ.get(SNAPSHOT_VARIABLE, "").rstrip("/")
    if taken and snapshots:
        addresses = {name: f"{snapshots}/archive/{name}/{taken}" for name in ARCHIVES}
        sources.append(PackageServer("the archive of old versions", addresses))
    return tuple(sources)


def package_file(folder: Path, package: LockedPackage) -> Path:
    """Return where the file of ``package`` is kept in ``folder``."""
    return folder / f"{package.sha256}.deb"


def _is_there(package: LockedPackage, folder: Path) -> bool:
    file = package_file(folder, package)
    return _size(file) == package.size and file_sha256(file) == package.sha256


def download(
    packages: Sequence[LockedPackage], folder: Path, sources: Sequence[PackageServer],
    progress: Progress,
) -> None:  # fmt: skip
    """Download those of ``packages`` that ``folder`` lacks, each from the first that has it.

    What came before an error or an interrupt is kept, and not asked for again.

    Raises:
        GoneError: no source has some of them, and each has answered; all of them, with what each
            said.
        MissingError: some did not come for another reason; likewise.
        OSError: the folder cannot be written.
    """
    absent = [package for package in packages if not _is_there(package, folder)]
    if not absent:
        return
    folder.mkdir(parents=True, exist_ok=True)
    total = sum(package.size - _size(_partial(folder, package)) for package in absent)
    named = absent[0].describe() if len(absent) == 1 else f"{len(absent)} packages"
    progress(f"downloading {named}, {format_bytes(total)}")
    refused = _fetch_all(absent, folder, sources, _Pace(total), progress)
    if not refused:
        return
    message = _describe(refused, sources)
    if all(said and all(one.gone for one in said.values()) for said in refused.values()):
        raise GoneError(sorted(refused), message)
    raise MissingError(f"{message}; what came is kept: try again" if sources else message)


def _describe(refused: Mapping[LockedPackage, _Refusals], sources: Sequence[PackageServer]) -> str:
    """Return a line for each package that did not come, and one of who was asked.

    Those of which servers that do not answer say the same are counted.
    """
    alike: dict[tuple[str, bool], list[str]] = {}
    for package, refusals in sorted(refused.items()):
        words = "; ".join(f"{name}: {one.words}" for name, one in refusals.items()) or "no source"
        down = any(one.silent for one in refusals.values())
        alike.setdefault((words, down), []).append(package.describe())
    lines = []
    for (words, down), named in alike.items():
        if down and len(named) > 3:
            named = [f"{named[0]} and {len(named) - 1} others"]
        lines += [f"{name}: {words}" for name in named]
    if not sources:
        return "\n".join([*lines, f"set {MIRROR_VARIABLE} to the address of a mirror of Debian's"])
    asked = "; ".join(source.describe() for source in sources)
    return "\n".join([*sorted(lines), f"asked: {asked}"])


def _fetch_all(
    absent: Sequence[LockedPackage], folder: Path, sources: Sequence[PackageServer], pace: _Pace,
    progress: Progress,
) -> dict[LockedPackage, _Refusals]:  # fmt: skip
    """Download packages side by side; return what each source said of those that did not come."""
    todo = deque(sorted(absent, key=lambda package: -package.size))  # the largest end last
    ended: SimpleQueue[tuple[LockedPackage, _Refusals | BaseException | None]] = SimpleQueue()

    def work() -> None:
        while todo and not pace.stopped.is_set():
            try:
                package = todo.popleft()
            except IndexError:  # another was faster
                return
            try:
                ended.put((package, _fetch(package, folder, sources, pace)))
            except BaseException as error:
                ended.put((package, error))

    # An interrupt does not wait for a server that stalls: these threads end with the process.
    workers = [threading.Thread(target=work, daemon=True) for _ in absent[:_AT_ONCE]]
    refused: dict[LockedPackage, _Refusals] = {}
    told_s = time.monotonic()
    try:
        for worker in workers:
            worker.start()
        left = len(absent)
        while left:
            try:
                package, outcome = ended.get(timeout=_TELL_S)
            except Empty:
                pass
            else:
                left -= 1
                if isinstance(outcome, BaseException):
                    raise outcome
                if outcome is not None:
                    refused[package] = outcome
            if time.monotonic() - told_s >= _TELL_S:
                told_s = time.monotonic()
                progress(pace.describe())
    finally:
        pace.stopped.set()
        deadline = time.monotonic() + _LEAVE_S
        for worker in workers:
            worker.join(max(deadline - time.monotonic(), 0))
    return refused


def _fetch(
    package: LockedPackage, folder: Path, sources: Sequence[PackageServer], pace: _Pace
) -> _Refusals | None:
    """Download one package; return what each source said, if none has it."""
    refusals: _Refusals = {}
    for source in sources:
        address = source.address_of(package)
        if address is None:
            continue
        refusal = pace.silent.get(source.name) or _fetch_from(address, package, folder, pace)
        if refusal is None:
            return None
        if refusal.silent:
            pace.silent[source.name] = refusal
        refusals[source.name] = refusal
    return refusals


def _fetch_from(address: str, package: LockedPackage, folder: Path, pace: _Pace) -> _Refusal | None:
    """Download from one address; return why it cannot be had there."""
    partial = _partial(folder, package)
    refusal = _Refusal("interrupted")
    left, most = _ATTEMPTS, _size(partial)
    while not pace.stopped.is_set():  # what came so far is kept for the next time
        had = _size(partial)
        try:
            _receive(address, package.size, partial, pace)
        except urllib.error.HTTPError as error:
            refusal = _Refusal(f"{error.code} {error.reason}", gone=error.code in _GONE)
            if error.code < 500 and error.code not in _TRY_AGAIN:
                return refusal
            if error.code == 416:  # what is there is no beginning of it
                _discard(partial, pace)
        except (http.client.HTTPException, urllib.error.URLError, ConnectionError) as error:
            words = str(getattr(error, "reason", error)) or type(error).__name__
            refusal = _Refusal(words, silent=not _size(partial))
        except ValueError as error:  # no address
            return _Refusal(str(error))
        else:
            if pace.stopped.is_set():
                break
            if (sha256 := file_sha256(partial)) == package.sha256:
                partial.replace(package_file(folder, package))
                return None
            words = f"what came has SHA-256 {sha256}, not {package.sha256}: it is not used"
            if _size(partial) > package.size:
                words = f"more came than the {package.size} bytes of it: they are not used"
            refusal = _Refusal(words, gone=True)
            _discard(partial, pace)
            if not had:
                return refusal
        if _size(partial) > most + package.size // 50:  # it goes on, however often it is cut off
            left, most = _ATTEMPTS, _size(partial)
        left -= 1
        if not left:
            return refusal
        pace.stopped.wait(_PAUSE_S * 2 ** (_ATTEMPTS - left))
    return refusal


def _receive(address: str, size: int, partial: Path, pace: _Pace) -> None:
    """Append what is missing of a file to ``partial``.

    Raises:
        HTTPError, HTTPException, URLError, ConnectionError: the server did not send all of it.
        ValueError: ``address`` is none.
        OSError: the file cannot be written.
    """
    have = _size(partial)
    headers = {"Range": f"bytes={have}-"} if have else {}
    # Any address will do, a file's as well: what comes is held against the lock's SHA-256.
    request = urllib.request.Request(address, headers=headers)  # noqa: S310
    with _of_network():
        response = urllib.request.urlopen(request, timeout=_STALL_S)  # noqa: S310
    with response:
        if have and response.status != 206:
            pace.add(-have)
            have = 0
        with partial.open("ab" if have else "wb") as file:
            while have <= size and not pace.stopped.is_set():
                with _of_network():
                    piece = response.read1(min(_PIECE_BYTES, size - have + 1))
                if not piece:
                    break
                file.write(piece)
                pace.add(len(piece))
                have += len(piece)
    if have < size:
        raise ConnectionError(f"cut off after {have} of {size} bytes")


@contextmanager
def _of_network() -> Iterator[None]:
    """Make what the network says within the block a ConnectionError: files say OSError, too."""
    try:
        yield
    except (urllib.error.URLError, ConnectionError):
        raise
    except OSError as error:  # a time-out, or of TLS
        raise ConnectionError(str(error) or type(error).__name__) from error


def _partial(folder: Path, package: LockedPackage) -> Path:
    return package_file(folder, package).with_suffix(".part")


def _discard(partial: Path, pace: _Pace) -> None:
    pace.add(-_size(partial))
    partial.unlink(missing_ok=True)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
