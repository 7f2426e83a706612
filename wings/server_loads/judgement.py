"""Judgement of a load on a server: clients, server, both kernels and the capture have to agree.

Most of it is said twice: by the generator and the client's kernel, by the server's program and its
kernel, by counters and by the capture.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from testbed.kinds.judgement import Judgement
from testbed.mechanisms.checks import CHECKS
from testbed.model import Trial
from testbed.proof.check import find_problems
from testbed.proof.summary import summarise
from wings.server_loads.arrivals import check_retries, check_starts
from wings.server_loads.conduct import (
    check_exchanges,
    check_timers,
    count_handshake_acks,
    count_repeated,
    find_medians_s,
)
from wings.server_loads.counts import check_generator, check_link, check_server
from wings.server_loads.evidence import ServedEvidence, ServedObservation
from wings.server_loads.ledger import check_ledger, check_prices
from wings.server_loads.management import check_management, check_mechanism
from wings.server_loads.throughput import check_asked, check_responses

OBSERVATION = ServedObservation
OWN_CHECKS = (
    check_generator,
    check_server,
    check_link,
    check_ledger,
    check_mechanism,
    check_management,
    check_asked,
    check_responses,
    check_prices,
    check_starts,
    check_exchanges,
    check_timers,
    check_retries,
)
"""The checks of what a load on a server alone leaves."""


def judge(trial: Trial, observed: ServedObservation, out: Path) -> Judgement:
    """Return what both programs told of the load, if it came to its end, and what is proven.

    Raises:
        OSError, ValueError, LookupError: the capture cannot be read.
    """
    seen = ServedEvidence(trial, observed, out, bounded=True)
    if not all(map(seen.has, ("counters", "served_load", "capture"))):
        return Judgement(observed.served, None)
    problems = (*find_problems(seen, (*CHECKS, *OWN_CHECKS)), *observed.problems)
    repeated, answered = count_repeated(seen.flows.flows)
    served = replace(
        seen.served_load,
        syn_timers_s=find_medians_s(seen.flows.flows),
        repeated=repeated,
        repeated_answered=answered,
    )
    acks = count_handshake_acks(seen.flows) if seen.whole_capture else None
    return Judgement(served, replace(summarise(seen, problems), handshake_acks=acks))
