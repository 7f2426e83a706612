"""Which kernels there are, in which versions, and how many trials at once they run."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from testbed.errors import ConfigurationError
from testbed.kernel import KERNELS, kernel_versions, open_kernel
from testbed.kernel.fake import FakeKernel
from testbed.kernel.host import HostKernel
from testbed.kernel.pin import DEFAULT_VERSION, pins
from testbed.kernel.protocol import REAL_TIME
from testbed.prepare import fitting_jobs, read_catalogue


def test_versions() -> None:
    assert kernel_versions("virtual") == pins()
    assert kernel_versions("virtual")[0] == DEFAULT_VERSION
    assert kernel_versions("host") == (os.uname().release,)
    assert set(read_catalogue().kernels) == set(KERNELS)


def test_a_kernel_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="one of virtual, host"):
        open_kernel("hots", "1", tmp_path, tmp_path, print)


def test_the_host_runs_in_real_time(tmp_path: Path) -> None:
    assert HostKernel("1", tmp_path, {}).name in REAL_TIME
    assert HostKernel("1", tmp_path, {}).real_time


@pytest.mark.parametrize(("real_time", "jobs", "fitting"), [(False, 4, 4), (True, 4, 1)])
def test_jobs(
    real_time: bool,
    jobs: int,
    fitting: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "testbed")
    assert fitting_jobs(FakeKernel(real_time=real_time), jobs) == fitting
    told = ["kernel fake measures in real time: one trial at a time"] if real_time else []
    assert caplog.messages == told
