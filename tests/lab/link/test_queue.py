"""Queues in tc's words, without a kernel: who emulates them, and what the host must have loaded."""

from __future__ import annotations

import pytest

from testbed.base.errors import MissingError
from testbed.base.namespace import Namespace
from testbed.lab.link import queue
from testbed.lab.link.netem import NETEM
from testbed.lab.link.protocol import require_emulated
from testbed.lab.link.tap import Tap
from testbed.model import FIFO, LinkSpec

FQ_CODEL = "fq_codel limit 1000 target 60ms"


def test_the_kernel_s_own_link_has_queues_and_the_other_refuses_them_by_name() -> None:
    require_emulated(NETEM, LinkSpec(qdisc=FQ_CODEL))
    require_emulated(Tap(), LinkSpec(qdisc=FIFO))
    told = f"the tap link cannot emulate link.qdisc = {FQ_CODEL}; leave it at its default, or "
    with pytest.raises(MissingError, match=told):
        require_emulated(Tap(), LinkSpec(qdisc=FQ_CODEL))


def test_no_module_of_the_host_is_loaded_for_a_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def unloaded(names: tuple[str, ...]) -> str:
        asked.append(names)
        return "kernel module sch_fq_codel is not loaded; `modprobe -a sch_fq_codel` does it"

    monkeypatch.setattr(queue, "find_unloaded", unloaded)
    told = f"link.qdisc = {FQ_CODEL}: this queue cannot be set; .*`modprobe -a sch_fq_codel` does"
    with pytest.raises(MissingError, match=told):  # and tc is not started
        queue.set_queue(Namespace("no-such-namespace"), "f0", FQ_CODEL)
    assert asked[0][0] == "sch_fq_codel"
