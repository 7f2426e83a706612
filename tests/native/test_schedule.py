"""Arrival schedules: fixed to the nanosecond, Poisson by its distribution, the same anywhere."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from scipy import stats

from testbed.base import proc
from tests.native.load import compile_driver
from wings.server_loads.schedule import schedule_ns
from wings.server_loads.spec import ArrivalSpec

PROGRAM = """
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "schedule.h"

int main(int count, char **arguments)
{
	bool poisson = !strcmp(arguments[2], "poisson");
	uint64_t seed = strtoull(arguments[3], NULL, 10);
	struct schedule schedule = make_schedule(atoll(arguments[1]), poisson, seed);

	schedule.burst = atoll(arguments[5]);
	schedule.every = atoll(arguments[6]);
	schedule.base_rate = atoll(arguments[7]);
	for (int i = 0; i < atoi(arguments[4]) && count; i++) {
		printf("%" PRId64 "\\n", next_arrival(&schedule));
		advance_schedule(&schedule);
	}
}
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_driver(tmp_path_factory.mktemp("schedule"), "schedule", PROGRAM)


def arrivals(driver: Path, rate: int, kind: str, seed: int, count: int,
             bursts: tuple[int, int, int] = (0, 0, 0)) -> list[int]:  # fmt: skip
    argv = (str(driver), *map(str, (rate, kind, seed, count, *bursts)))
    return [int(line) for line in proc.run(argv).stdout.split()]


@pytest.mark.parametrize("rate", [1, 3, 1000, 40_000, 999_983])
def test_fixed_arrivals_do_not_drift(driver: Path, rate: int) -> None:
    made = arrivals(driver, rate, "fixed", 1, 5000)
    assert made == [number * 1_000_000_000 // rate for number in range(5000)]


@pytest.mark.parametrize(("rate", "seed"), [(7, 1), (1000, 2), (40_000, 3), (40_000, 2**64 - 1)])
def test_poisson_arrivals_have_exponential_gaps(driver: Path, rate: int, seed: int) -> None:
    made = np.diff([0, *arrivals(driver, rate, "poisson", seed, 100_000)])
    mean = 1e9 / rate
    assert made.min() >= 0
    # Standard errors of mean and deviation of so many gaps are 0.3 and 0.45 %.
    assert made.mean() == pytest.approx(mean, rel=0.015)
    assert made.std() == pytest.approx(mean, rel=0.02)
    assert stats.kstest(made / mean, "expon").pvalue > 0.001


def test_poisson_gaps_do_not_depend_on_each_other(driver: Path) -> None:
    made = np.diff([0, *arrivals(driver, 1000, "poisson", 5, 100_000)])
    assert abs(np.corrcoef(made[1:], made[:-1])[0, 1]) < 0.015


def test_a_seed_decides(driver: Path) -> None:
    first = arrivals(driver, 1000, "poisson", 1, 100)
    assert arrivals(driver, 1000, "poisson", 1, 100) == first
    assert arrivals(driver, 1000, "poisson", 2, 100) != first
    # Whole numbers only: another processor or library has the same.
    assert first[:5] == [566561, 1537564, 2414913, 2819055, 3273993]


@pytest.mark.parametrize("kind", ["fixed", "poisson"])
@pytest.mark.parametrize(("rate", "base"), [(1000, 0), (1000, 300), (7, 3), (997, 996)])
def test_bursts_are_those_of_the_schedule_that_the_proof_has(
    driver: Path, kind: Literal["fixed", "poisson"], rate: int, base: int
) -> None:
    made = arrivals(driver, rate, kind, 5, 3000, (200_000_000, 1_500_000_000, base))
    asked = ArrivalSpec(
        rate_per_s=rate, spacing=kind, burst_s=0.2, every_s=1.5, base_rate_per_s=base,
        duration_s=3600,
    )  # fmt: skip
    assert made == [*islice(schedule_ns(asked, 5), 3000)]
    in_bursts = sum(at % 1_500_000_000 < 200_000_000 for at in made)
    of_all = 0.2 * rate / (0.2 * rate + 1.3 * base)
    assert in_bursts / len(made) == pytest.approx(of_all, abs=0.03)
