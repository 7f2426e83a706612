"""Agreement of two records of a trial: all that they say of it counts, not what ran it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.results.agreement import find_difference, result_of
from testbed.results.records import plain_record
from tests.analysis.sample import conditions, record

(CONDITION,) = conditions(["amazon"], [20.0], [False])
OURS = record(CONDITION, 0, 1000.0)


def test_all_but_what_is_the_machine_s_is_compared() -> None:
    plain = plain_record(OURS)
    assert plain.keys() - result_of(plain).keys() == {"cost", "attempt"}
    assert find_difference(OURS, replace(OURS, attempt=OURS.attempt + 1)) == ""


@pytest.mark.parametrize(
    ("name", "said"),
    [("outcome", "outcome"), ("lab", "lab"), ("measured", "load"), ("replay", "replay"),
     ("proof", "proof"), ("environment", "environment"), ("artefacts", "artefacts")],
)  # fmt: skip
def test_records_that_differ_in_a_part(name: str, said: str) -> None:
    other: dict[str, object] = {"outcome": "failed", "environment": "x", "artefacts": {}}
    theirs = replace(OURS, **{name: other.get(name)})  # type: ignore[arg-type]
    assert find_difference(OURS, theirs).startswith(said)
    assert find_difference(OURS, OURS) == ""
