"""Words of tc: what was asked for against what tc says, and DualPI2 in the kernel's attributes."""

from __future__ import annotations

import pytest

from testbed.lab.link import dualpi2
from testbed.lab.link.statistics import count_marks, read_statistics
from testbed.lab.link.words import differ, quantity
from testbed.lab.rtnetlink import attribute

TOLD = "fq_codel limit 1000p flows 1024 quantum 1514 target 60ms interval 100ms memory_limit 32Mb"


@pytest.mark.parametrize(
    ("asked", "told"),
    [("fq_codel limit 1000 target 60ms", TOLD),
     ("fq_codel target 60000 memory_limit 32m noecn", TOLD),
     ("red limit 131072 avpkt 1000 adaptive", "red limit 128Kb min 10922b adaptive ewma 4"),
     ("sfq perturb 10", "sfq limit 127p perturb 10sec"),
     ("tbf rate 3mbit burst 1540", "tbf rate 3Mbit burst 1539b/1 lat 129ms"),
     ("cake bandwidth 375kbps nat", "cake bandwidth 3Mbit besteffort nat")],
)  # fmt: skip
def test_one_queue_in_other_units(asked: str, told: str) -> None:
    assert list(differ(asked, told)) == []


@pytest.mark.parametrize(
    ("asked", "told", "said"),
    [("fq_codel target 5ms", TOLD, "has target 60ms, asked was 5ms"),
     ("fq_codel target 60", TOLD, "has target 60ms, asked was 60"),
     ("fq_codel noecn", f"{TOLD} ecn", "has ecn, asked was noecn"),
     ("cake nat", "cake bandwidth unlimited nonat", "has nonat, asked was nat"),
     ("cake bandwidth 3mbit", "cake bandwidth unlimited", "has bandwidth unlimited, asked was "),
     ("pie", TOLD, f"is {TOLD!r}, asked was 'pie'")],
)  # fmt: skip
def test_another_queue(asked: str, told: str, said: str) -> None:
    found = list(differ(asked, told))
    # What is bare may be in the unit that tc shows.
    assert (found == []) if asked.endswith(" 60") else found[0].startswith(said)


def test_quantities() -> None:
    assert [quantity(text) for text in ("5ms", "2k", "1.5mbit", "10%")] == [0.005, 2048, 1.5e6, 10]
    with pytest.raises(ValueError, match="no quantity"):
        quantity("5 ms")


def test_dualpi2_is_told_as_it_was_asked() -> None:
    asked = "limit 100 target 20ms alpha 0.5 step_thresh 4p any_ect classic_protection 20%"
    told = dualpi2.describe(dualpi2.encode(asked.split()))
    assert told == (
        "dualpi2 limit 100p target 20ms alpha 0.500000 step_thresh 4p classic_protection 20% "
        "any_ect"
    )
    assert list(differ(f"dualpi2 {asked}", told)) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [("targt 4ms", "What is \"targt\"\\? \\(did you mean 'target'\\?\\) dualpi2 has limit, "),
     ("target", 'Illegal "target": ""'), ("target soon", 'Illegal "target": "soon"'),
     ("coupling_factor 300", 'Illegal "coupling_factor": "300"')],
)  # fmt: skip
def test_words_that_dualpi2_does_not_have(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        dualpi2.encode(text.split())


def test_marks_are_counted_by_rule_and_by_tin() -> None:
    codel = bytes(24) + (23).to_bytes(4, "little") + bytes(4) + (4).to_bytes(4, "little")
    found = read_statistics("codel", codel, b"")
    assert (found, count_marks(found)) == ({"drop_overlimit": 0, "ecn_mark": 23, "ce_mark": 4}, 27)
    tins = b"".join(
        attribute(tin, attribute(2, (90).to_bytes(4, "little"))
                  + attribute(8, tin.to_bytes(4, "little")))
        for tin in (1, 2)
    )  # fmt: skip
    found = read_statistics("cake", attribute(10, tins), b"")
    assert (found["tin0.packets"], found["tin1.ecn_mark"], count_marks(found)) == (90, 2, 3)
    # Step marks of DualPI2 are among its marks; an older kernel's structure may be shorter.
    dual = bytes(24) + (9).to_bytes(4, "little") + (5).to_bytes(4, "little")
    assert count_marks(read_statistics("dualpi2", dual, b"")) == 9
    assert read_statistics("fq", bytes(32), b"") == {"throttled": 0}
