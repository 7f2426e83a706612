"""Symbols of a kernel: names for the addresses on its console.

The pinned configurations have no CONFIG_KALLSYMS, which would change what is compiled.  So a kernel
prints addresses, and here each becomes what such a kernel would have printed (%pS of
Documentation/core-api/printk-formats.rst): the function, the offset in it, and its size.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

SYMBOLS_FILE = "System.map"
"""The addresses of a build's functions, beside its binary, as nm(1) lists them."""
MOST_BYTES = 4 << 20
"""A longer console stays as it is."""
_OF_CODE = re.compile(r"[0-9a-f]+ [tTwW] \S+$")
_LARGEST = 1 << 20
"""No function is so large: an address so far behind the last one is in none."""
_BRACKETED = re.compile(r"\[<([0-9a-f]{8,16})>\] (\? )?0x0*\1\b")
_ADDRESS = re.compile(r"\b0x([0-9a-f]{8,16})\b")


@dataclass(frozen=True, slots=True)
class Symbols:
    """The functions of a kernel: where each begins, in order, and its name."""

    starts: tuple[int, ...]
    names: tuple[str, ...]

    def name_of(self, address: int) -> str | None:
        """Return ``function+0xOFFSET/0xSIZE``; ``None``: no function is at ``address``."""
        place = bisect_right(self.starts, address) - 1
        if place < 0 or place + 1 == len(self.starts):
            return None
        start, end = self.starts[place : place + 2]
        if end - start > _LARGEST:
            return None
        return f"{self.names[place]}+{address - start:#x}/{end - start:#x}"

    def name_addresses(self, text: str) -> str:
        """Return ``text`` with a name in place of each address of a function."""

        def named(match: re.Match[str]) -> str:
            return self.name_of(int(match[1], 16)) or match[0]

        def in_trace(match: re.Match[str]) -> str:
            name = self.name_of(int(match[1], 16))
            return match[0] if name is None else f"[<{match[1]}>] {match[2] or ''}{name}"

        return _ADDRESS.sub(named, _BRACKETED.sub(in_trace, text))


def list_functions(system_map: str) -> str:
    """Return those lines of a build's System.map that are of functions."""
    lines = (line for line in system_map.splitlines() if _OF_CODE.match(line))
    return "".join(f"{line}\n" for line in lines)


def read_symbols(binary: Path) -> Symbols | None:
    """Return the functions of the kernel ``binary``; ``None`` where its build has not kept them."""
    try:
        found: dict[int, str] = {}  # of several at one address the first
        for line in binary.with_name(SYMBOLS_FILE).read_text("utf-8").splitlines():
            address, _, name = line.split(" ")
            found.setdefault(int(address, 16), name)
    except (OSError, ValueError):
        return None
    starts = tuple(sorted(found))
    return Symbols(starts, tuple(found[start] for start in starts))


def name_in_file(console: Path, symbols: Symbols) -> None:
    """Write names into the file ``console``, a regular one of ours."""
    if console.stat().st_size > MOST_BYTES:
        return
    # Of a guest that runs wild any byte may be there: each stays what it is.
    text = console.read_text("latin-1")
    named = symbols.name_addresses(text)
    if named != text:
        console.write_text(named, "latin-1")
