"""Guests of the bench that stop early: each goes as far as its stage, and no further."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from bench.cost import STAGES, stopping
from bench.small_page import build_small_page
from bench.work import Machine, Work, bundle
from testbed.model import Condition, LinkSpec, TcpSpec, Trial

pytestmark = [pytest.mark.guest, pytest.mark.browser]


@pytest.mark.nightly(but="^(image|server)$")
@pytest.mark.parametrize("stage", STAGES)
def test_a_guest_stops_after_its_stage(tmp_path: Path, stage: str) -> None:
    work = Work(tmp_path, Machine(2, 0.0), quick=True)
    page, out = build_small_page(work.folder("page")), work.folder("out")
    condition = Condition(page.name, "chromium", LinkSpec(rtt_ms=20.0), TcpSpec(tfo=True))
    trial = Trial(condition, 0, 0, "virtual", "7.3")
    raw = stopping(work, bundle(), stage).run(trial, page, out, 0, threading.Event())
    assert (raw.status, raw.console_tail) == ("ended", ""), raw
    assert raw.observation is not None
    assert json.loads(raw.observation.read_text()) == {"virtual_s": 0.0}
    # The last stage has a capture, and none a load.
    assert not (out / "load.har").exists()
    assert (out / "client.pcap").exists() == (stage == "server")
