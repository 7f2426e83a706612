"""HAR 1.2 files of loads, read as rows of plain numbers.

HAR files come from a browser that ran untrusted pages: every value is checked for its type and
shortened; nothing in them is ever markup.
Source: HAR 1.2, http://www.softwareishard.com/blog/har-12-spec/ (times in ms, -1 = unknown).
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from analysis.words import clean
from testbed.model import HAR_FILE, Record

MAX_HAR_BYTES = 16_000_000
MAX_ENTRIES = 1_000
MAX_URL_CHARS = 160
TENTHS = 10
MAX_MS = 1e7
PHASES = ("blocked", "dns", "connect", "send", "wait", "receive")
TRIAL_ID = re.compile(r"[0-9a-f]{16}")


class HarError(ValueError):
    """A HAR file cannot be used; the message says why."""


def read_har_bytes(folder: Path, record: Record) -> bytes:
    """Return the HAR of ``record``, which must be the file that the record names by hash.

    Raises:
        HarError: it is missing, too large, or not the recorded one.
    """
    names = [n for n in sorted(record.artefacts) if PurePosixPath(n).name == HAR_FILE]
    name = names[-1] if names else HAR_FILE
    inside = PurePosixPath(name)
    if not TRIAL_ID.fullmatch(record.trial_id) or inside.is_absolute() or ".." in inside.parts:
        raise HarError("its name leads out of the results folder")
    path = folder / "trials" / record.trial_id / name
    try:
        if path.stat().st_size > MAX_HAR_BYTES:
            raise HarError(f"{HAR_FILE} is larger than {MAX_HAR_BYTES // 1_000_000} MB")
        content = path.read_bytes()
    except OSError as error:
        raise HarError(f"{HAR_FILE} cannot be read: {error.strerror}") from None
    expected = record.artefacts.get(name)
    if expected is not None and hashlib.sha256(content).hexdigest() != expected:
        raise HarError(f"{HAR_FILE} is not the file that was recorded (its SHA-256 differs)")
    return content


def parse_har(content: bytes) -> dict[str, Any]:
    """Return the ``log`` of a HAR.

    Raises:
        HarError: it is not JSON, or not a HAR.
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise HarError(f"{HAR_FILE} is not JSON: {type(error).__name__}") from None
    log = document.get("log") if isinstance(document, dict) else None
    if not isinstance(log, dict) or not isinstance(log.get("entries"), list):
        raise HarError(f"{HAR_FILE} has no log.entries")
    return log


def har_rows(log: dict[str, Any]) -> list[tuple[str, list[int]]]:
    """Return each request as its URL and ``[start, phases in the order of PHASES, status, bytes]``.

    Times are in tenths of a millisecond since navigation start; the rows are in order of start.
    """
    entries = [e for e in log["entries"][:MAX_ENTRIES] if isinstance(e, dict)]
    stamps = [_moment(entry) for entry in entries]
    pages = log.get("pages")
    page = pages[0] if isinstance(pages, list) and pages and isinstance(pages[0], dict) else {}
    zero = _moment(page)
    known = [stamp for stamp in stamps if stamp is not None]
    if zero is None:
        zero = min(known, default=0.0)
    rows: list[tuple[str, list[int]]] = []
    for entry, stamp in zip(entries, stamps, strict=True):
        timings = _mapping(entry, "timings")
        phases = [max(0, tenths(timings.get(phase))) for phase in PHASES]
        start = tenths(((stamp if stamp is not None else zero) - zero) * 1000.0)
        response = _mapping(entry, "response")
        url = str(_mapping(entry, "request").get("url", ""))
        rows.append((
            clean(url[:MAX_URL_CHARS]) + ("…" if len(url) > MAX_URL_CHARS else ""),
            [start, *phases, _count(response.get("status")) or 0, _transferred(response)],
        ))  # fmt: skip
    return sorted(rows, key=lambda row: row[1][0])


def tenths(value: object) -> int:
    """Return milliseconds as tenths of them; 0 for what is no sensible time."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return 0
    return round(value * TENTHS) if abs(value) <= MAX_MS else 0  # NaN compares false


def _transferred(response: dict[str, Any]) -> int:
    total = _count(response.get("_transferSize"))
    if total is not None:
        return total
    return sum(_count(response.get(part)) or 0 for part in ("headersSize", "bodySize"))


def _mapping(value: dict[str, Any], name: str) -> dict[str, Any]:
    inner = value.get(name)
    return inner if isinstance(inner, dict) else {}


def _moment(value: dict[str, Any]) -> float | None:
    try:
        return datetime.fromisoformat(str(value.get("startedDateTime"))).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _count(value: object) -> int | None:
    sound = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**40
    return value if isinstance(value, int) and sound else None
