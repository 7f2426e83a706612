from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.model import Record
from wings.papers.reproductions.overload_curves import segments_of
from wings.papers.reproductions.overload_segments import CUT
from wings.papers.tests.reproductions.overloads import load_at, point, rebuilt
from wings.papers.tests.reproductions.sweeps import check_at, checks_at
from wings.server_loads.measurement import ServedLoad

NAME = "overload-segments"
PUBLISHED = ((1.0, (2_640_000, 2_640_011, 2_640_011, 2_640_011, 15_840_231)),
             (1.27, (3_360_000, 4_156_497, 3_323_742, 2_372_030, 16_968_566)),
             (1.55, (4_080_000, 6_385_607, 3_828_060, 2_236_980, 19_161_742)))  # fmt: skip
"""Expected SYNs, SYNs, ACKs of SYN-ACKs, established connections, segments received."""


def counted(multiple: float, counts: tuple[int, ...], *, whole: bool = True) -> Record:
    expected, syns, acks, established, total = counts
    record = point(load_at("default", multiple), 1000.0 if multiple == 1 else 700.0, 20.0,
                   all_started=expected, server={"syns": syns})  # fmt: skip
    assert record.proof is not None
    proof = replace(record.proof, handshake_acks=acks if whole else None,
                    server_counters={"TcpPassiveOpens": established,
                                     "TcpInSegs": total})  # fmt: skip
    return replace(record, proof=proof)


def test_the_published_table_agrees_with_itself(tmp_path: Path) -> None:
    found = rebuilt(tmp_path, NAME, [counted(*row) for row in PUBLISHED])
    assert {check.agreement for check in checks_at(found, "Table II")} == {"agrees"}
    assert len(checks_at(found, "Table II")) == 18
    growth = check_at(found, "the connections that are established do not")
    assert (growth.ours, growth.agreement) == ("in 2 of 2", "agrees")
    assert found.story[1] == (
        "At 1.55 times it a connection costs the server 1.57 SYNs instead of one, and of a hundred "
        "that clients begin 55 are established."
    )


def test_ours_stands_beside_the_published_one(tmp_path: Path) -> None:
    (grid,) = rebuilt(tmp_path, NAME, [counted(*row) for row in PUBLISHED]).tables
    assert grid.columns[:4] == ("Statistic", "at 1.00", "at 1.00, each", "at 1.00, each, published")
    assert grid.rows[-1][1:4] == (15_840_231, 6.0, "6.00")
    rows = {row[0]: row[4:7] for row in grid.rows}
    assert rows["Actual SYNs"] == (4_156_497, 1.237, "1.24")
    assert rows["Expected SYNs"] == (3_360_000, 1.0, 1.0)
    assert rows["Established connections for each SYN"] == (None, 0.571, "0.57")


def test_of_a_capture_that_is_not_whole_acks_are_not_counted(tmp_path: Path) -> None:
    found = rebuilt(tmp_path, NAME, [counted(*row, whole=False) for row in PUBLISHED])
    acks = checks_at(found, "ACKs of SYN-ACKs for each")
    assert [(check.agreement, check.why) for check in acks] == [("not measured", CUT)] * 6


def test_syns_of_a_capture_that_is_not_whole_are_no_count() -> None:
    record = counted(*PUBLISHED[0], whole=False)
    served = record.measured_as(ServedLoad)
    assert served is not None
    assert segments_of(record, served)["actual_syns"] == 2_640_011
    assert math.isnan(segments_of(record, replace(served, server={}))["actual_syns"])


@pytest.mark.parametrize("seeds", [1, 2])
def test_seeds_are_pooled(tmp_path: Path, seeds: int) -> None:
    records = [replace(one, trial=(trial := replace(one.trial, seed=seed, repetition=seed)),
                       trial_id=trial.id) for row in PUBLISHED for one in (counted(*row),)
               for seed in range(seeds)]  # fmt: skip
    (grid,) = rebuilt(tmp_path, NAME, records).tables
    assert grid.rows[1][1] == 2_640_011
