"""Packages of npm, by npm itself (npm-pack(1)): its registry, its settings, no scripts."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from testbed.base import proc
from testbed.base.errors import MissingError

_FETCH_S = 300.0


def fetch_npm(package: str, version: str, integrity: str, scratch: Path) -> Path:
    """Download the tarball of a package into ``scratch`` and verify it.

    Raises:
        MissingError: npm is missing, cannot get it, or what came is not what is pinned.
    """
    wanted = f"{package}@{version}"
    try:
        proc.run(
            ["npm", "pack", "--ignore-scripts", "--silent", "--pack-destination", str(scratch),
             wanted],
            timeout_s=_FETCH_S, cwd=scratch,
        )  # fmt: skip
    except proc.CommandError as error:
        raise MissingError(
            f"npm cannot fetch {wanted}: {error}; is the registry reachable? "
            f"`npm view {wanted} dist.integrity` must answer"
        ) from None
    (tarball,) = scratch.glob("*.tgz")
    came = npm_integrity(tarball)
    if came != integrity:
        raise MissingError(
            f"{wanted}: the registry gave {came}, the recipe pins {integrity}; it is not used"
        )
    return tarball


def npm_integrity(tarball: Path) -> str:
    """The checksum of a file as npm writes it (Subresource Integrity)."""
    with tarball.open("rb") as file:
        digest = hashlib.file_digest(file, "sha512").digest()
    return f"sha512-{base64.b64encode(digest).decode()}"
