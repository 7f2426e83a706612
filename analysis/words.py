"""Words for knobs, values and counts, as reports and the terminal show them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from testbed.kinds import KINDS, knobs_of
from testbed.model.knob import Knob
from testbed.model.settings import FAMILIES

MISSING = "\u2013"
MINUS = "\u2212"
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML 1.0 document may hold, not even escaped (section 2.2)."""
KNOBS: dict[str, Knob] = {each.name: each.knob for k in KINDS.values() for each in knobs_of(k)}
COUNTED = "segments"
"""A number of them needs no unit in a table."""
COLUMN_UNITS = {"s": "s", "ms": "ms", "us": "µs", "kbit": "kbit/s", "mbit": "Mbit/s", "bytes": "B",
                "kib": "KiB", "pct": "%", "segments": COUNTED}  # fmt: skip
"""By the end of a column's name, of what is measured or derived; knobs declare theirs."""


def axis_name(name: str) -> str:
    """Return the heading of an axis; unknown ones by their own name, settings by the kernel's."""
    if is_setting(name):
        return name.partition(".")[2]
    return KNOBS[name].label if name in KNOBS else name.replace("_", " ")


def is_setting(name: str) -> bool:
    """Return whether an axis is a sysctl or an attribute of a route: ``sysctl.tcp_sack``."""
    family, dot, _ = name.partition(".")
    return bool(dot) and family in FAMILIES


def unit_of(name: str) -> str:
    """Return the unit of an axis or a column as people write it; empty if it has none."""
    if name in KNOBS:
        return KNOBS[name].unit
    if name.endswith("_per_s"):
        return "1/s"
    stem, _, suffix = name.rpartition("_")
    return COLUMN_UNITS.get(suffix, "") if stem else ""


def axis_word(name: str) -> str:
    """Return an axis's name for the middle of a sentence: small letters, but for acronyms."""
    heading = axis_name(name)
    return heading if heading[:2].isupper() else heading.lower()


def lowered(heading: str) -> str:
    """Return a heading for the middle of a sentence: a small first letter, but for acronyms."""
    return heading if heading[:2].isupper() else heading[:1].lower() + heading[1:]


def axis_value(name: str, value: Any) -> str:
    """Return an axis value with its unit, as ``20 ms`` or ``on``."""
    knob = KNOBS.get(name)
    if knob is not None and value in knob.words:
        return knob.words[value]
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (int, float)):
        unit = unit_of(name).removeprefix(COUNTED)
        return f"{value:g} {unit}".strip() if abs(value) < 1e6 else f"{value:.0f} {unit}".strip()
    return clean(str(value))


def name_axes(
    axes: Mapping[str, Any], names: Iterable[str], bare: Collection[str] = ("page",)
) -> str:
    """Return a condition in words, as ``amazon, RTT 20 ms``; values of ``bare`` axes come alone."""
    words = ((name, axis_value(name, axes.get(name))) for name in names)
    return ", ".join(value if n in bare else f"{axis_word(n)} {value}" for n, value in words)


def number(value: float | None, places: int) -> str:
    """Return ``value`` with fixed decimals and a true minus sign."""
    if value is None:
        return MISSING
    text = f"{value:.{places}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", MINUS)


def signed(value: float | None, places: int) -> str:
    """Return ``value`` like `number`, with a plus sign when it is positive."""
    text = number(value, places)
    return f"+{text}" if value is not None and float(f"{value:.{places}f}") > 0 else text


def seconds(milliseconds: float | None) -> str:
    """Return milliseconds as seconds with three decimals."""
    return number(None if milliseconds is None else milliseconds / 1000.0, 3)


def count(number_of: int, singular: str, plural: str | None = None) -> str:
    """Return ``1 trial`` or ``2 trials``."""
    return f"{number_of:,} {singular if number_of == 1 else plural or singular + 's'}"


def capitalised(text: str) -> str:
    """Return ``text`` as it begins a sentence."""
    return text[:1].upper() + text[1:]


def significant(value: float | None) -> str:
    """Return six significant digits, thousands separated."""
    if value is None:
        return MISSING
    return f"{value:,.6g}".replace("-", MINUS)


def lines(text: str) -> str:
    """Return ``text`` cleaned line by line (a console's last lines keep their shape)."""
    return "\n".join(clean(line) for line in text.splitlines())


def clean(text: str) -> str:
    """Return ``text`` without control, format and surrogate characters, and on one line.

    Browsers and consoles are fed names that pages chose: no escape sequence and no
    right-to-left override may pass.
    """
    spaced = " ".join(text.split())
    if spaced.isprintable():
        return spaced
    return "".join("\ufffd" if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c for c in spaced)


def xml_text(text: str) -> str:
    """Return ``text`` without characters that XML cannot hold."""
    return NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
