"""Debug kernel: another kernel's source, compiled with options that find mistakes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from testbed.base import places
from testbed.kernel.build.pin import pins
from wings.kernels.own.definition import OwnKernel, define, read_own

FRAGMENTS = places.ROOT / "kernels"
NAME, LEAKS = "debug", "leaks"
_IMAGES = "um-images-of-a-guest.patch"
"""An image would lack the shadow in which KASAN keeps what is known of memory."""


def define_debug(version: str, home: Path, folder: Path = FRAGMENTS) -> OwnKernel:
    """Return the kernel ``version`` as a debug kernel: with the fragments in ``folder`` for it.

    Raises:
        ConfigurationError: there is no such kernel.
    """
    base = version if version in pins() else read_own(version, home).base
    further = folder / f"{NAME}-{base}.config"
    fragments = [Path(LEAKS), folder / f"{NAME}.config", *([further] if further.is_file() else [])]
    own = define(f"{NAME}-{version}"[:40], home, base=version, patches=(), fragments=fragments,
                 git=None, revision=None)  # fmt: skip
    images = tuple(file.name for file in own.pin.patches if file.name.endswith(_IMAGES))
    return replace(own, omitted=tuple(sorted({*own.omitted, *images})))
