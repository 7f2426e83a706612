"""Kernel compilation: from a patched source to a User-Mode Linux binary, always the same one.

Follows Documentation/kbuild/reproducible-builds.rst: no time, user or path enters the binary.
All that runs is the toolchain's, and what is compiled for the build itself is linked statically.
The headers that nearly every file includes are compiled once (``gcc.sh``).
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from testbed.base import proc
from testbed.base.errors import EXIT_MISSING, MissingError, TestbedError
from testbed.kernel.build.symbols import SYMBOLS_FILE, list_functions
from testbed.kernel.build.toolchain import Toolchain

RECIPE = "3"  # raise when the steps below change the binary

_COMPILE_S = 3600.0
CORE_S = 240.0
"""About how long it takes on one core."""
_COMPILER = Path(__file__).with_name("gcc.sh")
_HEADERS = Path(__file__).with_name("headers.h")
# Where they are in a tree, as make calls it: the path of a clone would be in what it compares.
_PRECOMPILED = ".precompiled"
_GCC = f"bash {_PRECOMPILED}/gcc"
_MAKE = ("ARCH=um", f"CC={_GCC}", f"HOSTCC={_GCC}", "HOSTLDFLAGS=-static", "SHELL=sh")
_POLL_S = 0.5
_TAIL_LINES = 25
_ENVIRONMENT = {"KBUILD_BUILD_TIMESTAMP": "1970-01-01", "KBUILD_BUILD_USER": "firstflight",
                "KBUILD_BUILD_HOST": "firstflight"}  # fmt: skip


class BuildError(TestbedError):
    """The kernel did not build as asked; the message holds the end of the build log."""

    exit_code = EXIT_MISSING


def compile_tree(
    tree: Path, binary: Path, log: Path, jobs: int, name: str, toolchain: Toolchain
) -> Path:
    """Compile the configured source in ``tree``, and write the stripped ``binary`` and the ``log``.

    The names of its functions are kept beside the binary, which has none.

    What was compiled there before is used as far as make finds it up to date.

    Raises:
        BuildError: the compilation failed.
        CommandError: it did not end.
    """
    # In it make counts the builds of a tree, and the kernel would say the number.
    (tree / ".version").unlink(missing_ok=True)
    # It ends with this process, however that ends: the next build reuses its folder.
    mortal = (toolchain.program("setpriv"), "--pdeathsig", "TERM")
    argv = [*mortal, toolchain.program("make"), *_MAKE, f"-j{jobs}", "linux"]
    _compile(argv, _environment(toolchain), tree, log, name)
    proc.run([toolchain.program("strip"), "-o", str(binary), str(tree / "linux")])
    functions = list_functions((tree / SYMBOLS_FILE).read_text("utf-8"))
    binary.with_name(SYMBOLS_FILE).write_text(functions, "utf-8")
    return binary


def parse_config(text: str) -> dict[str, str]:
    """Return the options of a kernel configuration; one that "is not set" has the value ``n``."""
    options = {}
    for line in text.splitlines():
        if line.startswith("CONFIG_") and "=" in line:
            name, _, value = line.partition("=")
            options[name] = value
        elif line.startswith("# CONFIG_") and line.endswith(" is not set"):
            options[line.split()[1]] = "n"
    return options


def lost_options(wanted: dict[str, str], got: dict[str, str]) -> list[str]:
    """Return one phrase for each asked option that the kernel's configuration does not hold."""
    return [
        f"{name}={value} (is {got.get(name, 'not there')})"
        for name, value in wanted.items()
        if got.get(name, "n") != value
    ]


def configure(tree: Path, fragment: Path, source: str, toolchain: Toolchain) -> None:
    """Configure the kernel in ``tree``: what ``fragment`` asks for, and nothing else.

    ``source`` names the kernel for the message.

    Raises:
        MissingError: options that the fragment asks for are not what came out.
        CommandError: it cannot be configured.
    """
    bring_compiler(tree)
    make = [toolchain.program("make"), *_MAKE]
    everything_else = [*make, f"KCONFIG_ALLCONFIG={fragment.resolve()}", "allnoconfig"]
    proc.run(everything_else, cwd=tree, env=_environment(toolchain), timeout_s=300.0)
    wanted = parse_config(fragment.read_text())
    lost = lost_options(wanted, parse_config((tree / ".config").read_text()))
    if lost:
        raise MissingError(
            f"{source}: asked options did not survive: {', '.join(lost)}; each needs an option "
            "that is off, or this source has no such option: look at what --config asks for, and "
            "at its `depends on` in Kconfig"
        )


def bring_compiler(tree: Path) -> None:
    """Put ``gcc.sh`` and its headers into ``tree``; headers are compiled again by each build."""
    folder = tree / _PRECOMPILED
    folder.mkdir(exist_ok=True)
    for file, place in ((_COMPILER, folder / "gcc"), (_HEADERS, folder / _HEADERS.name)):
        # All that was compiled would be older than a new one.
        if not place.is_file() or place.read_bytes() != file.read_bytes():
            shutil.copy(file, place)
    (folder / f"{_HEADERS.name}.gch").unlink(missing_ok=True)


def first_error(log: str) -> str | None:
    """Return the first line of a build log that is a compiler's, a linker's or make's error."""
    lines = log.splitlines()
    for mark in (": error:", ": fatal error:", "undefined reference", "modpost: ERROR", "*** "):
        for line in lines:
            if mark in line:
                return line.strip()
    return None


def _environment(toolchain: Toolchain) -> dict[str, str]:
    return {**toolchain.environment, **_ENVIRONMENT}


def _compile(argv: list[str], env: dict[str, str], tree: Path, log: Path, name: str) -> None:
    deadline = time.monotonic() + _COMPILE_S
    with (
        log.open("wb") as sink,
        proc.started(argv, cwd=tree, env=env, stdout=sink, stderr=sink) as child,
    ):
        while child.poll() is None:
            if time.monotonic() > deadline:
                raise proc.CommandError(f"kernel {name}: still compiling after {_COMPILE_S:g} s")
            time.sleep(_POLL_S)
        status = child.returncode
    if status != 0:
        text = log.read_text(errors="replace")
        tail = "\n".join(text.splitlines()[-_TAIL_LINES:])
        error = first_error(text)
        said = f"does not compile: {error}" if error else f"`{' '.join(argv)}` failed"
        raise BuildError(f"kernel {name}: {said}\nIt ended with status {status}:\n{tail}")
