"""What of a machine goes into an environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.kernel.run import hardware
from testbed.kernel.run.hardware import (
    FAULTS,
    UNKNOWN,
    VISIBLE,
    parse_processor,
    read_cpuid,
    read_hardware,
    read_mitigations,
)

A_PROCESSOR = """\
processor\t: 0
model name\t: A Processor @ 3.0GHz
stepping\t: 1
microcode\t: 0x10
cpu MHz\t\t: 2999.1

processor\t: 1
model name\t: Another
"""


def test_the_processor_without_what_changes_all_the_time() -> None:
    assert parse_processor(A_PROCESSOR) == (
        "model name A Processor @ 3.0GHz, stepping 1, microcode 0x10"
    )
    assert parse_processor("") == UNKNOWN


def test_mitigations(tmp_path: Path) -> None:
    assert read_mitigations(tmp_path / "none") == UNKNOWN
    (tmp_path / "mds").write_text("Not affected\n")
    assert read_mitigations(tmp_path) == "none needed"
    (tmp_path / "spectre_v1").write_text("Mitigation: barriers\n")
    (tmp_path / "meltdown").write_text("Vulnerable\n")
    assert read_mitigations(tmp_path) == "meltdown: Vulnerable; spectre_v1: Mitigation: barriers"


def test_this_machine() -> None:
    found = read_hardware()
    assert found["build"] == os.uname().version
    assert found["processors"] == str(len(os.sched_getaffinity(0)))
    assert read_hardware() == found


def test_this_host_says_what_its_kernel_says() -> None:
    assert read_cpuid() == (
        FAULTS if "cpuid_fault" in hardware.CPUINFO.read_text().split() else VISIBLE
    )


def test_what_the_question_ends_with_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    for status, reported in ((0, FAULTS), (1, VISIBLE)):
        monkeypatch.setattr(hardware, "ASK", f"raise SystemExit({status})")
        assert read_cpuid() == reported
