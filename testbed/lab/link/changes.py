"""Changes of the link in the middle of a load: blackouts and steps, at their times of virtual time.

A change replaces the settings of netem and tbf in place (rtnetlink(7)): what they hold stays, and
draws go on where they were.  While the line is down, all that it carries is lost; the buffer before
it goes on emptying.
"""

from __future__ import annotations

import ctypes
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import pairwise
from queue import SimpleQueue
from threading import Event, Thread

from testbed.lab.link.discipline import (
    BURSTS,
    Discipline,
    Disciplines,
    encode_discipline,
    head_of,
)
from testbed.lab.link.netem import wanted_disciplines
from testbed.lab.rtnetlink import NEWQDISC, REPLACE, open_control, order
from testbed.lab.topology import Topology
from testbed.model import LinkChange, LinkSpec
from testbed.model.impairments import Phase, phases

PR_SET_TIMERSLACK = 29
LOST = 100.0
Order = tuple[socket.socket, bytes]
"""A message, and the socket of the namespace that it is for."""
Begin = Callable[[int], None]
"""Tells when a load begins, of CLOCK_REALTIME in ns."""


def describe_phase(phase: Phase) -> str:
    """What the line is in a phase."""
    spec = phase.spec
    if phase.down:
        return "down"
    return f"rtt_ms {spec.rtt_ms:g}, down_kbit {spec.down_kbit}, up_kbit {spec.up_kbit}"


def list_changes(spec: LinkSpec, seed: int) -> tuple[Disciplines, ...]:
    """The disciplines that each change sets, in their order; the others stay as they are."""
    states = [_disciplines_of(phase, seed) for phase in phases(spec)]
    return tuple(
        {place: new for place, new in after.items() if new.settings != before[place].settings}
        for before, after in pairwise(states)
    )


def _disciplines_of(phase: Phase, seed: int) -> Disciplines:
    wanted = wanted_disciplines(phase.spec, seed)
    if not phase.down:
        return wanted
    return {
        place: _lose_all(one) if one.kind == "netem" and " " not in place[1] else one
        for place, one in wanted.items()
    }


def _lose_all(delay: Discipline) -> Discipline:
    # A packet that is doubled and lost goes on once; what is not there cannot be damaged.
    drawn = ("duplicate_pct", *BURSTS)
    kept = {name: value for name, value in delay.settings.items() if name not in drawn}
    return replace(delay, settings=kept | {"loss_pct": LOST})


@contextmanager
def changing(
    topology: Topology, spec: LinkSpec, seed: int, steps: list[LinkChange]
) -> Iterator[Begin]:
    """Change the link until the end of the block; what is yielded tells when the load begins.

    Args:
        topology: of the running lab, whose link is that of ``wanted_disciplines``.
        spec: with its ``changes``.
        seed: of what the link draws.
        steps: where what was performed is written down.

    Raises:
        OSError: the kernel refuses a change.
    """
    begun: SimpleQueue[int | None] = SimpleQueue()
    stop = Event()
    refused: list[OSError] = []
    with ExitStack() as undo:
        plan = _prepare(topology, spec, seed, undo)

        def perform() -> None:
            # Else the kernel may wake this thread up to 50 us late (prctl(2)).
            ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
            load_ns = begun.get()
            try:
                for phase, orders in plan:
                    if load_ns is None or stop.wait(_left_s(load_ns + phase.at_ns)):
                        return
                    steps.append(_perform(phase, orders, load_ns))
            except OSError as error:
                refused.append(error)

        thread = Thread(target=perform)
        thread.start()
        try:
            yield begun.put
        finally:
            stop.set()
            begun.put(None)
            thread.join()
    if refused:
        raise refused[0]


def _left_s(at_ns: int) -> float:
    return max(0, at_ns - time.time_ns()) / 1e9


def _prepare(
    topology: Topology, spec: LinkSpec, seed: int, undo: ExitStack
) -> list[tuple[Phase, list[Order]]]:
    """What to send for each change, and where; the undo closes the sockets."""
    controls: dict[str, socket.socket] = {}
    heads: dict[tuple[str, str], bytes] = {}
    for role in ("near", "far"):
        with topology.role(role).entered():
            controls[role] = undo.enter_context(open_control())
            heads |= {
                (where, place): head_of(place, one)
                for (where, place), one in wanted_disciplines(spec).items() if where == role
            }  # fmt: skip
    return [
        (phase, [(controls[place[0]], heads[place] + _describe(one))
                 for place, one in wanted.items()])
        for phase, wanted in zip(phases(spec)[1:], list_changes(spec, seed), strict=True)
    ]  # fmt: skip


def _describe(wanted: Discipline) -> bytes:
    """What a change says of a discipline: neither a seed nor a table, so that draws go on."""
    return encode_discipline(replace(wanted, drawn="", table=b""))


def _perform(phase: Phase, orders: Sequence[Order], load_ns: int) -> LinkChange:
    began_ns = time.time_ns()
    for control, body in orders:
        order(control, NEWQDISC, body, REPLACE)
    took_ns = time.time_ns() - began_ns
    return LinkChange(
        describe_phase(phase),
        phase.at_ns / 1e6,
        (began_ns - load_ns) / 1e6,
        took_ns / 1e6,
        began_ns,
    )
