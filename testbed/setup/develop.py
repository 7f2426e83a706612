"""Development environment: what tests, linters and notebooks need, then a command in it.

``python -m testbed.setup.develop [OPTION] COMMAND [ARGS]``, which bootstrap/develop.sh calls; an
option is one of ``OPTIONS``.  Standard library only, but for what it imports when it is there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from testbed.base.exits import exit_code_of
from testbed.base.heartbeat import repeating
from testbed.base.places import ROOT, cache
from testbed.kernel.build.cache import ensure_kernel
from testbed.kernel.build.native import ensure_native
from testbed.kernel.build.pin import DEFAULT_VERSION, read_pin
from testbed.model import DEFAULT_ROOT
from testbed.root.cache import ensure_named
from testbed.setup.machine_packages import ensure_packages as ensure_machine_packages
from testbed.setup.machine_packages import read_list
from testbed.setup.python_packages import MANY, Progress, ensure_packages

TESTS, NOTEBOOKS, ARTIFACT = "requirements-dev", "requirements-notebooks", "requirements-artifact"
PACKAGES = ROOT / "bootstrap" / "packages-development.txt"


@dataclass(frozen=True, slots=True)
class Needs:
    """What a command of development needs: a lock file, a kernel or none, more Debian packages."""

    lock: str = TESTS
    kernel: bool = True
    packages: tuple[str, ...] = ()


OPTIONS = {
    "--without-kernel": Needs(kernel=False),
    "--notebooks": Needs(NOTEBOOKS, kernel=False),
    # The browser prints their sheets.
    "--labs": Needs(NOTEBOOKS, packages=("chromium-headless-shell", "fonts-dejavu-core")),
    # A run's own environment where its loads or its store are elsewhere (firstflight/start.py).
    "--many-machines": Needs(MANY, kernel=False),
}


def main(arguments: Sequence[str]) -> int:
    """Set up what the command needs, and become it."""
    needs = OPTIONS.get(arguments[0]) if arguments else None
    command = list(arguments if needs is None else arguments[1:])
    environment: dict[str, str] = {}
    if code := exit_code_of(lambda: environment.update(set_up(needs or Needs())), _say):
        return code
    os.chdir(ROOT)
    os.execvpe(command[0], command, environment)  # noqa: S606  no shell


def set_up(needs: Needs) -> dict[str, str]:
    """Set up all of it, and return the environment that its command has.

    Raises:
        TestbedError: a part cannot be had.
    """
    with repeating(_say) as progress, ThreadPoolExecutor(1) as beside:
        if needs.lock == TESTS:
            ensure_machine_packages(read_list(PACKAGES), "development", progress)
        ensure_machine_packages(needs.packages, "labs", progress)
        ensure_native(cache(), progress)  # and the toolchain, which the kernel takes, too
        packages = beside.submit(_install, needs.lock, progress)
        if needs.kernel:
            cores = len(os.sched_getaffinity(0))
            # What is compiled is kept for tests of kernels of one's own.
            keep = needs.lock == TESTS
            ensure_kernel(read_pin(DEFAULT_VERSION), cache(), cores, progress, keep_objects=keep)
        return dict(os.environ) | {"PYTHONPATH": str(ROOT)} | packages.result()


def _install(lock: str, progress: Progress) -> dict[str, str]:
    """Install Python packages and the root, and return what names them in an environment.

    Downloads wait for servers, and pip for itself: meanwhile a kernel is compiled.
    """
    named = {}
    if lock == TESTS:
        named["FIRSTFLIGHT_ARTIFACT"] = str(ensure_packages(ARTIFACT, cache(), progress))
    programs = ensure_packages(lock, cache(), progress) / "bin"
    ensure_named(DEFAULT_ROOT, cache(), progress)
    return named | {"PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


def _say(message: str) -> None:
    print(f"firstflight: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
