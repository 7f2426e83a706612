"""Which format a recording has, by its content; its name says nothing."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Literal

from testbed.base.errors import ConfigurationError
from testbed.pages.importing.har import is_har_zip
from testbed.pages.importing.json_file import UTF16_MARKS
from testbed.pages.importing.resources import is_facts, is_own

Format = Literal["har", "warc", "wacz", "mahimahi", "resources"]
KNOWN = (
    "a HAR (also gzip, or zip with its bodies), a WARC or WACZ, a mahimahi record folder, or a "
    "resource table (CSV); for a Web Page Replay archive see docs/pages.md"
)
_START_BYTES = 4096


def detect_format(path: Path) -> Format:
    """The format of the file or folder ``path``.

    Raises:
        ConfigurationError: there is none, it cannot be read, or it is none of ours.
    """
    try:
        if path.is_dir():
            return "mahimahi"
        if not path.is_file():
            raise ConfigurationError([f"{path}: there is no such file; give {KNOWN}"])
        with path.open("rb") as file:
            start = file.read(_START_BYTES)
            found = "wacz" if zipfile.is_zipfile(file) else None
    except OSError as error:
        raise ConfigurationError([f"{path}: cannot be read: {error.strerror}"]) from None
    format_ = parse_start(start)
    if format_ == "wacz" and is_har_zip(path):
        return "har"
    if format_ is not None:
        return format_
    if found is not None:
        return "wacz"
    raise ConfigurationError([f"{path}: not recognised; give {KNOWN}"])


def parse_start(start: bytes) -> Format | None:
    """The format that begins with ``start``, as far as that tells."""
    if start.startswith(b"\x1f\x8b"):
        start = _unpack(start)
    if start.startswith(b"WARC/"):
        return "warc"
    if start.startswith(b"PK\x03\x04"):
        return "wacz"
    wide = start.startswith(UTF16_MARKS)
    text = start.decode("utf-16" if wide else "utf-8-sig", "replace").lstrip()
    if text.startswith("{"):
        return "har"
    return "resources" if is_own(text) or is_facts(text) else None


def _unpack(data: bytes) -> bytes:
    """As much as ``_START_BYTES`` of a gzip member."""
    try:
        return zlib.decompressobj(31).decompress(data, _START_BYTES)
    except zlib.error:
        return b""
