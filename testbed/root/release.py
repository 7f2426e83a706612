"""Release of Debian's archives: what its suites offer, as its signed index says (apt-secure(8)).

Its signature is verified by the keys beside this file, on any machine.
"""

from __future__ import annotations

import hashlib
import http.client
import lzma
import re
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from testbed.base.debian import MIRROR_VARIABLE, debian_archives
from testbed.base.errors import MissingError
from testbed.root.index import Index, Offer, parse_packages
from testbed.root.signature import read_keys, read_signed

KEYS = Path(__file__).with_name("debian-keys.asc")
_INDEX = "main/binary-amd64/Packages.xz"
_STALL_S = 60.0
_MOST_BYTES = 64 << 20
_ATTEMPTS = 3
_PAUSE_S = 1.0


def read_index(suites: Mapping[str, Sequence[str]]) -> Index:
    """Return what ``suites``, by archive, offer now, on the mirror that this machine knows.

    Raises:
        MissingError: no mirror is known, an index cannot be had, or Debian has not signed it.
    """
    archives = debian_archives()
    if absent := [archive for archive in suites if archive not in archives]:
        raise MissingError(
            f"no mirror of {' and '.join(absent)} is known; set {MIRROR_VARIABLE} to the address "
            "of a mirror that ends with /debian and has debian-security beside it"
        )
    return Index(
        offer
        for archive, names in suites.items()
        for suite in names
        for offer in _read_suite(archive, f"{archives[archive]}/dists/{suite}")
    )


def _read_suite(archive: str, address: str) -> Iterator[Offer]:
    release = verify_release(_get(f"{address}/InRelease"), f"{address}/InRelease")
    suite = address.rpartition("/")[2]
    if suite not in re.findall(r"^(?:Suite|Codename): (\S+)$", release, re.MULTILINE):
        raise MissingError(f"{address}/InRelease is another suite's; ask another mirror by "
                           f"{MIRROR_VARIABLE}")  # fmt: skip
    sha256 = find_sha256(release, _INDEX)
    packed = _get(f"{address}/{_INDEX}")
    if hashlib.sha256(packed).hexdigest() != sha256:
        raise MissingError(f"{address}/{_INDEX} is not what its signed index says; try again later")
    return parse_packages(lzma.decompress(packed).decode("utf-8"), archive)


def _get(address: str) -> bytes:
    for left in reversed(range(_ATTEMPTS)):
        try:
            with urllib.request.urlopen(address, timeout=_STALL_S) as response:  # noqa: S310
                data: bytes = response.read(_MOST_BYTES)
                return data
        except (http.client.HTTPException, OSError, ValueError) as error:
            code = getattr(error, "code", 500)
            if not left or code < 500 or isinstance(error, ValueError):
                raise MissingError(f"{address} cannot be had: {error}; try again later") from error
        time.sleep(_PAUSE_S)
    raise AssertionError("the last attempt returns or raises")


def verify_release(signed: bytes, address: str) -> str:
    """Return what a key of Debian's archives has signed in the ``InRelease`` at ``address``.

    Raises:
        MissingError: none has.
    """
    release = read_signed(signed, read_keys(KEYS.read_text("ascii")))
    if release is None:
        raise MissingError(
            f"{address} is not signed by a key of Debian's archives; ask another mirror by "
            f"{MIRROR_VARIABLE} (the keys are in {KEYS})"
        )
    return release


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
