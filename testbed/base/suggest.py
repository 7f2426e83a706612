"""Suggestions for a mistyped name: the nearest valid one, also where only the unit is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

UNIT_SUFFIXES = frozenset({
    "s", "sec", "seconds", "ms", "us", "ns", "min",
    "bit", "bits", "kbit", "kbits", "kbps", "mbit", "mbits", "mbps", "gbit",
    "byte", "bytes", "kb", "kib", "mb", "mib",
    "pct", "percent", "segments", "packets", "pkts",
})  # fmt: skip


def stem(name: str) -> str:
    """Return ``name`` without its unit, if it has one: ``rtt_ms`` gives ``rtt``."""
    head, _, tail = name.rpartition("_")
    return head if head and tail.lower() in UNIT_SUFFIXES else name


def nearest(wrong: str, valid: Iterable[str]) -> str | None:
    """Return the name in ``valid`` that ``wrong`` most likely meant; None: none is near."""
    names = sorted(valid)
    folded = {name.lower().replace("-", "_"): name for name in names}
    folded_name = wrong.lower().replace("-", "_")
    if folded_name in folded:
        return folded[folded_name]
    same_stem = [name for key, name in folded.items() if stem(key) == stem(folded_name)]
    if same_stem:
        return same_stem[0]
    close = get_close_matches(folded_name, folded, n=1, cutoff=0.6)
    if close:
        return folded[close[0]]
    extended = [
        name
        for key, name in folded.items()
        if len(folded_name) >= 3 and key.startswith(folded_name)
    ]
    return extended[0] if extended else None


def did_you_mean(wrong: str, valid: Iterable[str]) -> str:
    """Return a trailing `` (did you mean ...?)``, or nothing when no valid name is near."""
    name = nearest(wrong, valid)
    return f" (did you mean {name!r}?)" if name is not None else ""
