"""Declaration of a program that trials run: its name, and the Debian packages that have it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Program:
    """One program.

    Attributes:
        name: what it is called by, and listed as.
        packages: the Debian packages that it and what it opens come in, separated by commas.
        places: files of ``/usr`` to look for it in, the first that exists; none: the guest's PATH.
    """

    name: str
    packages: str
    places: tuple[Path, ...] = ()
