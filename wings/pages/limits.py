"""Limits of what is read of untrusted files, which bound the memory of an import."""

from __future__ import annotations

MIB = 1 << 20
HAR_BYTES = 256 * MIB
"""A HAR, also once it is unpacked; as text it may need four times as much."""
JSON_VALUES = 4_000_000
"""Arrays, objects and members of a HAR; a usual one has 300 for each request."""
ARCHIVE_BYTES = 512 * MIB
"""All records of a WARC, WACZ or mahimahi folder, unpacked; also what is read of a zip file."""
BODY_BYTES = 64 * MIB
"""One body, as transferred and decoded; a request with more is left out."""
CONTENT_BYTES = 256 * MIB
"""One decoded body of an archive that does not say its size."""
BODIES_BYTES = 512 * MIB
"""All bodies of a page, decoded."""
ENTRIES = 5000
HOSTS = 250
HEAD_BYTES = 64 << 10
RAW_URL_BYTES = 32 << 10
"""A URL before it is looked at; what nginx takes is less, see ``archive/head.py``."""
LINE_BYTES = 1 * MIB
"""One line of a WARC's or a message's head."""


def mib(size: int) -> str:
    """Return ``size`` bytes as people read it."""
    return f"{size / MIB:.4g} MiB"
