"""Section 6.2 of the TCP Fast Open paper: the server's processor over the rate, the closed loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.records.results import read_results
from analysis.report.publications import Rebuilt
from testbed.model import Experiment, LinkSpec, Record, TcpSpec, Trial
from tests.analysis.sample import write_results
from wings.papers.publications import rebuild_as
from wings.papers.published.reference import read_reference
from wings.papers.tests.reproductions.sweeps import check_at
from wings.server_loads.spec import ArrivalSpec, ServerLoad, ServerSpec
from wings.server_loads.tests.served import served_record

LINK = LinkSpec(rtt_ms=0.1)


def at_rate(rate: int, fast_open: bool, cpu_pct: float) -> Record:
    load = ServerLoad(
        ServerSpec(response_bytes=5120), ArrivalSpec(rate_per_s=rate), LINK, TcpSpec(tfo=fast_open)
    )
    return served_record(load, server_cpu_pct=cpu_pct)


def in_a_loop(fast_open: bool, per_s: float, seed: int = 0) -> Record:
    arrivals = ArrivalSpec(loop="closed", clients=1)
    load = ServerLoad(ServerSpec(), arrivals, LINK, TcpSpec(tfo=fast_open))
    found = served_record(load, seed, replies_per_s=per_s, server_cpu_pct=70.0)
    return replace(found, trial=Trial(load, seed, seed, "virtual", "7.3"))


def rebuilt(folder: Path, name: str, records: Sequence[Record]) -> Rebuilt:
    loads = tuple(dict.fromkeys(record.trial.condition_as(ServerLoad) for record in records))
    seeds = max(record.trial.repetition for record in records) + 1
    asked = Experiment(name, "", loads, seeds, kind="server_load")
    found = rebuild_as(read_results(write_results(folder, records, asked)), read_reference(name))
    assert found is not None
    return found


def test_the_processor_over_the_rate(tmp_path: Path) -> None:
    cpu = {1000: (15.0, 14.0), 3000: (45.0, 42.0), 6000: (90.0, 84.0)}
    records = [at_rate(rate, on, cpu[rate][on]) for rate in cpu for on in (False, True)]
    found = rebuilt(tmp_path, "fastopen-server-cpu", records)
    (grid,) = found.tables
    assert grid.rows[1] == (3000, 45.0, 42.0, -3.0, -6.7)
    assert "a model" in grid.note
    assert [figure.name for figure in found.figures] == ["server-cpu"]
    nearly = check_at(found, "nearly as busy")
    assert nearly.agreement == "differs"
    assert nearly.ours == "in 2 of 3; not in 6000 1/s requests a second (\u22126.0 points)"
    assert check_at(found, "between 2,000 and 5,000").ours == "in 1 of 1"


@pytest.mark.parametrize(("on_per_s", "agreement"), [(3548.7, "agrees"), (3140.0, "differs")])
def test_the_closed_loop(tmp_path: Path, on_per_s: float, agreement: str) -> None:
    found = rebuilt(
        tmp_path, "fastopen-closed-loop", [in_a_loop(False, 2876.4), in_a_loop(True, on_per_s)]
    )
    assert check_at(found, "Fast Open on").agreement == agreement
    assert check_at(found, "how many more").agreement == agreement
    assert check_at(found, "gets more").agreement == "agrees"
    assert len(found.checks) == 3  # what the price was fitted to is not held against itself
    (grid,) = found.tables
    assert grid.rows[0][:3] == ("off", 2876.4, 347.7)


def test_an_interval_may_be_too_wide(tmp_path: Path) -> None:
    rates = (3300.0, 3400.0, 3500.0, 3550.0, 3600.0, 3700.0, 3800.0)
    records = [in_a_loop(on, rates[seed] if on else 2876.4, seed) for seed in range(7)
               for on in (False, True)]  # fmt: skip
    found = rebuilt(tmp_path, "fastopen-closed-loop", records)
    assert check_at(found, "how many more").agreement == "our spread is too wide to say"
