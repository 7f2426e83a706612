"""Driver of the browser that records: node and Puppeteer, set up by the first recording.

No load runs node, and Debian's npm brings hundreds of packages: a machine that never records is
spared both.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from testbed.base import log, places, proc
from testbed.base.checksums import damaged_files, file_sha256, write_checksums
from testbed.base.errors import MissingError, StorageError
from testbed.base.heartbeat import repeating
from testbed.base.locks import locked
from testbed.client.program import Program
from testbed.setup.doctor import MachineCheck, find_tool
from testbed.setup.machine_packages import ensure_packages
from testbed.setup.programs import package_names

RECORDING = (
    Program("chromium-headless-shell", packages="chromium-headless-shell, fonts-dejavu-core"),
    Program("node", packages="nodejs >= 18, npm"),
)
"""What a recording runs: the browser, and Puppeteer, which npm installs from its lock file."""
SOURCES = Path(__file__).parent / "puppeteer"
_BUILD_S = 600.0
_log = log.logger(__name__)


def set_up_recording() -> Path:
    """Have node, npm and the browser driver on this machine; return the driver's folder.

    It may take minutes and ask for a password on the terminal, so it comes before anything that
    draws there or waits.

    Raises:
        MissingError: a package is missing and may not be installed, or the driver cannot be built.
        StorageError: the cache cannot be written.
        KeyboardInterrupt: it was interrupted.
    """
    found = find_driver()
    if found is not None:
        return found
    folder = _place()
    with repeating(_log.info) as progress:
        packages = [name for each in RECORDING for name in package_names(each)]
        ensure_packages(packages, "recording", progress)
        try:
            with locked(folder.parent / "lock", "waiting for another run's driver", progress):
                if find_driver() is None:
                    progress("browser driver: building, about 20 s")
                    _build(folder)
        except OSError as error:
            raise StorageError(f"cannot write {folder}: {error}") from error
    return folder


def find_driver() -> Path | None:
    """Return the driver's folder, and set nothing up; ``None``: it is not there, or damaged."""
    folder = _place()
    return folder if folder.is_dir() and not damaged_files(folder) else None


def check_machine() -> Iterator[MachineCheck]:
    """Check what only recordings need."""
    remedy = "nothing to do: the first recording (`pages record`, a recipe) sets it up"
    locations = {f"tool {program.name}": find_tool(program.name) for program in RECORDING}
    driver = find_driver()
    locations["part js"] = str(driver) if driver else None
    for name, where in locations.items():
        yield MachineCheck(name, where is not None, where or "not there", remedy, needed=False)


def _place() -> Path:
    lines = (f"{file.name} {file_sha256(file)}\n" for file in _sources())
    return places.cache() / "js" / hashlib.sha256("".join(lines).encode()).hexdigest()[:16]


def _sources() -> list[Path]:
    # Not what npm may have made there: names of folders have no dot.
    return sorted(SOURCES.glob("*.*"))


def _build(folder: Path) -> None:
    work = folder.with_name(f".{folder.name}")
    shutil.rmtree(work, ignore_errors=True)  # left by a run that was killed
    try:
        work.mkdir(parents=True)
        for file in _sources():
            shutil.copy(file, work)
        # `ci` installs what the lock names, checked by its hashes; no package runs a script.
        quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier")
        for argv in (("npm", "ci", *quiet), ("npm", "run", "build")):
            done = proc.run(argv, cwd=work, timeout_s=_BUILD_S, check=False)
            if done.returncode != 0:
                said = (done.stdout + done.stderr).strip()[-2000:]
                raise MissingError(f"the browser driver cannot be built:\n{said}")
        write_checksums(work)
        shutil.rmtree(folder, ignore_errors=True)  # one that was damaged
        work.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
