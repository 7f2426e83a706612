"""Company of a page load: its neighbours, and the captures that prove what they did.

Standard library only: this is what a guest executes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from testbed.client.interface import LoadOrder
from testbed.lab.beside import HOSTS, NEIGHBOUR_DEVICE, REMOTE_DEVICE
from testbed.lab.laboratory import Lab
from testbed.lab.neighbours import KernelAccount, run_neighbours
from testbed.model import NEIGHBOUR_FILE, REMOTE_FILE, Condition
from testbed.model.traffic import parse_traffic
from testbed.wire.capture import HEADERS_BYTES, capture

_AT_REMOTE = "udp or tcp[tcpflags] & (tcp-syn | tcp-fin | tcp-rst) != 0"
"""Of bulk data no more, for each packet costs time of the processor."""


@contextmanager
def accompanied(
    condition: Condition, lab: Lab, order: LoadOrder, scratch: Path
) -> Iterator[KernelAccount]:
    """Have the neighbours of ``condition`` send while the block loads the page, then end them.

    Afterwards nothing of theirs is on the link, their account is whole and their captures are in
    ``scratch``: the neighbour's, and of its remote end what may be lost before or behind it.
    """
    neighbours, topology = parse_traffic(condition.traffic), lab.topology
    if not neighbours or order.load_ns is None:
        yield KernelAccount()
        return
    watched = ((HOSTS[0], NEIGHBOUR_DEVICE, NEIGHBOUR_FILE, ""),
               (HOSTS[1], REMOTE_DEVICE, REMOTE_FILE, _AT_REMOTE))  # fmt: skip
    with ExitStack() as undo:
        for host, device, file, only in watched:
            pcap, log = scratch / file, scratch / f"{file}.log"
            undo.enter_context(
                capture(topology.role(host), device, pcap, log, None, HEADERS_BYTES, only)
            )
        yield undo.enter_context(run_neighbours(topology, neighbours, order.load_ns, lab.drain))
