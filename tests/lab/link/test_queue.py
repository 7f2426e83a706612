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
    told = f"the tap link cannot emulate link.qdisc_up = {FQ_CODEL}; "
    with pytest.raises(MissingError, match=told):
        require_emulated(Tap(), LinkSpec(qdisc_up=FQ_CODEL))


def test_each_direction_has_the_queue_of_both_or_one_of_its_own() -> None:
    assert LinkSpec(qdisc="pie").queues == {"down": "pie", "up": "pie"}
    mixed = LinkSpec(qdisc="pie", qdisc_up=FIFO)
    assert (mixed.queues, mixed.is_plain) == ({"down": "pie", "up": FIFO}, False)
    assert LinkSpec(qdisc="pie", qdisc_up=FIFO, qdisc_down=FIFO).is_plain


@pytest.mark.parametrize("text", ["drr", "netem delay 5ms", "cake autorate-ingress"])
def test_what_could_not_hold_before_a_line_is_refused_by_name(text: str) -> None:
    word = next(word for word in queue.UNFIT if word in text.split())
    told = f"link.qdisc_up = {text}: .* {word} {queue.UNFIT[word]}"
    with pytest.raises(MissingError, match=told):
        queue.set_queue(Namespace("no-such-namespace"), "n1", text, "qdisc_up")


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
