"""How values are put into words on the report and the terminal; pure text in, text out."""

from __future__ import annotations

import unicodedata
from typing import Any

MISSING = "\u2013"
MINUS = "\u2212"
AXIS_NAMES = {
    "page": "Page",
    "client": "Client",
    "rtt_ms": "RTT",
    "down_kbit": "Down",
    "up_kbit": "Up",
    "buffer_bytes": "Buffer",
    "mtu_bytes": "MTU",
    "framing_bytes": "Framing",
    "loss_pct": "Loss",
    "tfo": "Fast Open",
    "cookies": "Cookies",
    "initcwnd_segments": "Initial window",
    "congestion_control": "Congestion control",
    "requests_per_connection": "Requests per connection",
    "dns": "DNS",
    "think_time": "Think time",
    "protocol": "Protocol",
    "tls_version": "TLS",
    "randomness": "Randomness",
    "allow_misses": "Misses allowed",
    "server_think_ms": "Server think time",
    "think_spread_pct": "Think time spread",
    "start_spread_ms": "Start spread",
}
# Values that are short in an experiment file and clearer in a table.
AXIS_WORDS = {
    ("protocol", "h1"): "HTTP/1.1",
    ("protocol", "h2"): "HTTP/2",
    ("protocol", "as-recorded"): "as recorded",
    ("randomness", "as-recorded"): "as recorded",
}
UNITS = {
    "ms": "ms",
    "kbit": "kbit/s",
    "bytes": "B",
    "pct": "%",
}


def axis_name(name: str) -> str:
    """Return the heading of an axis; unknown ones by their own name."""
    return AXIS_NAMES.get(name, name.replace("_", " "))


def axis_word(name: str) -> str:
    """Return an axis's name for the middle of a sentence: small letters, but for acronyms."""
    heading = axis_name(name)
    return heading if heading[:2].isupper() else heading.lower()


def axis_value(name: str, value: Any) -> str:
    """Return an axis value with its unit, as ``20 ms`` or ``on``."""
    if value is None:
        return "any" if name == "requests_per_connection" else MISSING
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (int, float)):
        unit = UNITS.get(name.rpartition("_")[2], "") if "_" in name else ""
        return f"{value:g} {unit}".strip() if abs(value) < 1e6 else f"{value:.0f} {unit}".strip()
    text = clean(str(value))
    return AXIS_WORDS.get((name, text), text)


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
