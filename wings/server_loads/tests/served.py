"""A results folder of loads on a server, with invented but plausible numbers, for the tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from testbed.model import Cost, Experiment, LabReading, LinkSpec, Measurement, Proof, Record, Trial
from tests.analysis.sample import ENVIRONMENT, write_results
from wings.server_loads.measurement import ServedLoad
from wings.server_loads.spec import ArrivalSpec, Mechanism, ServerLoad, ServerSpec

RATES = (600, 800, 1000, 1200, 1400)
CAPACITY = 1000.0


def loads(mechanisms: tuple[Mechanism, ...] = ("default", "abort")) -> tuple[ServerLoad, ...]:
    """A sweep over rates below and above what the server can take."""
    return tuple(
        ServerLoad(ServerSpec(mechanism=name), ArrivalSpec(rate_per_s=rate), LinkSpec(rtt_ms=2.0))
        for name in mechanisms
        for rate in RATES
    )


def served_record(load: ServerLoad, seed: int = 0, **changes: object) -> Record:
    """A proven record of ``load``."""
    rate = load.arrivals.rate_per_s
    replies = min(float(rate), CAPACITY - 100 * (load.server.mechanism == "default")) + seed
    started = rate * 10
    answered = min(started, round(replies * 10))
    trial = Trial(load, seed, seed, "virtual", "7.3")
    measured = ServedLoad(seconds=10, started=started, answered=answered, refused=0, reset=0,
                          timed_out=started - answered, broken=0, retries=0, established=answered,
                          syn_retransmissions=0, replies_per_s=replies,
                          failed_pct=100 * (started - answered) / started,
                          response_mean_ms=5.0 + seed, response_p50_ms=4.5, response_p99_ms=9.5,
                          lateness_p99_us=2.0, generator_cpu_s=0.0, all_started=started,
                          all_answered=answered)  # fmt: skip
    return Record(
        trial_id=trial.id,
        trial=trial,
        outcome="ok",
        environment=ENVIRONMENT.id,
        lab=LabReading((Measurement("rtt", "ms", 2.001, 2.0, 0.1),), {}),
        measured=replace(measured, **changes),  # type: ignore[arg-type]
        proof=Proof(started, started, 0, 0, 0, 0, 0, {}, {}),
        cost=Cost(2.0, 3.0, 30.0),
        artefacts={"client.pcap": "0" * 64},
    )


def write_served(folder: Path, seeds: int = 1, **changes: object) -> Path:
    """A run of the whole sweep."""
    plan = Experiment("overload", "A server under load", loads(), seeds, kind="server_load")
    records = [served_record(load, seed, **changes) for load in loads() for seed in range(seeds)]
    return write_results(folder, records, plan)


def served_of(record: Record) -> ServedLoad:
    """What became of the connections of a load on a server, which has to be there."""
    served = record.measured_as(ServedLoad)
    assert served is not None, (record.outcome, record.reason)
    return served
