"""Python packages of the program: what a lock file names by hashes, installed once in the cache.

The environment (venv) is of the locked Python, and pip is that Python's own, so that they are the
same on each machine.  Standard library only, and so is all that it imports.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from testbed.base import proc
from testbed.base.errors import MissingError, caching
from testbed.base.locks import locked
from testbed.base.places import ROOT

LOCKS = ROOT / "bootstrap"
RUN = "requirements"
"""The lock file of the packages that a run takes."""
MANY = "requirements-many"
"""The same and more, for a run whose loads or whose store of results are on other machines."""
VENVS = "venv"
"""The folder of environments in the cache."""
_FORMAT = 3
"""Raise it when environments are to be made anew although no lock has changed."""
_WHOLE = ".whole"
_INSTALL_S = 1800.0
_LOG = "venv.log"
_PIP = """\
import runpy, sys
wheel, authorities = sys.argv[1:3]
del sys.argv[1:3]
sys.path.insert(0, wheel)
import pip._vendor.certifi as certifi
certifi.where = certifi.core.where = lambda: authorities
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
"""Debian's pip reads a file of authorities as it begins, which few other systems have."""
# Where distributions keep what servers are verified by; ours is for a machine that has none.
_AUTHORITIES = (
    *("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"),
    *("/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"),
)

Progress = Callable[[str], None]


def find_packages(lock: str, cache: Path) -> Path | None:
    """Return the environment of the lock file named ``lock``; ``None``: it is not there."""
    folder = packages_place(lock, cache)
    return folder if (folder / _WHOLE).is_file() else None


def ensure_packages(lock: str, cache: Path, progress: Progress) -> Path:
    """Return the environment of the lock file named ``lock``, made below ``cache`` if need be.

    Raises:
        MissingError: packages cannot be had.
        StorageError: the cache cannot be written.
    """
    found = find_packages(lock, cache)
    if found is not None:
        return found
    folder = packages_place(lock, cache)
    waiting = "waiting for another run's Python packages"
    with caching(f"write {folder}"), locked(folder.parent / "lock", waiting, progress):
        if not (folder / _WHOLE).is_file():
            _make(lock, folder, cache / "logs", progress)
    return folder


def packages_place(lock: str, cache: Path) -> Path:
    """Return where the environment of the lock file named ``lock`` is, or will be."""
    made_of = f"{_FORMAT}\n{interpreter()}\n{(LOCKS / f'{lock}.txt').read_text('utf-8')}"
    return cache / VENVS / hashlib.sha256(made_of.encode()).hexdigest()[:16]


def adopt_packages(folder: Path) -> None:
    """Make an environment of this machine's Python of ``folder``, which has the packages' ``lib``.

    Raises:
        TestbedError: it cannot be made.
        OSError: it cannot be written.
    """
    _make_bare(folder)
    (folder / _WHOLE).touch()


def interpreter() -> str:
    """Return the path of the locked Python, which is no environment's."""
    base: str = sys._base_executable  # type: ignore[attr-defined]
    return base


def _make(lock: str, folder: Path, logs: Path, progress: Progress) -> None:
    """Make the environment where it stays: its scripts name the folder that they are in."""
    started_s = time.monotonic()
    progress("Python packages: installing, usually half a minute")
    shutil.rmtree(folder, ignore_errors=True)  # left by a run that was killed
    logs.mkdir(parents=True, exist_ok=True)
    try:
        _install(lock, folder, logs / _LOG)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    (folder / _WHOLE).touch()
    progress(f"Python packages: ready in {time.monotonic() - started_s:.0f} s")


def _install(lock: str, folder: Path, log: Path) -> None:
    _make_bare(folder)
    (wheel,) = (Path(sys.base_prefix) / "share" / "python-wheels").glob("pip-*.whl")
    # Hashes for every file, wheels only: nothing but what was locked gets in, no build script runs.
    argv = (
        *(str(folder / "bin" / "python"), "-I", "-c", _PIP, str(wheel), find_authorities()),
        *("--disable-pip-version-check", "--no-input", "install", "--require-hashes", "--no-deps"),
        *("--only-binary", ":all:", "-r", str(LOCKS / f"{lock}.txt")),
    )
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
    }
    done = proc.run(argv, env=environment, timeout_s=_INSTALL_S, check=False)
    log.write_text(done.stdout + done.stderr, "utf-8")
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        remedy = "; let PIP_CERT name the file of your network's authority" * (
            "CERTIFICATE_VERIFY_FAILED" in tail
        )
        raise MissingError(
            f"the Python packages could not be installed; all of it is in {log}\n{tail}{remedy}"
        )


def _make_bare(folder: Path) -> None:
    argv = (interpreter(), "-I", "-m", "venv", "--without-pip", str(folder))
    proc.run(argv, timeout_s=_INSTALL_S)


def find_authorities() -> str:
    """Return the file of authorities by which servers are verified, whatever the distribution."""
    there = (path for path in _AUTHORITIES if Path(path).is_file())
    return next(there, str(Path(sys.base_prefix) / "share" / "ca-certificates" / "all.crt"))
