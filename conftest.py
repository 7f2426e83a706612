"""For all tests: what a skip means, and what Hypothesis tries.

In continuous integration (``CI`` is set) a skipped test is a failed one: the machine was not set up
as it should be, and nobody would notice.

Hypothesis tries the same examples each time, however long they take: whether the tests pass is a
matter of the code, not of the machine or the day.  ``--hypothesis-profile=explore`` draws others.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ("tests.workers",)
# A test measures, unless it is about a store of results.
os.environ["FIRSTFLIGHT_STORE"] = "none"

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", PATIENT)
settings.register_profile("firstflight", PATIENT, derandomize=True)
settings.load_profile("firstflight")


def is_ci() -> bool:
    """Whether this runs in continuous integration."""
    return os.environ.get("CI", "").lower() in {"1", "true"}


def fail_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure that keeps the skip's reason; expected failures stay."""
    if report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"skipped in continuous integration: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if is_ci():
        fail_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if is_ci():
        fail_skipped(report)
    return report


@pytest.fixture
def not_below_nohup() -> Iterator[None]:
    """SIGHUP is heeded, by what a test starts too, also where nohup(1) has it ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
