"""CPU time of two visits beside one, and of HTTP/3 beside HTTP/2, as ratios within one block."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from bench.result import Result, judge
from bench.table1 import run_config
from bench.work import Work
from testbed.base.errors import TrialError
from testbed.model import Condition, Record

MOST = 1.6
BLOCKS, QUICK_BLOCKS = 6, 2
ONE, TWO, HTTP3 = ("h2", 1), ("h2", 2), ("h3", 1)
CONFIG = """\
title = "What a second visit and HTTP/3 cost"
page = "wikipedia-h2"
client = "chromium"
web_server = "nginx-quic"
tls_resumption = true
link.rtt_ms = 100
leave_out = ["protocol=h3,visits=2"]

[sweep]
protocol = ["h2", "h3"]
visits = [1, 2]
"""


def measure(work: Work) -> Result:
    """Measure loads of each sort, which take turns: one of each for every seed."""
    folder = work.folder("visit-cost")
    config = folder / "visit-cost.toml"
    config.write_text(CONFIG)
    blocks = QUICK_BLOCKS if work.quick else BLOCKS
    records = run_config(config, folder / "results", ("-n", str(blocks))).records
    twice, quic = (ratios(records, sort, ONE) for sort in (TWO, HTTP3))
    ratio = statistics.median(twice)
    return Result(
        name="visit-cost", asked=f"two visits at most {MOST:g} times one",
        measured=f"{ratio:.2f} times; HTTP/3 {statistics.median(quic):.2f} times HTTP/2",
        verdict=judge(ratio <= MOST, in_full=blocks == BLOCKS), n=blocks,
        how="CPU time of wikipedia-h2 at 100 ms by Chromium; medians of ratios of the same seed",
        real_time=True, details={"two_visits": twice, "http3": quic},
    )  # fmt: skip


def ratios(records: Sequence[Record], sort: tuple[str, int], other: tuple[str, int]) -> list[float]:
    """Return what loads of a ``sort`` cost, times those of ``other`` with the same seed.

    Raises:
        TrialError: a load did not count.
    """
    cpu_s: dict[tuple[str, int], dict[int, float]] = {sort: {}, other: {}}
    for record in records:
        if record.outcome != "ok" or record.cost is None:
            raise TrialError(f"a load of two visits or one: {record.reason}")
        asked = record.trial.condition_as(Condition)
        key = (asked.protocol, asked.visits)
        cpu_s.setdefault(key, {})[record.trial.seed] = record.cost.cpu_s
    return [cpu_s[sort][seed] / cost for seed, cost in sorted(cpu_s[other].items())]
