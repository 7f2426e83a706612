"""Release of Debian's archives: what its suites offer, as its signed index says (apt-secure(8))."""

from __future__ import annotations

import hashlib
import http.client
import lzma
import re
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from testbed.base import proc
from testbed.base.debian import KEYRING, MIRROR_VARIABLE, debian_archives
from testbed.base.errors import MissingError
from testbed.root.index import Index, Offer, parse_packages
from testbed.root.spec import RootSpec

_INDEX = "main/binary-amd64/Packages.xz"
_STALL_S = 60.0
_MOST_BYTES = 64 << 20
_VERIFY_S = 60.0


def read_index(spec: RootSpec) -> Index:
    """Return what the suites of ``spec`` offer now, on the mirror that this machine knows.

    Raises:
        MissingError: no mirror is known, an index cannot be had or its signature is wrong, or the
            keyring or the program that verifies it is missing.
    """
    archives = debian_archives()
    if absent := [archive for archive in spec.suites if archive not in archives]:
        raise MissingError(
            f"no mirror of {' and '.join(absent)} is known; set {MIRROR_VARIABLE} to the address "
            "of a mirror that ends with /debian and has debian-security beside it"
        )
    return Index(
        offer
        for archive, suites in spec.suites.items()
        for suite in suites
        for offer in _read_suite(archive, f"{archives[archive]}/dists/{suite}")
    )


def _read_suite(archive: str, address: str) -> Iterator[Offer]:
    release = verify_release(_get(f"{address}/InRelease"), KEYRING)
    sha256 = find_sha256(release, _INDEX)
    packed = _get(f"{address}/{_INDEX}")
    if hashlib.sha256(packed).hexdigest() != sha256:
        raise MissingError(f"{address}/{_INDEX} is not what its signed index says; try again later")
    return parse_packages(lzma.decompress(packed).decode("utf-8"), archive)


def _get(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=_STALL_S) as response:  # noqa: S310
            data: bytes = response.read(_MOST_BYTES)
            return data
    except (http.client.HTTPException, OSError) as error:
        raise MissingError(f"{address} cannot be had: {error}; try again later") from error


def verify_release(signed: bytes, keyring: Path) -> str:
    """Return what is signed in an ``InRelease`` by a key of ``keyring``.

    Raises:
        MissingError: it is signed by none, or cannot be verified here.
    """
    if not keyring.is_file():
        raise MissingError(f"{keyring} is missing; install the package debian-archive-keyring")
    with tempfile.TemporaryDirectory() as scratch:
        file, plain = Path(scratch) / "InRelease", Path(scratch) / "Release"
        file.write_bytes(signed)
        verifiers = {
            "gpgv": ("--keyring", keyring, "--output", plain, file),
            "sqv": ("--keyring", keyring, "--cleartext", "--output", plain, file),
        }
        name = next(filter(shutil.which, verifiers), None)
        if name is None:
            raise MissingError("nothing verifies Debian's signature here; install gpgv or sqv")
        argv = (name, *map(str, verifiers[name]))
        done = proc.run(argv, timeout_s=_VERIFY_S, check=False)
        if done.returncode != 0 or not plain.is_file():
            raise MissingError(f"the index is not signed by Debian: {done.stderr.strip()[-300:]}")
        return plain.read_text("utf-8")


def find_sha256(release: str, name: str) -> str:
    """Return the SHA-256 that a ``Release`` file has of the file ``name``.

    Raises:
        MissingError: it has none.
    """
    _, _, sums = release.partition("\nSHA256:\n")
    match = re.search(rf"^ ([0-9a-f]{{64}}) +\d+ {re.escape(name)}$", sums, re.MULTILINE)
    if match is None:
        raise MissingError(f"the signed index names no {name}")
    return match[1]
