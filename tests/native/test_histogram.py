"""Histograms as HdrHistogram's own reader sees them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from hypothesis import given
from hypothesis import strategies as st

from testbed.base import proc
from tests.native.load import compile_driver

# Reads values, and writes the log; prints total, maximum, median, 99th percentile.
PROGRAM = """
#include <inttypes.h>
#include <stdio.h>
#include "histogram.h"

static struct histogram histogram;

int main(void)
{
	int64_t value;

	while (scanf("%" SCNd64, &value) == 1)
		record_value(&histogram, value);
	write_log_head(stdout, 1700000000500000000);
	write_interval(stdout, "times", &histogram, 2 * SECOND, SECOND);
	fprintf(stderr, "%" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 "\\n", histogram.total,
		histogram.largest, find_quantile(&histogram, 500), find_quantile(&histogram, 990));
}
"""
HOUR_NS = 3_600_000_000_000
VALUES = st.lists(
    st.one_of(
        st.integers(0, 5000), st.integers(0, HOUR_NS), st.sampled_from([2047, 2048, HOUR_NS])
    ),
    max_size=300,
)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_driver(tmp_path_factory.mktemp("histogram"), "histogram", PROGRAM)


def write_log(driver: Path, values: list[int]) -> tuple[Path, list[int]]:
    """The log of these values, and what the program itself knows of them."""
    done = proc.run((str(driver),), stdin=" ".join(map(str, values)))
    log = driver.with_name("log.hlog")
    log.write_text(done.stdout)
    return log, [int(number) for number in done.stderr.split()]


def read_log(log: Path) -> HdrHistogram:
    reader = HistogramLogReader(str(log), HdrHistogram(1, HOUR_NS, 3))
    try:
        return reader.get_next_interval_histogram()
    finally:
        reader.close()


@given(values=VALUES)
def test_it_is_what_the_library_would_have_counted(driver: Path, values: list[int]) -> None:
    theirs = HdrHistogram(1, HOUR_NS, 3)
    for value in values:
        theirs.record_value(value)
    log, (total, largest, median, most) = write_log(driver, values)
    ours = read_log(log)
    assert ours.get_total_count() == total == len(values)
    assert list(ours.counts[: ours.counts_len]) == list(theirs.counts[: theirs.counts_len])
    if values:
        assert largest == max(values)
        assert median == min(theirs.get_value_at_percentile(50), largest)
        assert most == min(theirs.get_value_at_percentile(99), largest)


def test_many_counts_are_more_than_one_stored_block(driver: Path) -> None:
    values = [index << 12 for index in range(500_000) for _ in range(1 + index % 2)]
    log, (total, *_) = write_log(driver, values)
    read = read_log(log)
    assert read.get_total_count() == total == len(values)
    assert read.get_mean_value() == pytest.approx(sum(values) / len(values), rel=0.001)


def test_times_of_the_interval(driver: Path) -> None:
    log, _ = write_log(driver, [3_500_000])
    read = read_log(log)
    assert read.get_start_time_stamp() == 1_700_000_002_500
    assert read.get_end_time_stamp() == 1_700_000_003_500
    assert read.tag == "times"
    assert log.read_text().splitlines()[-1].startswith("Tag=times,2.000,1.000,3.500000,HIST")


def test_what_is_too_long_counts_as_the_longest(driver: Path) -> None:
    _, (total, largest, _, _) = write_log(driver, [HOUR_NS * 2, -5])
    assert (total, largest) == (2, HOUR_NS)
