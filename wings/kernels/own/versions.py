"""Own kernels as versions of the virtual kernel, which runs ask for by their names."""

from __future__ import annotations

import json
import os
from pathlib import Path

from testbed.base import log, places
from testbed.kernel import Progress, find_confinement, say_newer
from testbed.kernel.build.cache import KernelBuild
from testbed.kernel.build.native import ensure_native
from testbed.kernel.run.virtual import boot_once
from wings.kernels.own.build import ensure_own
from wings.kernels.own.definition import OwnKernel, own_kernels, read_own

_log = log.logger(__name__)
_DEFAULTS_FILE = "sysctls.json"


def names() -> tuple[str, ...]:
    """Return the names of those in the user's data folder (``testbed.kernel.FurtherKernels``)."""
    return own_kernels(places.data())


def ensure(name: str, cache: Path, usr: Path, progress: Progress) -> KernelBuild:
    """Return the build of one of them, made now unless the cache has it.

    Raises:
        As ``ensure_own_build``, and ConfigurationError: its folder is not whole.
    """
    return ensure_own_build(read_own(name, places.data()), cache, usr, progress)


def ensure_own_build(own: OwnKernel, cache: Path, usr: Path, progress: Progress) -> KernelBuild:
    """Return the build of a kernel of the user's, made and booted now unless the cache has it.

    Raises:
        ConfigurationError: a patch of it does not apply.
        BuildError: it does not compile, or does not boot.
        MissingError: what builds it is not to be had.
    """

    def check(build: KernelBuild) -> str | None:
        init = ensure_native(cache, progress) / "init"
        held = find_confinement()
        booted = boot_once(own.name, build.binary, build.boot, init, usr, confinement=held)
        text = json.dumps(booted.other_defaults()) + "\n"
        (build.binary.parent / _DEFAULTS_FILE).write_text(text)
        return booted.problem

    build = ensure_own(own, cache, len(os.sched_getaffinity(0)), progress, check)
    if own.git is None:
        say_newer(build, own.pin, progress)
    for name, (value, ours) in _read_defaults(build).items():
        _log.warning(
            "kernel %s has %s %r by itself, and before each load both ends are set to %r as on "
            "every kernel: that change has no effect; change what it does, or ask for the value: "
            "--set 'tcp.sysctl.%s=%s'",
            own.name, name, value, ours, name.removeprefix("net.ipv4."), json.dumps(value),
        )  # fmt: skip
    return build


def _read_defaults(build: KernelBuild) -> dict[str, tuple[str, str]]:
    """Return the sysctls that a kernel of the user's has by itself otherwise than loads set them.

    What came in a pack was booted on another machine, and says nothing.
    """
    try:
        text = (build.binary.parent / _DEFAULTS_FILE).read_text()
    except FileNotFoundError:
        return {}
    return {name: (value, ours) for name, (value, ours) in json.loads(text).items()}
