"""Results folders for the tests of compare: given load times, on either kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from testbed.model import Condition, LinkSpec, Record, TcpSpec, Trial
from testbed.results.environment import Environment
from tests.analysis.sample import ENVIRONMENT, experiment, record, write_results
from tests.capture.conversation import Sent, write_capture

Times = Mapping[Condition, Sequence[float]]
FIRST = Condition("amazon", "chromium", LinkSpec(rtt_ms=20.0), TcpSpec(tfo=False))
SECOND = replace(FIRST, page="wsj")


def changed(**parts: str) -> Environment:
    """The environment with other parts."""
    named = {name.replace("__", "."): value for name, value in parts.items()}
    return replace(ENVIRONMENT, parts={**ENVIRONMENT.parts, **named})


def another_page() -> Environment:
    """The environment with another page, which is a treatment and no draw."""
    return replace(ENVIRONMENT, pages={**ENVIRONMENT.pages, "amazon": "cd" * 32})


def write_times(
    folder: Path, times: Times, kernel: str = "virtual", environment: Environment = ENVIRONMENT,
    **changes: Any,
) -> Path:  # fmt: skip
    """A folder with one record for each load time; repetition and seed count from 0."""
    records = [
        made(condition, seed, plt_ms, kernel, environment)
        for condition, values in times.items()
        for seed, plt_ms in enumerate(values)
    ]
    return write_records_of(folder, records, times, kernel, environment, **changes)


def write_records_of(
    folder: Path, records: Iterable[Record], conditions: Iterable[Condition],
    kernel: str = "virtual", environment: Environment = ENVIRONMENT, **changes: Any,
) -> Path:  # fmt: skip
    """A folder with ``records`` of the planned ``conditions``."""
    plan = experiment(1, conditions=tuple(conditions), kernel=kernel, reference=None)
    return write_results(folder, records, replace(plan, **changes), environment)


def made(
    condition: Condition, seed: int, plt_ms: float, kernel: str = "virtual",
    environment: Environment = ENVIRONMENT,
) -> Record:  # fmt: skip
    """A proven record on ``kernel``."""
    trial = Trial(condition, seed, seed, kernel, "7.3" if kernel == "virtual" else "6.1.0-28")
    return replace(record(condition, seed, plt_ms), trial_id=trial.id, trial=trial,
                   environment=environment.id, artefacts={"client.pcap": "ab" * 32})  # fmt: skip


def with_capture(folder: Path, load: Record, packets: list[Sent]) -> Record:
    """``load`` with a capture file in ``folder`` that its record names."""
    path = folder / "trials" / load.trial_id / "client.pcap"
    return replace(load, artefacts={"client.pcap": write_capture(path, packets)})
