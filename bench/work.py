"""What every measurement is given: options, a private folder, and opened kernels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.machine import Machine
from testbed.base import log, places
from testbed.base.errors import MissingError
from testbed.kernel import open_kernel
from testbed.kernel.virtual import VirtualKernel
from testbed.setup.bundle import make_bundle

_log = log.logger("testbed.bench")


@dataclass(frozen=True, slots=True)
class Work:
    """How to measure: ``quick`` takes fewer repetitions, ``full`` leaves nothing extrapolated.

    ``scratch`` is an empty folder that is removed afterwards; ``fresh`` allows a bootstrap into
    an empty cache.
    """

    scratch: Path
    machine: Machine
    quick: bool = False
    full: bool = False
    fresh: bool = False

    def folder(self, name: str) -> Path:
        """A new folder below ``scratch``."""
        made = self.scratch / name
        made.mkdir()
        return made


def bundle() -> Path:
    """The bundle that trials run with, as bootstrap's parts make it."""
    built = make_bundle(places.cache(), places.built_part("native"), places.built_part("js"))
    return built.path


def virtual_kernel(version: str, of: Path) -> VirtualKernel:
    """The virtual kernel ``version`` whose guests get the bundle ``of``.

    Raises:
        MissingError: the virtual kernel is not what this version opens.
    """
    kernel = open_kernel("virtual", version, places.cache(), of, _log.info)
    if not isinstance(kernel, VirtualKernel):
        raise MissingError(f"kernel {version} is no virtual kernel, and this bench needs one")
    return kernel
