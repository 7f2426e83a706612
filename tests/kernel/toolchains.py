"""The toolchain of this tree, which development keeps in the cache."""

from __future__ import annotations

from functools import cache

from testbed.base import places
from testbed.kernel.build.toolchain import Toolchain, ensure_toolchain


@cache
def find_toolchain() -> Toolchain:
    """The toolchain, made if need be."""
    return ensure_toolchain(places.cache(), print)
