"""Mininet's door to the testbed's link: ``CalibratedLink``, for scripts of one's own.

A Mininet ``Link`` with rates, delay and buffers as the testbed calibrates them.  It is measured
before its hosts get it and refuses where it is not what was asked: Mininet's own ``TCLink`` prints
an error and goes on without delay.  Runs in the system's Python, as Mininet does (mininet 2.3,
``docs/shell.md``); of the testbed it needs the standard library and nothing else.
"""

from __future__ import annotations

import atexit
import itertools
import os
import re
from collections.abc import Iterable
from contextlib import ExitStack
from inspect import signature
from math import isfinite
from pathlib import Path
from typing import Any

import mininet.net
from mininet.link import Intf, Link

from testbed.base import places, proc
from testbed.base.errors import ConfigurationError, MissingError
from testbed.kernel.build.native import find_native
from testbed.lab.bridged_link import open_wire
from testbed.lab.link.backend import choose_backend
from testbed.lab.link.protocol import LinkReport
from testbed.model import LinkSpec, Measurement
from testbed.model.knob import declared

OF_TCLINK = {"bw": "down_kbit and up_kbit", "delay": "rtt_ms, for both directions together",
             "loss": "loss_pct", "max_queue_size": "buffer_bytes"}  # fmt: skip
"""What does here what a parameter of Mininet's own TCLink does there."""
LINK_KNOBS = tuple(
    each.name
    for each in declared(LinkSpec)
    if each.type in (int, float, str) and not each.name.startswith(("profile", "changes", "trace"))
)
"""What a link is given: numbers and queues; profiles and traces are of experiment files."""
_numbers = itertools.count()


def leave_limits_alone() -> None:
    """Keep Mininet from rewriting the machine's sysctls, which all its other programs see."""
    mininet.net.fixLimits = lambda: None


class CalibratedLink(Link):  # type: ignore[misc]  # Mininet has no types
    """A link from ``node1``, as the client, to ``node2``; the knobs are those of a LinkSpec.

    ``net.addLink(h1, h2, cls=CalibratedLink, rtt_ms=100, down_kbit=4000)``; what is not named has
    the testbed's default (docs/knobs.md#link).  ``measurements`` are what was measured.
    """

    def __init__(self, node1: Any, node2: Any, seed: int = 0, **params: Any) -> None:
        """Make, measure and connect the link.

        Raises:
            ConfigurationError: there is no such knob, or it has a value that it cannot have.
            LabError: the link is not what was asked.
            MissingError: this kernel cannot emulate it, or the link's program is not built.
        """
        link_knobs = {name: params.pop(name) for name in LINK_KNOBS if name in params}
        check_names(params)
        self.spec = LinkSpec(**link_knobs)
        check_spec(self.spec)
        if type(seed) is not int or seed < 0:
            raise ConfigurationError([f"seed: {seed!r} is not a whole number from 0"])
        self.seed = seed
        self.measurements: tuple[Measurement, ...] = ()
        self._undo = ExitStack()
        atexit.register(self._undo.close)  # of a script that does not stop its network
        try:
            super().__init__(node1, node2, **params)
        except BaseException:
            self._undo.close()
            raise

    def makeIntfPair(  # noqa: N802 - Mininet's name
        self,
        intfname1: str,
        intfname2: str,
        addr1: str | None = None,
        addr2: str | None = None,
        node1: Any = None,
        node2: Any = None,
        deleteIntfs: bool = True,  # noqa: N803 - Mininet's name
    ) -> None:
        """Open the link, and give each node its end under the name that Mininet wants."""
        tag = f"ff{os.getpid()}l{next(_numbers)}-"
        backend = choose_backend(find_program())
        wire = self._undo.enter_context(open_wire(self.spec, tag, backend, self.seed))
        self.measurements, self._link = wire.measurements, wire.link
        for end, device, node, name, address in (
            (wire.topology.client, "c0", node1, intfname1, addr1),
            (wire.topology.server, "s0", node2, intfname2, addr2),
        ):
            inside = ("ip", "-n", end.name, "link", "set", "dev")
            proc.run((*inside, device, "down"))
            if address:
                proc.run((*inside, device, "address", address))
            proc.run((*inside, device, "name", name))
            proc.run((*inside, name, "netns", str(node.pid)))

    def read_report(self) -> LinkReport:
        """Return what the link did so far: packets delivered, dropped, lost, and how late.

        Raises:
            LabError: it has ended.
        """
        return self._link.read_report()

    def stop(self) -> None:
        """Take the link down."""
        self.delete()
        self._undo.close()


def check_names(params: Iterable[str]) -> None:
    """Refuse names that are no knob of the link nor of Mininet, which ignores unknown ones.

    Raises:
        ConfigurationError: with each of them.
    """
    known = {name for function in (Link.__init__, Intf.__init__, Intf.config)
             for name in signature(function).parameters}  # fmt: skip
    knobs = ", ".join(LINK_KNOBS)
    problems = [
        f"{name}: the link has no such knob"
        + (f"; for TCLink's {name} take {OF_TCLINK[name]}" if name in OF_TCLINK else "")
        + f" (knobs: {knobs})"
        for name in params
        if name not in known
    ]
    if problems:
        raise ConfigurationError(problems)


def check_spec(spec: LinkSpec) -> None:
    """Refuse values out of the range of a knob of the link.

    Raises:
        ConfigurationError: with each of them.
    """
    problems = []
    for declaration in declared(LinkSpec):
        value, knob = getattr(spec, declaration.name), declaration.knob
        if declaration.name not in LINK_KNOBS:
            continue
        if declaration.type is str:
            if not isinstance(value, str) or not re.fullmatch(knob.pattern, value):
                problems.append(f"{declaration.name}: {value!r} is not {knob.allowed}")
        elif isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            problems.append(f"{declaration.name}: {value!r} is not a number")
        elif declaration.type is int and not isinstance(value, int):
            problems.append(f"{declaration.name}: {value!r} is not a whole number")
        elif (
            (knob.low is not None and value < knob.low)
            or (knob.above is not None and value <= knob.above)
            or (knob.high is not None and value > knob.high)
        ):
            least = f"above {knob.above:g}" if knob.low is None else f"from {knob.low:g}"
            problems.append(
                f"{declaration.name}: {value:g} is not {least} to {knob.high:.10g} {knob.unit}"
            )
    if not problems and spec.buffer_bytes < spec.mtu_bytes + spec.framing_bytes:
        problems.append(f"buffer_bytes: {spec.buffer_bytes} cannot hold one packet")
    if problems:
        raise ConfigurationError(problems)


def find_program() -> Path:
    """Return the link's program.

    Raises:
        MissingError: none is built.
    """
    folder = find_native(places.cache())
    if folder is None:
        raise MissingError(
            f"the link's program is not built for this user (in {places.cache()}); run "
            "./run.sh run configs/quick.toml once"
        )
    return folder / "link"
