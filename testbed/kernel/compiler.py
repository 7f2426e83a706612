"""Kernel compilation: from a source tarball to a User-Mode Linux binary, always the same one.

Follows Documentation/kbuild/reproducible-builds.rst: no time, user or path enters the binary.
"""

from __future__ import annotations

import os
import platform
import shutil
import time
from pathlib import Path

from testbed.base import proc
from testbed.base.errors import MissingError, TestbedError
from testbed.base.units import format_duration
from testbed.kernel.pin import Pin
from testbed.kernel.source import Progress

RECIPE = "1"  # raise when the steps below change the binary

PACKAGES = {
    "gcc": "build-essential",
    "make": "build-essential",
    "patch": "patch",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "tar": "tar",
    "xz": "xz-utils",
    "dpkg-deb": "dpkg",
}

_COMPILE_S = 3600.0
CORE_S = 420.0
"""About how long it takes on one core."""
# What takes minutes ends with this process, however that ends: the next build reuses its folder.
_MORTAL = ("setpriv", "--pdeathsig", "TERM")
_UNPACK_S = 600.0
_POLL_S = 0.5
_TAIL_LINES = 25
_ENVIRONMENT = {
    "KBUILD_BUILD_TIMESTAMP": "1970-01-01",
    "KBUILD_BUILD_USER": "firstflight",
    "KBUILD_BUILD_HOST": "firstflight",
    "LC_ALL": "C",
}


class BuildError(TestbedError):
    """The kernel did not build as asked; the message holds the end of the build log."""


def check_machine() -> None:
    """Check that this machine can build the kernels.

    Raises:
        MissingError: with every missing package in one message.
    """
    if platform.machine() != "x86_64":
        raise MissingError(f"the virtual kernel needs x86_64; this machine is {platform.machine()}")
    missing = {package for tool, package in PACKAGES.items() if shutil.which(tool) is None}
    if not missing:
        trial = ["gcc", "-fsyntax-only", "-include", "stdlib.h", "-xc", os.devnull]
        if proc.run(trial, check=False).returncode != 0:
            missing.add("build-essential")
    if missing:
        names = " ".join(sorted(missing))
        raise MissingError(
            f"cannot build the kernel; install the missing packages: {names}; or import a kernel "
            "that is built: ./run.sh kernel import FILE"
        )


def read_compiler() -> str:
    """Return the first line of ``gcc --version``."""
    return proc.run(["gcc", "--version"]).stdout.splitlines()[0]


def compile_kernel(pin: Pin, tarball: Path, work: Path, jobs: int, progress: Progress) -> Path:
    """Unpack, patch, configure and compile in ``work``; the stripped binary is ``work/linux``.

    ``work/build.log`` is the compiler's output.  ``work/source`` is left to the caller.

    Raises:
        MissingError: options that the pin asks for did not survive the configuration.
        BuildError: the compilation failed.
        CommandError: a patch does not apply, or another step failed.
    """
    tree = work / "source"
    tree.mkdir()
    progress(f"kernel {pin.version}: unpacking {tarball.name}")
    proc.run(
        [*_MORTAL, "tar", "-xJf", str(tarball), "--strip-components=1", "-C", str(tree)],
        timeout_s=_UNPACK_S,
    )
    for patch in pin.patches:
        # No fuzz: a patch that fits only nearly was made for another source.
        proc.run(["patch", "-p1", "-F0", "-s", "-N", "-i", str(patch.resolve())], cwd=tree)
    env = {"PATH": os.environ["PATH"], **_ENVIRONMENT}
    _configure(pin, tree, env)
    make = [*_MORTAL, "make", "ARCH=um", f"-j{jobs}", "linux"]
    span = format_duration(CORE_S / min(jobs, os.cpu_count() or 1))
    log = work / "build.log"
    progress(f"kernel {pin.version}: compiling, usually {span} in all on {jobs} cores; log: {log}")
    _compile(make, tree, env, pin.version)
    proc.run(["strip", "-o", str(work / "linux"), str(tree / "linux")])
    return work / "linux"


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


def lost_options(asked: dict[str, str], got: dict[str, str]) -> list[str]:
    """Return one phrase for each asked option that the kernel's configuration does not hold."""
    return [
        f"{name}={value} (is {got.get(name, 'not there')})"
        for name, value in asked.items()
        if got.get(name, "n") != value
    ]


def _configure(pin: Pin, tree: Path, env: dict[str, str]) -> None:
    fragment = f"KCONFIG_ALLCONFIG={pin.config.resolve()}"
    proc.run(["make", "ARCH=um", fragment, "allnoconfig"], cwd=tree, env=env, timeout_s=300.0)
    asked = parse_config(pin.config.read_text())
    lost = lost_options(asked, parse_config((tree / ".config").read_text()))
    if lost:
        raise MissingError(
            f"kernel {pin.version} ({pin.package} {pin.package_version}): asked options did not "
            f"survive: {', '.join(lost)}; the fragment {pin.config} does not fit this source"
        )


def _compile(argv: list[str], tree: Path, env: dict[str, str], version: str) -> None:
    deadline = time.monotonic() + _COMPILE_S
    log = tree.parent / "build.log"
    with (
        log.open("wb") as sink,
        proc.started(argv, cwd=tree, env=env, stdout=sink, stderr=sink) as child,
    ):
        while child.poll() is None:
            if time.monotonic() > deadline:
                raise BuildError(f"kernel {version}: still compiling after {_COMPILE_S:g} s")
            time.sleep(_POLL_S)
        status = child.returncode
    if status != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
        raise BuildError(f"kernel {version}: `{' '.join(argv)}` ended with {status}:\n{tail}")
