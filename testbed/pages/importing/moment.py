"""Points in time as recorders write them: ISO 8601, the dates of HTTP and JavaScript, numbers."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_SCRIPT_DATE = re.compile(
    r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) (\d{2}) (\d{4}) (\d{2}:\d{2}:\d{2})(?: GMT([+-]\d{4}))?"
)
_LONGEST = 64
_SECONDS_UNTIL_MS = 1e11  # as seconds the year 5138, as milliseconds 1973


def parse_moment(value: object) -> datetime | None:
    """The time that ``value`` means, in UTC, which is taken for the zone of one that names none.

    Numbers are seconds or milliseconds since 1970.  ``None``: it is no time.
    """
    try:
        moment = _parse(value)
        if moment is None:
            return None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, OSError, TypeError, IndexError):
        return None


def _parse(value: object) -> datetime | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value / 1000 if value >= _SECONDS_UNTIL_MS else float(value)
        return datetime.fromtimestamp(seconds, UTC) if seconds > 0 else None
    if not isinstance(value, str):
        return None
    text = value.strip()[:_LONGEST]
    if re.fullmatch(r"\d{9,14}(\.\d{1,9})?", text):
        return _parse(float(text))
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    if found := _SCRIPT_DATE.match(text):
        month, day, year, time, zone = found.groups()
        return parsedate_to_datetime(f"{day} {month} {year} {time} {zone or '+0000'}")
    return parsedate_to_datetime(text)
