"""Loads on a server with hand-picked numbers, as a run of an overload sweep writes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis.records.results import read_results
from analysis.report.publications import Rebuilt
from testbed.model import Experiment, LinkSpec, Record
from tests.analysis.sample import write_results
from wings.papers.publications import rebuild_as
from wings.papers.published.reference import read_reference
from wings.server_loads.spec import ArrivalSpec, Mechanism, ServerLoad, ServerSpec
from wings.server_loads.tests.served import served_of, served_record

SATURATION = 1000
PRICES = {"syn": 100_000, "segment": 50_000, "accept": 100_000, "request": 200_000,
          "close": 100_000}  # fmt: skip
"""A connection costs 0.95 ms by them: a capacity of 1,052.6 a second."""


def load_at(mechanism: Mechanism, multiple: float, *, win_emu: bool = False,
            close_rst: bool = False, **server: Any) -> ServerLoad:  # fmt: skip
    """An arm at a multiple of the saturation."""
    return ServerLoad(ServerSpec(mechanism=mechanism, **server),
                      ArrivalSpec(rate_per_s=round(SATURATION * multiple),
                                  retries_refused=2 * win_emu,
                                  ending="rst" if close_rst else "fin"),
                      LinkSpec(rtt_ms=2.0))  # fmt: skip


def point(load: ServerLoad, replies: float, response_ms: float, failed_pct: float = 0.0,
          seed: int = 0, **changes: Any) -> Record:  # fmt: skip
    """A proven load: replies a second, the mean response, and the share that failed."""
    record = served_record(load, seed)
    measured: dict[str, Any] = {"replies_per_s": replies, "response_mean_ms": response_ms,
                                "failed_pct": failed_pct, "prices_ns": PRICES,
                                "started": load.arrivals.rate_per_s * 10}  # fmt: skip
    return replace(record, measured=replace(served_of(record), **measured, **changes))


def rebuilt(
    folder: Path, name: str, records: Iterable[Record], saturation: int | None = SATURATION
) -> Rebuilt:
    """What the module of the publication ``name`` makes of exactly these records."""
    kept = tuple(records)
    planned = tuple(dict.fromkeys(record.trial.condition for record in kept))
    experiment = Experiment(name, "An overload", planned, reference=name, kind="server_load",
                            saturation_per_s=saturation,
                            repetitions=max((record.trial.repetition + 1 for record in kept),
                                            default=1))  # fmt: skip
    publication = rebuild_as(
        read_results(write_results(folder, kept, experiment)), read_reference(name)
    )
    assert publication is not None
    return publication
