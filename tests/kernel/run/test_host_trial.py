"""Real trials on the host's kernel: measured, proven, without a trace, two runs at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.errors import MissingError
from testbed.base.places import PAGES, ROOT
from testbed.base.places import cache as cache_folder
from testbed.kernel.build.native import ensure_native
from testbed.kernel.run import host
from testbed.kernel.run.host import HostKernel, open_host
from testbed.model import Condition, LinkSpec, PageLoad, Record, TcpSpec, Trial
from testbed.pages.build import build_page
from testbed.root.cache import Root
from testbed.runner.judge import conclude
from tests.kernel.host_state import await_that, list_named, read_host_state
from tests.patience import make_patient_bundle

RUNNER = """\
import sys, threading
from pathlib import Path
from testbed.kernel.run import host
from tests.kernel.run.test_host_trial import trial
host.await_idle = lambda cancel: True
bundle, page, out, usr = map(Path, sys.argv[1:])
host.HostKernel("1", bundle, usr, {}).run(trial("graph"), page, out, 0, threading.Event())
"""

pytestmark = [
    pytest.mark.machine, pytest.mark.root, pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="the host kernel needs root"),
]  # fmt: skip


def trial(client: str) -> Trial:
    """A short load with Fast Open."""
    condition = Condition("wikipedia", client, LinkSpec(rtt_ms=20.0), TcpSpec(tfo=True))
    return Trial(condition, 0, 0, "host", os.uname().release)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory, root: Root) -> HostKernel:
    """This machine's kernel."""
    try:
        native = ensure_native(cache_folder(), print)
    except MissingError as error:
        pytest.skip(str(error))
    cache = tmp_path_factory.mktemp("cache")
    return open_host(os.uname().release, make_patient_bundle(cache, native, root).path, root.usr)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built page."""
    return build_page(PAGES / "wikipedia", tmp_path_factory.mktemp("pages"))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "await_idle", lambda cancel: not cancel.is_set())


def run(kernel: HostKernel, page: Path, out: Path, slot: int = 0, client: str = "graph") -> Record:
    """Run one trial and judge it."""
    out.mkdir()
    asked = trial(client)
    raw = kernel.run(asked, page, out, slot, threading.Event())
    return conclude(asked, raw, out, "e", 1)


def require_proven(record: Record) -> None:
    """Whatever else the machine did, which a test cannot choose, the trial is right.

    A machine that was busy in the middle of a load may have torn a flight apart.
    """
    assert record.outcome in ("ok", "lab_mismatch"), record.reason
    assert record.lab is not None and record.proof is not None
    assert record.measured_as(PageLoad) is not None
    assert record.lab.problems == ()
    assert record.proof.problems == () or record.outcome == "lab_mismatch"
    assert record.proof.syn_data_acked > 0
    assert {"steal_pct", "others_pct", "load_1min", "cpu_s", "stray_packets"} < set(record.machine)


@pytest.mark.nightly(but="^(graph|chromium)$")
@pytest.mark.parametrize(
    "client", ["graph", "wget2", pytest.param("chromium", marks=pytest.mark.browser)]
)
def test_each_client(kernel: HostKernel, page: Path, tmp_path: Path, client: str) -> None:
    before = read_host_state()
    record = run(kernel, page, tmp_path / "out", client=client)
    assert read_host_state() == before
    require_proven(record)
    assert record.cost is not None
    assert record.cost.cpu_s > record.machine["cpu_s"] > 0
    queued = {"server_queued_ms", "server_queued_pct"}
    queued |= {"client_queued_ms", "client_queued_pct"} if client == "chromium" else set()
    assert {name for name in record.machine if "queued" in name} == queued
    assert all(record.machine[name] >= 0 for name in queued)


@pytest.mark.browser
def test_the_browser_has_its_sandbox(kernel: HostKernel, page: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, kernel, page, tmp_path / "out", client="chromium")
        found: set[tuple[str, str]] = set()
        while not running.done():
            # Where glibc moves the environment, as 2.36 does for GLIBC_TUNABLES, Chromium leaves
            # titles alone, and renderers keep that of the zygote that they are copies of.
            for kind in ("zygote", "renderer"):
                found |= {read_confinement(pid) for pid in list_named(f"--type={kind}")}
        require_proven(running.result())
    # The client's user, and with the filter of system calls, which a guest has to leave out.
    assert ("1000", "2") in found


def test_two_at_once_both_finish(kernel: HostKernel, page: Path, tmp_path: Path) -> None:
    before = read_host_state()
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(run, kernel, page, tmp_path / str(slot), slot) for slot in (0, 1)]
        for each in running:
            require_proven(each.result())
    assert read_host_state() == before


def test_kill_9_in_the_middle_leaves_nothing(
    kernel: HostKernel, page: Path, tmp_path: Path
) -> None:
    before, out = read_host_state(), tmp_path / "out"
    out.mkdir()
    argv = (sys.executable, "-c", RUNNER, str(kernel.bundle), str(page), str(out), str(kernel.usr))
    with proc.started(argv, cwd=ROOT) as runner:
        await_that(lambda: bool(list_named(f"ff{runner.pid}s0-")))
        os.kill(runner.pid, signal.SIGKILL)
        runner.wait()
        await_that(lambda: not list_named(f"ff{runner.pid}s0-"))
    assert read_host_state() == before


def read_confinement(pid: int) -> tuple[str, str]:
    """The user of a process, and how its system calls are filtered (2: by a program)."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # ended meanwhile
        return "", ""
    fields = {line.partition(":")[0]: line.split()[1:] for line in lines}
    return fields["Uid"][0], fields["Seccomp"][0]
