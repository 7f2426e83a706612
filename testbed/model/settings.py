"""Settings of TCP by the kernel's own names: sysctls, and attributes of routes (ip-route(8)).

A name that begins with an end, such as ``client.tcp_sack``, is of that end alone; others are of
both.  Sysctls are named without ``net.ipv4.``; those of ``net.core`` as ``core.somaxconn``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

Value = int | str
FAMILIES = ("sysctl", "route")
"""The settings that have names of their own: as knobs of TCP, and where an axis begins with one."""
ENDS = ("client", "server")
BOUNDS: dict[str, tuple[int, int]] = {
    "initcwnd": (1, 1000),
    "initrwnd": (1, 1000),
    "quickack": (0, 1),
    "rto_min_ms": (1, 120_000),
}
"""Attributes of routes that are whole numbers: the least and the greatest."""
CONGCTL = "congctl"
ATTRIBUTES = (*BOUNDS, CONGCTL)
ALGORITHM = r"[a-z0-9_]{1,15}"
"""The kernel's names of congestion controls."""
_SYSCTL = re.compile(r"(core\.)?[a-z][a-z0-9_]{0,63}")
_TEXT = re.compile(r"[!-~]{1,64}( [!-~]{1,64}){0,15}")
_LARGEST = 2**64


class TcpSettings(dict[str, Value]):
    """Values by name.  It is as a member of a frozen type is: nobody changes it."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        """Return a hash by names and values, in whatever order."""
        return hash(frozenset(self.items()))


def split_end(name: str) -> tuple[str, str]:
    """Return the end that ``name`` begins with, or nothing, and the rest."""
    end, dot, rest = name.partition(".")
    return (end, rest) if dot and end in ENDS else ("", name)


def of_end(settings: Mapping[str, Value], end: str) -> dict[str, Value]:
    """Return which ``settings`` ``end`` has: what is of both ends, and its own, without the end."""
    split = ((*split_end(name), value) for name, value in settings.items())
    return {name: value for whose, name, value in split if whose in ("", end)}


def shorten(name: str) -> str:
    """Return the name of a setting as it is kept: ``net.ipv4.tcp_sack`` is ``tcp_sack``."""
    end, rest = split_end(name)
    if rest.startswith(("net.ipv4.", "net.core.")):
        rest = rest.removeprefix("net.")
    rest = rest.removeprefix("ipv4.")
    return f"{end}.{rest}" if end else rest


def sysctl_path(name: str) -> str:
    """Return the full name of a sysctl that is kept as ``tcp_sack`` or ``core.somaxconn``."""
    return f"net.{name}" if name.startswith("core.") else f"net.ipv4.{name}"


def normal(value: Value) -> Value:
    """Return ``value`` with single spaces, and as a number where it is one."""
    if isinstance(value, int):
        return value
    text = " ".join(value.split())
    return int(text) if re.fullmatch(r"-?(0|[1-9][0-9]{0,19})", text) and text != "-0" else text


def is_sysctl(name: str) -> bool:
    """Return whether ``name``, without an end, may be a sysctl: directly of ipv4 or of core."""
    return _SYSCTL.fullmatch(name) is not None


def is_value(family: str, name: str, value: object) -> bool:
    """Return whether ``value`` can be that of a setting; ``name`` is without an end."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return False
    if family == "sysctl":
        if isinstance(value, int):
            return abs(value) < _LARGEST
        return _TEXT.fullmatch(" ".join(value.split())) is not None
    if name == CONGCTL:
        return isinstance(value, str) and re.fullmatch(ALGORITHM, value) is not None
    low, high = BOUNDS[name]
    return isinstance(value, int) and low <= value <= high
