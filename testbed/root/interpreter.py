"""Programs of a root, run on this machine by the root's own loader and libraries (ld.so(8))."""

from __future__ import annotations

from pathlib import Path

from testbed.base import proc
from testbed.base.errors import StorageError

LOADER = "lib64/ld-linux-x86-64.so.2"
LIBRARIES = "lib/x86_64-linux-gnu"
_COMPILE_S = 300.0


def program_argv(usr: Path, program: str) -> tuple[str, ...]:
    """Return the words that start ``usr``'s ``program``, a path in it, whichever libc is here."""
    return (
        *(str(usr / LOADER), "--inhibit-cache", "--library-path", str(usr / LIBRARIES)),
        str(usr / program),
    )


def nginx_argv(usr: Path) -> tuple[str, ...]:
    """Return the words that start ``usr``'s nginx on this machine; it may be a component's."""
    return program_argv(usr, "sbin/nginx")


def compile_library(usr: Path, seen: str = "/usr") -> None:
    """Compile the Python library of ``usr``, which guests have as ``seen``, as far as it has one.

    Of a component the modules of its packages are compiled as well: each start would do it again.

    Raises:
        StorageError: it cannot be compiled.
    """
    for library in sorted(usr.glob("lib/python3.*" if seen == "/usr" else "lib/python3*")):
        compile_python(usr, library, usr, seen)


def compile_python(usr: Path, folder: Path, strip: Path, prepend: str) -> None:
    """Compile what is in ``folder`` for the Python of ``usr``; its files are not looked at again.

    Its paths are noted with ``prepend`` instead of ``strip``.

    Raises:
        StorageError: it cannot be compiled.
    """
    argv = (*program_argv(usr, "bin/python3"),
            *("-S", "-m", "compileall", "-q", "-q", "--invalidation-mode", "unchecked-hash"),
            *("-s", str(strip), "-p", prepend, str(folder)))  # fmt: skip
    # The same bytes each time: sets are written in the order of their hashes, and what the compiler
    # itself imports is not written by that import, with this folder's path and time in it.
    environment = {"PYTHONHOME": str(usr), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    done = proc.run(argv, timeout_s=_COMPILE_S, check=False, env=environment)
    if done.returncode not in (0, 1):  # 1: some file of it is none of this Python's
        raise StorageError(f"cannot compile {folder}: {done.stderr.strip()[-500:]}")
