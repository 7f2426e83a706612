"""Context of a measurement: options, a private folder, the machine, and opened kernels."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from testbed.base import log, places
from testbed.base.errors import MissingError
from testbed.kernel import KernelPlace, open_kernel
from testbed.kernel.build.native import ensure_native
from testbed.kernel.run.virtual import VirtualKernel
from testbed.model import DEFAULT_ROOT
from testbed.root.cache import Root, ensure_named
from testbed.setup.bundle import make_bundle

_log = log.logger("testbed.bench")

# Of each core, over the last minute: beyond it, wall-clock and CPU times include others' work.
IDLE_LOAD_PER_CORE = 0.25


@dataclass(frozen=True, slots=True)
class Work:
    """Context of a measurement.  ``quick`` takes fewer repetitions, ``full`` extrapolates nothing.

    ``scratch`` is an empty folder that is removed afterwards; ``fresh`` allows a bootstrap into
    an empty cache.
    """

    scratch: Path
    machine: Machine
    quick: bool = False
    full: bool = False
    fresh: bool = False

    def folder(self, name: str) -> Path:
        """Return a new folder below ``scratch``."""
        folder = self.scratch / name
        folder.mkdir()
        return folder


def bundle() -> Path:
    """Return the bundle that trials run with, made now if need be."""
    return make_bundle(
        places.cache(), ensure_native(places.cache(), _log.info), default_root()
    ).path


def default_root() -> Root:
    """Return the root that trials run, assembled now if need be."""
    return ensure_named(DEFAULT_ROOT, places.cache(), _log.info)


def kernel_place(of: Path) -> KernelPlace:
    """Return what a kernel is given here, with the bundle ``of``."""
    return KernelPlace(places.cache(), of, default_root().usr, _log.info)


def virtual_kernel(version: str, of: Path) -> VirtualKernel:
    """Return the virtual kernel ``version`` whose guests get the bundle ``of``.

    Raises:
        MissingError: the virtual kernel is not what this version opens.
    """
    kernel = open_kernel("virtual", version, kernel_place(of))
    if not isinstance(kernel, VirtualKernel):
        raise MissingError(f"kernel {version} is no virtual kernel, and this bench needs one")
    return kernel


@dataclass(frozen=True, slots=True)
class Machine:
    """Cores that may be used, and the load average of the last minute before the bench."""

    cores: int
    load: float

    @property
    def idle(self) -> bool:
        """Whether other programs used little of it."""
        return self.load <= IDLE_LOAD_PER_CORE * self.cores

    def describe(self) -> dict[str, Any]:
        """Return it as plain data for the JSON."""
        return {**asdict(self), "idle": self.idle, "platform": platform.platform()}


def read_machine() -> Machine:
    """Ask the machine now."""
    return Machine(len(os.sched_getaffinity(0)), os.getloadavg()[0])
