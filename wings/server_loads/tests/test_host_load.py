"""A short load on a server on the machine's own kernel, by each of the servers: proven.

What the machine's other work decides is not asserted: how late the generator was, and how exact the
link; an inexact one is measured in tests of its own.
"""

from __future__ import annotations

import os
import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from testbed.base.errors import MissingError
from testbed.base.places import cache as cache_folder
from testbed.kernel.build.native import ensure_native
from testbed.kernel.run import host
from testbed.kernel.run.host import HostKernel, open_host
from testbed.model import LinkSpec, Record, TcpSpec, Trial
from testbed.root.cache import Root
from testbed.runner.judge import conclude
from tests.patience import make_patient_bundle
from wings.server_loads.mechanisms.program import build_program
from wings.server_loads.spec import ArrivalSpec, Mechanism, Program, ServerLoad, ServerSpec
from wings.server_loads.tests.served import served_of

RATE, SECONDS = 20, 2
COUNTED = re.compile(r"(?:delivered|received) (\d+) packets(?: but for (\d+))?.*? took (\d+)")
FEW = 10  # what is withheld is some hundreds
LATE = "the generator was itself the limit: it lacked lateness"

pytestmark = [
    pytest.mark.machine,
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="the host kernel needs root"),
]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory, root: Root) -> HostKernel:
    """This machine's kernel."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("server and generator need a processor each")
    cache = tmp_path_factory.mktemp("cache")
    try:
        native, program = ensure_native(cache_folder(), print), build_program(cache)
    except MissingError as error:
        pytest.skip(str(error))
    opened = open_host(os.uname().release, make_patient_bundle(cache, native, root).path, root.usr)
    return replace(opened, management=program)


def short_load(program: Program, fast_open: bool) -> Trial:
    load = ServerLoad(
        ServerSpec(program=program),
        ArrivalSpec(rate_per_s=RATE, warm_up_s=0, duration_s=SECONDS),
        LinkSpec(rtt_ms=20.0),
        TcpSpec(tfo=fast_open),
    )
    return Trial(load, 0, 0, "host", os.uname().release)


def require_measured(record: Record, fast_open: bool) -> None:
    """All connections were answered, and everybody says so."""
    found, proof = served_of(record), record.proof
    assert found is not None and proof is not None, record.reason
    assert [problem for problem in proof.problems if problem != LATE] == []
    assert found.answered == found.started == RATE * SECONDS
    counts = ("accepted", "requests", "responses")
    assert [found.server[name] for name in counts] == [RATE * SECONDS] * 3
    assert found.server_cpu_pct is not None and 0 <= found.server_cpu_pct <= 100
    assert found.management["syns"] == RATE * SECONDS + fast_open  # one more for the cookie
    assert (proof.syn_data_acked == RATE * SECONDS) is fast_open
    assert found.prices_ns == {}


def run_enclosed(
    kernel: HostKernel, trial: Trial, out: Path, monkeypatch: pytest.MonkeyPatch
) -> Record:
    monkeypatch.setattr(host, "await_idle", lambda cancel: not cancel.is_set())
    out.mkdir()
    return conclude(trial, kernel.run(trial, None, out, 0, threading.Event()), out, "e", 1)


@pytest.mark.nightly(but="^event-server-True$")
@pytest.mark.parametrize("fast_open", [False, True])
@pytest.mark.parametrize("program", get_args(Program))
def test_all_are_answered_and_all_is_proven(
    kernel: HostKernel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: Program,
    fast_open: bool,
) -> None:
    record = run_enclosed(kernel, short_load(program, fast_open), tmp_path / "out", monkeypatch)
    require_measured(record, fast_open)


@pytest.mark.nightly(but="^default$")
@pytest.mark.parametrize(
    "mechanism", ["default", "abort", "abort rst-syn", "abort rst-syn rst-fin", "no-syn-drop"]
)
def test_what_an_overloaded_server_withholds_from_its_kernel_is_accounted_for(
    kernel: HostKernel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mechanism: Mechanism,
) -> None:
    """A hundred connections a second for a server that takes 25, with room for eight."""
    load = ServerLoad(
        ServerSpec(
            mechanism=mechanism, listen_backlog=8, admission="linux-2.4", request_cost_us=40_000
        ),
        ArrivalSpec(rate_per_s=100, warm_up_s=0, duration_s=2, patience_s=4, syn_retries=2),
        LinkSpec(rtt_ms=20.0),
    )
    trial = Trial(load, 0, 0, "host", os.uname().release)
    record = run_enclosed(kernel, trial, tmp_path / "out", monkeypatch)
    found, proof, lab = served_of(record), record.proof, record.lab
    assert found is not None and proof is not None and lab is not None, record.reason
    told = [one for one in lab.changes if "its devices received" in one]
    told += [problem for problem in proof.problems if problem != LATE]
    assert [one for one in told if not is_between_readings(one)] == []
    assert 0 < found.answered < found.started
    assert found.management["withheld"] > 0


def is_between_readings(sentence: str) -> bool:
    """Whether it is about a few packets that were sent again between one counter and the next.

    In real time no two counters are read at once, and connections that were given up send on.
    """
    found = COUNTED.search(sentence)
    if found is None:
        return False
    came, less, taken = (int(one or 0) for one in found.groups())
    return abs(came - less - taken) <= FEW


def test_more_workers_than_processors_are_refused(
    kernel: HostKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = ServerLoad(ServerSpec(workers=len(os.sched_getaffinity(0))), ArrivalSpec())
    trial = Trial(load, 0, 0, "host", os.uname().release)
    record = run_enclosed(kernel, trial, tmp_path / "out", monkeypatch)
    assert record.outcome == "unsupported", record.reason
    assert record.reason is not None and "lower workers" in record.reason
