"""Web server of a page: the program that ran, by the kernel, and its QUIC, by its own words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

from testbed.proof.check import check, say_unshown
from testbed.proof.evidence import Evidence
from testbed.server.nginx import PROGRAMS

_STACK = re.compile(r": (\d+) packets of \d+ bytes, (\w+)$")


@check("web server", "condition")
def check_program(seen: Evidence) -> Iterator[str]:
    """The program that served is of the package asked for, by its process (proc_pid_exe(5))."""
    asked = seen.condition.web_server
    if asked == "nginx":
        return
    told, folder = seen.observed.server_program, str(PurePath(PROGRAMS[asked][0]).parent)
    if not told:
        yield say_unshown("web_server", asked)
    elif str(PurePath(told).parent) != folder:
        yield f"web_server = {asked}, but {told} served"


@check("stack of QUIC", "condition", "replay")
def check_stack(seen: Evidence) -> Iterator[str]:
    """The server's QUIC says that it has the initial window and the algorithm asked for."""
    asked, told = seen.condition.quic, _STACK.search(seen.replay.quic)
    packets, algorithm = told.groups() if told else ("nothing", "nothing")
    if asked.initcwnd_packets is not None and packets != str(asked.initcwnd_packets):
        yield f"initcwnd_packets = {asked.initcwnd_packets}, the server says {packets}"
    if asked.quic_control not in ("own", algorithm):
        yield f"quic_control = {asked.quic_control}, the server says {algorithm}"
