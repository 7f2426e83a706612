"""Where the browser is, and whether the browser can have its own sandbox here."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from testbed.base.errors import MissingError

BROWSER_VARIABLE = "FIRSTFLIGHT_BROWSER"
# The binary itself before the script that starts it: the script costs a shell.
KNOWN_PATHS = (
    Path("/usr/lib/chromium/chromium-headless-shell"),
    Path("/usr/bin/chromium-headless-shell"),
)
KNOWN_NAMES = ("chromium-headless-shell", "chrome-headless-shell")
CPUINFO = Path("/proc/cpuinfo")
USER_MODE_LINUX = "User Mode Linux"
USER_NAMESPACES = Path("/proc/sys/user/max_user_namespaces")
# Debian's and Ubuntu's own switches; a kernel without them has nothing to forbid.
FORBIDDING = (
    (Path("/proc/sys/kernel/unprivileged_userns_clone"), "0"),
    (Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"), "1"),
)


def find_browser() -> Path:
    """The headless browser's binary: the one the environment names, else an installed one.

    Raises:
        MissingError: there is none, or the named one does not exist.
    """
    configured = os.environ.get(BROWSER_VARIABLE)
    if configured:
        if os.access(configured, os.X_OK):
            return Path(configured)
        raise MissingError(f"{BROWSER_VARIABLE}={configured}: no such program")
    for path in KNOWN_PATHS:
        if os.access(path, os.X_OK):
            return path
    for name in KNOWN_NAMES:
        program = shutil.which(name)
        if program:
            return Path(program)
    raise MissingError(
        "no headless Chromium: install chromium-headless-shell (Debian), or let "
        f"{BROWSER_VARIABLE} name a chrome-headless-shell"
    )


def filters_calls(cpuinfo: Path = CPUINFO) -> bool:
    """Whether the browser's system call filter can work: User-Mode Linux loses its SIGSYS traps."""
    return USER_MODE_LINUX not in cpuinfo.read_text("ascii")


def sandbox_obstacle(user: int) -> str | None:
    """Why Chromium run by ``user`` cannot have its own sandbox here; ``None`` when it can."""
    if user == 0:
        return "Chromium refuses its sandbox to root"
    if not USER_NAMESPACES.exists() or _read(USER_NAMESPACES) == "0":
        return "this kernel gives no user namespaces"
    for path, forbidden in FORBIDDING:
        if path.exists() and _read(path) == forbidden:
            return f"{path} is {forbidden}: users may not make user namespaces"
    return None


def _read(path: Path) -> str:
    return path.read_text("ascii").strip()
