"""PRECONNECT in real loads: proven with and without Fast Open, and refused if it is not done."""

from __future__ import annotations

import pytest

from testbed.base.errors import EXIT_OK
from testbed.model import Condition
from tests.acceptance.house import House, Plant, assert_refused
from tests.measured import load_of

pytestmark = pytest.mark.guest

KNOBS = {"page": "wikipedia", "client": "graph", "rtt_ms": 20}


@pytest.fixture(scope="module", autouse=True)
def page(house: House) -> None:
    house.take("wikipedia")


def test_guesses_are_proven_and_wrong_ones_stay_idle(house: House) -> None:
    ran = house.run(**KNOBS, preconnect_pct=[0.0, 100.0], tfo=[False, True])
    assert ran.code == EXIT_OK, ran.said
    wrong = len(house.archive("wikipedia").hosts) - 1
    for record in ran.records:
        asked, proof = record.trial.condition_as(Condition), record.proof
        assert proof is not None
        assert proof.idle_connections == (0 if asked.preconnect_pct else wrong)
        # The account of the load closes, to the nanosecond.
        spent_ms = sum(proof.account.values())
        assert spent_ms == pytest.approx(load_of(record).plt_ms, abs=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [("origin.early += 1", "origin.early += 0", "were not opened at the start"),
     ("0 if right else len(self._origins)", "0", "of PRECONNECT")],
    ids=["nothing opened", "wrong guesses used"],
)  # fmt: skip
def test_what_was_not_performed_is_no_number(
    house: House, plant: Plant, old: str, new: str, told: str
) -> None:
    plant("client/graph_process/transfers.py", old, new)
    pct = 100.0 if "early" in old else 0.0
    assert_refused(house.run(**KNOBS, preconnect_pct=pct), "unproven", told)
