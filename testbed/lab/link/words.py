"""Words of tc(8): quantities with their units, and whether a queue is as it was asked for.

tc shows what it was told in units of its own: ``limit 128Kb`` for ``limit 131072``.  An option that
it does not show, such as the ``avpkt`` that others are computed from, cannot be compared.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

_QUANTITY = re.compile(r"^([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)([a-z%]*)$", re.IGNORECASE)
_UNITS = {
    "": 1.0, "p": 1.0, "%": 1.0,
    "us": 1e-6, "usec": 1e-6, "usecs": 1e-6, "ms": 1e-3, "msec": 1e-3, "msecs": 1e-3,
    "s": 1.0, "sec": 1.0, "secs": 1.0, "ns": 1e-9,
    "b": 1.0, "k": 1024.0, "kb": 1024.0, "m": 1024.0**2, "mb": 1024.0**2, "g": 1024.0**3,
    "gb": 1024.0**3,
    "bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "kibit": 1024.0, "mibit": 1024.0**2,
    "bps": 8.0, "kbps": 8e3, "mbps": 8e6, "gbps": 8e9,
}  # fmt: skip
"""As tc(8) has them; times in s, sizes in bytes, rates in bit/s."""
_BARE_TIME = 1e-6
"""A time without a unit is in microseconds."""
ROUNDED = 0.01
"""tc shows three digits of a size or a time."""


def quantity(text: str, plain: str = "") -> float:
    """Return a quantity in bytes, seconds, bit/s, or as it is; ``plain`` is "s" for a time.

    Raises:
        ValueError: it is none.
    """
    found = _QUANTITY.match(text)
    unit = found[2].lower() if found else "?"
    if found is None or unit not in _UNITS:
        raise ValueError(f"{text!r} is no quantity")
    scale = _BARE_TIME if plain == "s" and not unit else _UNITS[unit]
    return float(found[1]) * scale


def differ(asked: str, told: str) -> Iterator[str]:
    """Yield a sentence for each option of ``asked`` that ``told`` shows otherwise."""
    kind, *words = asked.split()
    shown = told.split()
    if shown[:1] != [kind]:
        yield f"is {told!r}, asked was {asked!r}"
        return
    for place, word in enumerate(words):
        opposite = word[2:] if word.startswith("no") else f"no{word}"
        if opposite in shown and word not in shown:
            yield f"has {opposite}, asked was {word}"
        following = words[place + 1 : place + 2]
        if word not in shown or not following or not _is_quantity(following[0]):
            continue
        has = shown[shown.index(word) + 1 : shown.index(word) + 2]
        if not has or not _is_same(following[0], has[0]):
            yield f"has {word} {' '.join(has)}, asked was {following[0]}"


def _is_quantity(text: str) -> bool:
    try:
        quantity(text)
    except ValueError:
        return False
    return True


def _is_same(asked: str, told: str) -> bool:
    """Whether both are one quantity; a bare one may be in microseconds, or in the other's unit."""
    told = told.partition("/")[0]  # the size of a cell, behind that of a burst
    if not _is_quantity(told):
        return asked == told
    meant = [quantity(asked), quantity(asked, "s")]
    if asked.replace(".", "", 1).isdigit():
        meant.append(quantity(asked + told.lstrip("0123456789.")))
    return any(math.isclose(each, quantity(told), rel_tol=ROUNDED) for each in meant)
