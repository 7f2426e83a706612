"""Scenarios on the machine's own kernel, in its enclosure: performed, judged, and nothing left."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from testbed.base.errors import MissingError
from testbed.base.places import cache as cache_folder
from testbed.kernel.build.native import ensure_native
from testbed.kernel.run import host
from testbed.kernel.run.host import HostKernel, open_host
from testbed.model import Record, Trial
from testbed.root.cache import Root
from testbed.runner.judge import conclude
from testbed.setup.bundle import make_bundle
from tests.kernel.host_state import read_host_state
from wings.scenarios.spec import Scenario
from wings.scenarios.tests import SCENARIOS
from wings.scenarios.tests.promised import result_of

pytestmark = [
    pytest.mark.machine,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="the host kernel needs root"),
]
TRIES = 3
# No time-out decides what is on the wire in these: a busy machine changes only when.
UNHURRIED = ("cached-cookie", "rotated-key", "backup-key", "farm-shared-key", "plain-connect")


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory, root: Root) -> HostKernel:
    """This machine's kernel."""
    try:
        native = ensure_native(cache_folder(), print)
    except MissingError as error:
        pytest.skip(str(error))
    bundle = make_bundle(tmp_path_factory.mktemp("cache"), native, root)
    return open_host(os.uname().release, bundle.path, root.usr)


def perform(kernel: HostKernel, name: str, out: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    monkeypatch.setattr(host, "await_idle", lambda cancel: not cancel.is_set())
    out.mkdir()
    asked = Trial(
        Scenario(name, (SCENARIOS / f"{name}.toml").read_text()), 0, 0, "host", os.uname().release
    )
    return conclude(asked, kernel.run(asked, None, out, 0, threading.Event()), out, "e", 1)


@pytest.mark.nightly(but="^(cached-cookie|plain-connect)$")
@pytest.mark.parametrize("name", UNHURRIED)
def test_promises_of_this_machine_s_kernel(
    kernel: HostKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before = read_host_state()
    for attempt in range(TRIES):
        record = perform(kernel, name, tmp_path / str(attempt), monkeypatch)
        if record.outcome == "ok":  # a machine that stops for longer than a time-out adds packets
            break
    assert read_host_state() == before
    # How late packets were is the machine's; all else is judged.
    assert record.outcome in ("ok", "lab_mismatch"), record.reason
    assert record.proof is not None
    assert record.proof.problems == ()
    assert result_of(record).verdict == "kept", result_of(record).differences


def test_an_hour_is_too_long_in_real_time(
    kernel: HostKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = perform(kernel, "blackhole", tmp_path / "out", monkeypatch)
    assert record.outcome == "unsupported"
    assert "use the virtual kernel" in str(record.reason)
