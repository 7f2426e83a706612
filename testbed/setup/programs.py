"""Programs that trials run, and where a root has them."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

from testbed.client import CLIENTS
from testbed.client.program import Program
from testbed.kernel.run.enclosure import PATH
from testbed.server.nginx import NGINX, PROGRAMS

USR = Path("/usr")

BASE = (
    Program("dnsmasq", packages="dnsmasq-base"),
    Program("ip", packages="iproute2"),
    Program("nginx", packages="nginx, libnginx-mod-http-echo"),
    *(Program(name, "", (Path(argv[-1]),)) for name, argv in PROGRAMS.items() if argv != NGINX),
    Program("python3", packages="python3"),
    Program("tcpdump", packages="tcpdump"),
)
"""What every trial may run; what a client runs besides, it declares itself."""


def find(program: Program, usr: Path) -> Path | None:
    """Return a program's file in the root ``usr``, without links; ``None``: it is not there."""
    if program.places:
        places = (usr / place.relative_to(USR) for place in program.places
                  if place.is_relative_to(USR))  # fmt: skip
        file = next((path for path in places if path.is_file()), None)
    else:
        on_path = shutil.which(program.name, path=PATH.replace(str(USR), str(usr)))
        file = Path(on_path) if on_path else None
    return file.resolve() if file else None


def package_names(program: Program) -> tuple[str, ...]:
    """Return the Debian packages of a program; its own comes first; none: a component has it."""
    return tuple(word.strip() for word in program.packages.split(",") if word.strip())


def programs_of(clients: Collection[str]) -> tuple[Program, ...]:
    """Return the programs of trials with ``clients``."""
    return (*BASE, *(program for name in sorted(clients) for program in CLIENTS[name].programs))
