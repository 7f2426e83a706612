"""Declaration of a program that trials run: name, Debian packages, files that it opens.

Bootstrap installs the packages, ``doctor`` looks for the program, and the environment of results
names the versions.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LIBRARIES = "/usr/lib/x86_64-linux-gnu"


@dataclass(frozen=True, slots=True)
class Program:
    """One program and what it opens beyond the libraries that it is linked with.

    Attributes:
        name: what it is called by, and listed as.
        packages: the Debian packages that it and what it opens come in, separated by commas, each
            with its least version if there is one: ``nodejs >= 18, npm``.  Bootstrap reads them
            from the source by this keyword: write them as one literal.
        version: its argument that makes it say its version; empty: it is not asked.
        places: files to look for it in, the first that exists; none: the guest's PATH.
        opens: patterns of files; ``{target}`` is the program's own name and ``{folder}`` its
            folder, both without links.
    """

    name: str
    packages: str
    version: str = "--version"
    places: tuple[Path, ...] = ()
    opens: tuple[str, ...] = ()
