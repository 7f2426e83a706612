"""Evidence of a load on a server: what clients, server and both kernels left of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from testbed.capture.flows import Flow
from testbed.model.observation import Observation
from testbed.proof.evidence import Evidence, LackingError
from wings.server_loads.measurement import ServedLoad
from wings.server_loads.responses import SeenResponse, read_responses
from wings.server_loads.schedule import schedule_ns, split_retries
from wings.server_loads.spec import ServerLoad

HISTOGRAM_SHARE = 0.01
"""How exact a histogram of response times is, and a ledger in slices."""
LATE_NS = 100_000
"""What the generator's calls may take in virtual time."""
LATE_IN_REAL_TIME_NS = 2_000_000
"""Twice what 99 % of its starts may be late by: those of the first one and of another."""


@dataclass(frozen=True, slots=True)
class ServedObservation(Observation):
    """What a load on a server leaves.

    ``taken_later`` is how many segments each end's kernel had taken once the link had been read;
    ``counters`` are read before that.  ``sysctls`` are the server's once it was told how to manage
    connections, and ``workers`` the processes of its program.
    """

    served: ServedLoad | None = None
    sysctls: dict[str, str] = field(default_factory=dict)
    workers: int = 0
    taken_later: dict[str, int] = field(default_factory=dict)

    @property
    def measured(self) -> ServedLoad | None:
        """What became of the connections."""
        return self.served


@dataclass(frozen=True, eq=False)
class ServedEvidence(Evidence):
    """Evidence of a load on a server.

    The capture is bounded: where a load had more packets, its connections are those of the
    beginning, and only the counters tell of all.
    """

    observed: ServedObservation

    @cached_property
    def asked(self) -> ServerLoad:
        """The load that was asked for."""
        return self.trial.condition_as(ServerLoad)

    @cached_property
    def served_load(self) -> ServedLoad:
        """What became of the connections."""
        if self.observed.served is None:
            raise LackingError("the load did not end")
        return self.observed.served

    @cached_property
    def responses(self) -> list[SeenResponse]:
        """The connections of the capture, and when each was answered."""
        return read_responses(self.flows, self.asked.server.response_bytes)

    @cached_property
    def due_ns(self) -> Sequence[int]:
        """When connections of an open loop were to start, in ns from the beginning."""
        arrivals = self.asked.arrivals
        return (*schedule_ns(arrivals, self.trial.seed),) if arrivals.loop == "open" else ()

    @cached_property
    def first_and_retries(self) -> tuple[list[Flow], list[Flow]]:
        """The captured connections of an open loop that started when one was due, and others."""
        return split_retries(self.flows.flows, self.due_ns, self.late_ns)

    @property
    def late_ns(self) -> int:
        """By how much the generator may be late."""
        return LATE_NS if self.virtual_time else LATE_IN_REAL_TIME_NS

    @property
    def overloaded(self) -> bool:
        """The server may leave connections without an answer."""
        return True

    @property
    def own_client(self) -> bool:
        """All connections are the generator's."""
        return True
