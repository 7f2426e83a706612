"""Registry of the kernels that trials run on, virtual and host: ``KERNELS``.

To add a kernel: one module with a ``Kernel``, and one line here.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from testbed.base import log
from testbed.base.errors import ConfigurationError, MissingError
from testbed.base.wings import provided

if TYPE_CHECKING:
    from testbed.kernel.build.cache import KernelBuild
    from testbed.kernel.build.pin import Pin
    from testbed.kernel.run.interface import Kernel

Progress = Callable[[str], None]
Opener = Callable[[str, "KernelPlace"], "Kernel"]
_log = log.logger(__name__)

_ALGORITHM = re.compile(r"^CONFIG_TCP_CONG_(?!ADVANCED)(\w+)=y", re.MULTILINE)
REGULAR_VERSIONS = ("7.3", "6.1")
"""Virtual kernels that run where all are asked for, and that continuous integration builds from
nothing.  Others are pinned as bases for patches; only who names one builds it."""


@dataclass(frozen=True, slots=True)
class KernelPlace:
    """What a kernel is given on this machine.

    Attributes:
        cache: where built kernels are.
        bundle: the code of ours that its trials run.
        usr: the user land of its trials, that of a root.
        progress: is called with what a build does.
    """

    cache: Path
    bundle: Path
    usr: Path
    progress: Progress


class FurtherKernels(Protocol):
    """Virtual kernels beside the pinned ones: what a wing provides to the point ``kernels``."""

    def names(self) -> tuple[str, ...]:
        """Return the versions that an experiment may ask for by them."""
        ...

    def ensure(self, name: str, cache: Path, usr: Path, progress: Progress) -> KernelBuild:
        """Return the build of one of them, made now unless the cache has it.

        ``usr`` is the user land that a new one is booted with.
        """
        ...


def open_kernel(name: str, version: str, place: KernelPlace) -> Kernel:
    """Return the kernel ``name`` in ``version``, built first if the cache does not have it.

    Raises:
        ConfigurationError: no such kernel or version.
        MissingError: this machine cannot build or run it.
    """
    if name not in KERNELS:
        raise ConfigurationError([f"kernel {name!r}: no such kernel; one of {', '.join(KERNELS)}"])
    return KERNELS[name](version, place)


def _open_virtual(version: str, place: KernelPlace) -> Kernel:
    # Imported when it is opened: another kernel does not need any of it.
    from testbed.kernel.run.virtual import VirtualKernel

    build = ensure_build(version, place.cache, place.usr, place.progress)
    confinement = find_confinement()
    identity = {
        key: value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        for key, value in asdict(build.identity).items()
    }
    return VirtualKernel(version=version, binary=build.binary, build=identity,
                         boot_options=build.boot, bundle=place.bundle, usr=place.usr,
                         confinement=confinement)  # fmt: skip


def ensure_build(version: str, cache: Path, usr: Path, progress: Progress) -> KernelBuild:
    """Return the build of a pinned kernel or of a wing's, made now unless the cache has it.

    ``usr`` is the user land that a wing's is booted with.

    Raises:
        ConfigurationError: there is no such kernel, or a patch of it does not apply.
        BuildError: it does not compile, or does not boot.
        MissingError: what builds it is not to be had.
    """
    from testbed.kernel.build.cache import ensure_kernel
    from testbed.kernel.build.pin import pins, read_pin

    if version not in pins():
        for kernels in _further():
            if version in kernels.names():
                return kernels.ensure(version, cache, usr, progress)
    pin = read_pin(version)
    build = ensure_kernel(pin, cache, len(os.sched_getaffinity(0)), progress)
    say_newer(build, pin, progress)
    return build


def say_newer(build: KernelBuild, pin: Pin, progress: Progress) -> None:
    """Say so where a build is of another source than the pin's, which was gone."""
    if build.identity.source_sha256 != pin.tarball_sha256:
        progress(
            f"kernel {build.identity.version}: {pin.package} {build.identity.package_version} is "
            f"newer than the pinned {pin.package_version}, which was gone when it was built"
        )


def find_confinement() -> str:
    """Return what holds guests: a jail, or what the caller has named instead where there is none.

    Raises:
        MissingError: this machine has no jail, and the caller has named nothing, or a container
            that does not hold them.
    """
    from testbed.kernel.run.container import read_gaps
    from testbed.kernel.run.jail import (
        CONTAINER,
        JAIL,
        JAIL_REMEDY,
        SIGNALS,
        UNJAILED,
        read_hold,
        read_instead,
    )

    try:
        hold = read_hold()
    except MissingError as error:
        problem = str(error)
    else:
        if hold.signals:
            return JAIL
        _log.warning("guests: %s; see docs/security.md", hold.describe())
        return SIGNALS
    instead = read_instead()
    if instead is None:
        raise MissingError(
            f"guests cannot be jailed on this machine ({problem}): what breaks out of a guest "
            f"would have your rights. {JAIL_REMEDY}, or set {UNJAILED}=1 to load pages that you "
            "trust without a jail (docs/security.md)"
        )
    if instead == CONTAINER:
        gaps = read_gaps()
        if gaps:
            raise MissingError(
                f"guests cannot be jailed here ({problem}), and the container that "
                f"{UNJAILED}={CONTAINER} names does not hold them: {'; '.join(gaps)}; "
                "see docs/containers.md"
            )
        _log.info(
            "the container is the jail of guests, they have none of their own (%s); "
            "see docs/containers.md",
            problem,
        )
        return instead
    _log.warning("%s=1: guests run without a jail (%s); see docs/security.md", UNJAILED, problem)
    return instead


def _open_host(version: str, place: KernelPlace) -> Kernel:
    from testbed.kernel.run.host import open_host

    return open_host(version, place.bundle, place.usr)


def kernel_versions(name: str) -> tuple[str, ...]:
    """Return the versions of a kernel that an experiment may ask for here, the default first.

    The host kernel has one: what runs.
    """
    if name == "host":
        return (os.uname().release,)
    from testbed.kernel.build.pin import pins

    return (*pins(), *(version for kernels in _further() for version in kernels.names()))


def _further() -> Iterator[FurtherKernels]:
    return (each.load() for each in provided("kernels"))


def pinned_algorithms() -> dict[str, tuple[str, ...]]:
    """Return the congestion controls that pinned kernels are built with, by version.

    reno is always there (net/ipv4/tcp_cong.c).
    """
    from testbed.kernel.build.pin import pins, read_pin

    return {
        version: ("reno", *map(str.lower, _ALGORITHM.findall(read_pin(version).config.read_text())))
        for version in pins()
    }


KERNELS: dict[str, Opener] = {"virtual": _open_virtual, "host": _open_host}
"""Kernel name to the function that opens it."""
