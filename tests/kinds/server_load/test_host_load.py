"""A short load on a server on the machine's own kernel, by each of the servers: proven."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from testbed.base.errors import MissingError
from testbed.base.places import built_part
from testbed.judge import conclude
from testbed.kernel import host
from testbed.kernel.host import HostKernel, open_host
from testbed.model import ArrivalSpec, LinkSpec, Record, ServerLoad, ServerSpec, TcpSpec, Trial
from testbed.model.served import Program
from testbed.server.mechanisms.program import build_program
from testbed.setup.bundle import make_bundle

RATE, SECONDS = 20, 2
# What a test cannot choose: how soon this machine lets the generator run.
LATE = "the generator was itself the limit: it lacked lateness"

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="the host kernel needs root"),
]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> HostKernel:
    """This machine's kernel."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("server and generator need a processor each")
    cache = tmp_path_factory.mktemp("cache")
    try:
        native, program = built_part("native"), build_program(cache)
    except MissingError as error:
        pytest.skip(str(error))
    opened = open_host(os.uname().release, make_bundle(cache, native).path)
    return replace(opened, management=program)


def run(kernel: HostKernel, out: Path, load: ServerLoad) -> Record:
    out.mkdir()
    trial = Trial(load, 0, 0, "host", os.uname().release)
    return conclude(trial, kernel.run(trial, None, out, 0, threading.Event()), out, "e", 1)


@pytest.mark.parametrize("fast_open", [False, True])
@pytest.mark.parametrize("program", get_args(Program))
def test_all_are_answered_and_all_is_proven(
    kernel: HostKernel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: Program,
    fast_open: bool,
) -> None:
    monkeypatch.setattr(host, "await_idle", lambda cancel: not cancel.is_set())
    load = ServerLoad(
        ServerSpec(program=program),
        ArrivalSpec(rate_per_s=RATE, warm_up_s=0, duration_s=SECONDS),
        LinkSpec(rtt_ms=20.0, down_kbit=20_000, up_kbit=20_000),
        TcpSpec(tfo=fast_open),
    )
    record = run(kernel, tmp_path / "out", load)
    assert record.lab is not None and record.proof is not None and record.served is not None, (
        record.reason
    )
    assert [problem for problem in record.proof.problems if problem != LATE] == []
    found = record.served
    assert found.answered == found.started == RATE * SECONDS
    counts = ("accepted", "requests", "responses")
    assert [found.server[name] for name in counts] == [RATE * SECONDS] * 3
    assert found.server_cpu_pct is not None and 0 <= found.server_cpu_pct <= 100
    assert found.management["syns"] == RATE * SECONDS + fast_open  # one more for the cookie
    assert (record.proof.syn_data_acked == RATE * SECONDS) is fast_open
    assert found.prices_ns == {}


def test_more_workers_than_processors_are_refused(
    kernel: HostKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "await_idle", lambda cancel: not cancel.is_set())
    load = ServerLoad(ServerSpec(workers=len(os.sched_getaffinity(0))), ArrivalSpec())
    record = run(kernel, tmp_path / "out", load)
    assert record.outcome == "unsupported", record.reason
    assert record.reason is not None and "lower workers" in record.reason
