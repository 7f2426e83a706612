from __future__ import annotations

import pytest

from testbed.kernel import cpuid
from testbed.kernel.cpuid import FAULTS, VISIBLE, read_cpuid
from testbed.kernel.hardware import CPUINFO


def test_this_host_says_what_its_kernel_says() -> None:
    assert read_cpuid() == (FAULTS if "cpuid_fault" in CPUINFO.read_text().split() else VISIBLE)


def test_what_the_question_ends_with_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    for status, told in ((0, FAULTS), (1, VISIBLE)):
        monkeypatch.setattr(cpuid, "ASK", f"raise SystemExit({status})")
        assert read_cpuid() == told
