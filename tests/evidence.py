"""Evidence of a trial that was never run: some parts of it, given by their names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testbed.lab.topology import CLIENT_ENDS
from testbed.mechanisms.fast_open.proof import check_arm, check_connected, check_counters
from testbed.model import Condition, LinkSpec, Proof, TcpSpec, Trial
from testbed.model.observation import Observation
from testbed.proof.check import Check
from testbed.proof.evidence import Evidence
from testbed.proof.summary import summarise


def evidence(
    link: LinkSpec | None = None,
    tcp: TcpSpec | None = None,
    *,
    condition: Condition | None = None,
    kernel: str = "virtual",
    clients: Sequence[bytes] = (),
    **shown: Any,
) -> Evidence:
    """Return evidence that has the parts ``shown``, of a condition or of its link and TCP."""
    asked = condition or Condition("p", "graph", link or LinkSpec(), tcp or TcpSpec())
    trial = Trial(asked, 0, 0, kernel, "7.3")
    nothing: dict[str, Any] = {"counted": {}, "quic": (), "traces": {}, "neighbour_account": None}
    ends = tuple(clients) or CLIENT_ENDS
    return Evidence(trial, Observation(), Path(), ends, shown=nothing | shown)


def found(check: Check, *asked: Any, **shown: Any) -> list[str]:
    """Return what a check finds in ``evidence`` of these parts."""
    return list(check(evidence(*asked, **shown)))


def prove(
    flows: Any, counters: dict[str, dict[str, int]], spec: TcpSpec, lost: int = 0, **shown: Any
) -> Proof:
    """Hold connections and counters against what ``spec`` asks of Fast Open."""
    seen = evidence(tcp=spec, flows=flows, counters=counters, lost=lost, **shown)
    checks = (check_connected, check_arm, check_counters)
    return summarise(seen, tuple(problem for each in checks for problem in each(seen)))
