"""Judgement of a second load of the page, by a neighbour: the checks of the first one's."""

from __future__ import annotations

from dataclasses import dataclass, replace

from testbed.capture.packets import Capture
from testbed.kinds.page_load.measurement import SecondLoad
from testbed.lab.neighbour_hosts import ADDRESSES
from testbed.mechanisms.checks import CHECKS
from testbed.model import Condition, NeighbourFlow, TcpSpec
from testbed.model.traffic import Neighbour
from testbed.proof.browser_log import BrowserLog
from testbed.proof.check import find_contradictions
from testbed.proof.evidence import Evidence, LackingError
from testbed.proof.neighbours.flow import check_began, rate_kbit


@dataclass(frozen=True, eq=False)
class SecondEvidence(Evidence):
    """Evidence of a second load: its hosts have a kernel's defaults, whatever is asked of TCP."""

    @property
    def tcp(self) -> TcpSpec:
        """It has none of the condition's."""
        raise LackingError("neighbours have their kernel's own TCP")

    @property
    def condition(self) -> Condition:
        """It has none of its own."""
        raise LackingError("neighbours are not asked for")

    @property
    def logs(self) -> tuple[BrowserLog, ...]:
        """Its client's log is not kept."""
        raise LackingError("the log of a second load is not kept")

    @property
    def at_server(self) -> Capture:
        """It is not captured at its server."""
        raise LackingError("nothing was captured at the neighbours' server")


def judge_second(
    neighbour: Neighbour, second: SecondLoad, capture: Capture, first: Evidence
) -> tuple[NeighbourFlow, tuple[str, ...]]:
    """Return what a second load came to, and a sentence for each thing not as asked or told.

    ``capture`` has what the neighbour sent to the second page's servers, and got of them; ``first``
    is the evidence of the load that it was second to.
    """
    client, load, window = ADDRESSES[0], second.load, first.window
    observed = replace(
        first.observed, load=load, replay=second.replay, connections=second.connections,
        counters=None, hosts=None, neighbours=(),
    )  # fmt: skip
    shown = {"whole_and_damaged": (capture, ()), "neighbour_account": None, "line_shared": True}
    seen = SecondEvidence(first.trial, observed, first.out, (client,), shown=shown)
    began_ns = min((p.at_ns for p in capture.packets), default=0)
    moved = sum(
        p.payload_bytes for p in capture.packets
        if p.target == client and window.start_ns <= p.at_ns <= window.end_ns
    )  # fmt: skip
    problems = (*check_began(neighbour, began_ns, window), *find_contradictions(seen, CHECKS))
    return NeighbourFlow(
        *(neighbour.text, 1, "down", window.since_s(began_ns), rate_kbit(moved, window)),
        fetches=len(load.requests),
        plt_ms=load.plt_ms,
    ), problems
