"""Where two runs part: the first packet and the first system call, from files made by hand."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.base.errors import TestbedError
from testbed.kernel.run.interface import RawResult
from testbed.kernel.run.virtual import TRACE_FILE
from testbed.model import CAPTURE_FILE, Condition, Record, Replay, Trial
from testbed.setup.determinism import (
    TRACE_RECORD,
    check_determinism,
    first_line_apart,
    read_call_names,
    read_calls,
)
from tests.capture.packets import ACK, CLIENT, PUSH, REQUEST, SERVER, Capture

TRIAL = Trial(Condition("p", "graph"), 0, 0, "virtual", "7.3")


def leave_traces(folder: Path, port: int, result: int, request: bytes = REQUEST) -> None:
    """A capture of one request and a trace of two system calls."""
    capture = Capture()
    capture.add((CLIENT, port), (SERVER, 80), ACK | PUSH, 1, 1, request)
    capture.write(folder / CAPTURE_FILE)
    calls = [
        TRACE_RECORD.pack(1_000_000_000, 3, 5, 6, 7, 42, 0, b"curl"),
        TRACE_RECORD.pack(2_500_000_000, result, 1, 2, 3, 42, 1, b"curl"),
    ]
    (folder / TRACE_FILE).write_bytes(b"".join(calls))


@dataclass
class TwoFaced:
    """A kernel whose boot number ``odd`` does something else."""

    odd: int
    port: int = 2001
    request: bytes = REQUEST
    name: str = "virtual"
    real_time: bool = False
    version: str = "7.3"
    confinement: str = "none"

    def identity(self) -> dict[str, str]:
        return {}

    def run(
        self, trial: Trial, page: Path | None, out: Path, slot: int, cancel: threading.Event
    ) -> RawResult:
        other = int(out.name) == self.odd
        if other:
            leave_traces(out, self.port, -11, self.request)
        else:
            leave_traces(out, 2000, 9)
        return RawResult("ended", "", "", None, out)


def conclude(trial: Trial, raw: RawResult, out: Path, environment: str, attempt: int) -> Record:
    content = (out / CAPTURE_FILE).read_bytes().hex()
    return Record(trial.id, trial, "ok", environment, artefacts={CAPTURE_FILE: content})


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_equal_boots_have_no_difference(tmp_path: Path, jobs: int) -> None:
    assert check_determinism(TwoFaced(-1), TRIAL, tmp_path, conclude, 5, jobs) == ()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_boot_that_differs_is_shown_where_it_parts(tmp_path: Path, jobs: int) -> None:
    (text,) = check_determinism(TwoFaced(3), TRIAL, tmp_path, conclude, 5, jobs)
    assert text.startswith("boot 3 is not boot 0:")
    assert "first packet that differs: number 0" in text
    assert "10.0.0.2:2000 > 10.10.0.1:80" in text
    assert "10.0.0.2:2001 > 10.10.0.1:80" in text
    assert "first system call that differs: number 1" in text
    assert "= 9" in text
    assert "= -11" in text


def test_a_packet_that_differs_for_its_ends_is_shown_as_they_see_it(tmp_path: Path) -> None:
    kernel = TwoFaced(1, port=2000, request=REQUEST + b"?")
    (text,) = check_determinism(kernel, TRIAL, tmp_path, conclude, 2, 1)
    assert "packets, base is boot 0 and new is boot 1:" in text
    assert "The captures part at packet 1 (1 in base, 1 in new): length 39 in base" in text


def test_a_boot_whose_requests_were_answered_otherwise_differs(tmp_path: Path) -> None:
    def answer(trial: Trial, raw: RawResult, out: Path, environment: str, attempt: int) -> Record:
        return Record(trial.id, trial, "ok", environment, replay=Replay(int(out.name == "1")))

    (text,) = check_determinism(TwoFaced(-1), TRIAL, tmp_path, answer, 3, 1)
    assert text.startswith("boot 1 is not boot 0:")
    assert "every packet is the same" in text


def test_a_boot_without_a_measurement_ends_the_check(tmp_path: Path) -> None:
    def fail(trial: Trial, raw: RawResult, out: Path, environment: str, attempt: int) -> Record:
        return Record(trial.id, trial, "failed", environment, reason="no browser")

    with pytest.raises(TestbedError, match="boot 0: failed: no browser"):
        check_determinism(TwoFaced(-1), TRIAL, tmp_path, fail, 2, 1)


def test_first_line_apart() -> None:
    lines = first_line_apart("item", iter("abcd"), iter("abxd"))
    assert lines == ["  first item that differs: number 2", "      both a", "      both b",
                     "       one c", "     other x"]  # fmt: skip
    assert first_line_apart("item", iter("ab"), iter("a"))[-1] == "     other (no more)"
    assert first_line_apart("item", iter("ab"), iter("ab")) == ["  every item is the same"]


def test_what_is_read(tmp_path: Path) -> None:
    leave_traces(tmp_path, 2000, -11)
    header = tmp_path / "unistd.h"
    header.write_text("#define __NR_read 0\n#define __NR_write 1\n")
    names = read_call_names(header)
    assert list(read_calls(tmp_path / TRACE_FILE, names)) == [
        "1.000000000 s curl[42] read(0x5, 0x6, 0x7) = 3",
        "2.500000000 s curl[42] write(0x1, 0x2, 0x3) = -11",
    ]
    assert read_call_names(tmp_path / "absent.h") == {}
