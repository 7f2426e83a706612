"""Debian packages of this machine: what the host kernel, recordings and development take of it.

Runs on the virtual kernel need none.  They are installed by apt-get as root or through sudo;
elsewhere, or without that right, a message names them.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from testbed.base import proc
from testbed.base.errors import EXIT_INTERRUPTED, MissingError
from testbed.base.interrupt import SignalInterrupt
from testbed.base.places import ROOT

INSTALLER = ROOT / "bootstrap" / "install-packages.sh"
_ASK_S = 60.0

Progress = Callable[[str], None]


def read_list(file: Path) -> tuple[str, ...]:
    """Return the packages that a file names, one a line, with its reason behind ``#``."""
    lines = (line.partition("#")[0].strip() for line in file.read_text("utf-8").splitlines())
    return tuple(line for line in lines if line)


def ensure_packages(packages: Iterable[str], what_for: str, progress: Progress) -> None:
    """Install those of ``packages`` that are missing; a name may have a least version, ``x >= 1``.

    Raises:
        MissingError: some are missing and cannot be installed; all of them, and the command.
        KeyboardInterrupt: it was interrupted.
    """
    missing = find_missing(packages)
    if not missing:
        return
    names = " ".join(missing)
    remedy = f"as root, run: apt-get update && apt-get install --no-install-recommends {names}"
    as_root = _as_root()
    if as_root is None or shutil.which("apt-get") is None:
        raise MissingError(f"{what_for}: missing Debian packages: {names}; {remedy}")
    progress(f"{what_for}: installing Debian packages: {names}")
    done = proc.run_attached((*as_root, str(INSTALLER), *missing))
    if done.returncode == EXIT_INTERRUPTED:
        raise SignalInterrupt
    still = find_missing(packages)
    if done.returncode != 0 or still:
        raise MissingError(
            f"{what_for}: Debian packages could not be installed: {' '.join(still) or names}; "
            f"what apt-get said is above; {remedy}"
        )


def find_missing(packages: Iterable[str]) -> tuple[str, ...]:
    """Return the names of those of ``packages`` that are absent or too old; all without dpkg."""
    wanted = dict(_parse(package) for package in packages)
    if not wanted:
        return ()
    there: dict[str, str] = {}
    form = "${Package} ${db:Status-Status} ${Version}\n"
    if shutil.which("dpkg-query"):
        argv = ("dpkg-query", "--show", f"--showformat={form}", *wanted)
        for line in proc.run(argv, timeout_s=_ASK_S, check=False).stdout.splitlines():
            name, state, *version = line.split()
            if state == "installed":
                there[name] = " ".join(version)
    if Path("/usr/bin/npm").exists():
        there.setdefault("npm", "")  # NodeSource's nodejs carries it, and conflicts with Debian's
    return tuple(
        name
        for name, least in wanted.items()
        if name not in there or (least and not _is_enough(there[name], least))
    )


def _parse(package: str) -> tuple[str, str]:
    name, _, least = (word.strip() for word in package.partition(">="))
    return name, least


def _is_enough(version: str, least: str) -> bool:
    argv = ("dpkg", "--compare-versions", version, "ge", least)
    return proc.run(argv, timeout_s=_ASK_S, check=False).returncode == 0


def _as_root() -> tuple[str, ...] | None:
    """Return what comes before a command of root's; ``None``: nobody may be root here.

    A password is asked for now: what installs has no terminal.
    """
    if os.geteuid() == 0:
        return ()
    if shutil.which("sudo") is None:
        return None
    if proc.run(("sudo", "-n", "true"), timeout_s=_ASK_S, check=False).returncode == 0:
        return ("sudo", "-n")
    typed = sys.stdin.isatty() and sys.stderr.isatty()
    if typed and proc.run_attached(("sudo", "-v")).returncode == 0:
        return ("sudo", "-n")
    return None
