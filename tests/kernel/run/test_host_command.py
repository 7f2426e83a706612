"""A client of one's own and a command in the lab, on the host's kernel."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base.errors import MissingError
from testbed.base.places import PAGES, ROOT
from testbed.base.places import cache as cache_folder
from testbed.kernel.build.native import ensure_native
from testbed.kernel.run import host
from testbed.kernel.run.host import open_host
from testbed.kinds.command.spec import LabCommand
from testbed.model import Condition, LinkSpec, Record, TcpSpec, Trial
from testbed.pages.build import build_page
from testbed.root.cache import Root
from testbed.runner.judge import conclude
from testbed.setup.own import list_own
from tests.kernel.host_state import read_host_state
from tests.kernel.run.test_host_trial import require_proven
from tests.measured import executed_of, load_of
from tests.patience import make_patient_bundle

pytestmark = [
    pytest.mark.machine, pytest.mark.root, pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="the host kernel needs root"),
]  # fmt: skip
LINK, FAST_OPEN = LinkSpec(rtt_ms=20.0), TcpSpec(tfo=True)


def run(folder: Path, condition: Condition, monkeypatch: pytest.MonkeyPatch, root: Root) -> Record:
    """Run one trial with the example's files, and judge it."""
    try:
        native = ensure_native(cache_folder(), print)
    except MissingError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(host, "await_idle", lambda cancel: not cancel.is_set())
    own = list_own(ROOT / "docs" / "own-client")
    bundle = make_patient_bundle(folder / "cache", native, root, own)
    kernel = open_host(os.uname().release, bundle.path, root.usr)
    page = build_page(PAGES / "wikipedia", folder / "pages")
    asked, out = Trial(condition, 0, 0, "host", os.uname().release), folder / "out"
    out.mkdir()
    return conclude(asked, kernel.run(asked, page, out, 0, threading.Event()), out, "e", 1)


def test_a_client_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Root) -> None:
    before = read_host_state()
    command = "{folder}/load.py {urls} {ca}"
    condition = Condition("wikipedia", "command", LINK, FAST_OPEN, command=command)
    record = run(tmp_path, condition, monkeypatch, root)
    require_proven(record)
    assert load_of(record).client_version == "1"
    assert read_host_state() == before


def test_a_command_and_its_other_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Root
) -> None:
    before = read_host_state()
    spec = LabCommand(
        "wikipedia", "command", LINK, FAST_OPEN,
        command="curl -s http://{server}:8000/", peer="python3 -m http.server 8000",
    )  # fmt: skip
    record = run(tmp_path, spec, monkeypatch, root)
    assert record.outcome in ("ok", "lab_mismatch"), record.reason  # whatever the machine did
    assert executed_of(record).exit_status == 0
    assert executed_of(record).output_bytes > 0 and executed_of(record).peer_status is None
    assert "command.out" in record.artefacts
    assert read_host_state() == before
    assert replace(record, outcome="ok").measured is executed_of(record)
