"""What axes, legends and panels are called: the words of knobs and of measured columns."""

from __future__ import annotations

import math
from typing import Any

from analysis.words import KNOBS, axis_name, axis_value, unit_of

# Columns that are measured or derived; knobs are in analysis.words.  Other columns are named by
# themselves, so that a good column name is enough.
MEASURED_NAMES = {
    "plt_ms": "Page load time",
    "plt_s": "Page load time",
    "latency_ms": "Request latency",
    "start_ms": "Start of request",
    "end_ms": "End of request",
    "transfer_bytes": "Transferred",
    "syns_with_payload": "SYNs with data",
    "handshake_pct": "Handshake's share of latency",
}


def column_title(name: str) -> str:
    """Heading and unit of a column, as ``Page load time (ms)``; with a space in it, as it is."""
    if " " in name:
        return name
    unit = unit_of(name)
    if name in MEASURED_NAMES:
        heading = MEASURED_NAMES[name]
    elif name in KNOBS:
        heading = axis_name(name)
    else:
        heading = (name.rpartition("_")[0] if unit else name).replace("_", " ")
        heading = heading[:1].upper() + heading[1:]
    return f"{heading} ({unit})" if unit else heading


def value_text(name: str, value: Any) -> str:
    """A value below a title that has the unit already: ``20``, ``on``, ``amazon``."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value:g}"
    return axis_value(name, value)


def panel_text(name: str, value: Any) -> str:
    """The heading of a panel, which stands alone: ``RTT 20 ms``, ``Fast Open on``, ``amazon``."""
    if isinstance(value, str):
        return axis_value(name, value)
    if name in KNOBS:
        return f"{axis_name(name)} {axis_value(name, value)}"
    return f"{column_title(name)} {value_text(name, value)}"


def decimals(values: list[float]) -> int:
    """How many decimals show about three digits of the largest of ``values``."""
    largest = max((abs(value) for value in values), default=0.0)
    if largest >= 100 or all(value == math.floor(value) for value in values):
        return 0
    return 1 if largest >= 10 else 2
