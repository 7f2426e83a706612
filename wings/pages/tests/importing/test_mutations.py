"""Changed HARs of every producer: a page that is whole, or an error of the project's own."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from wings.pages.tests.importing.mutations import PRODUCERS, check, make_mutation

COUNT = int(os.environ.get("FIRSTFLIGHT_MUTATIONS", "300"))
PART = 75


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.nightly(but="^0$")
@pytest.mark.parametrize("first", range(0, COUNT, PART))
def test_changed_hars_end_in_a_whole_page_or_a_clear_error(first: int) -> None:
    ends: Counter[str] = Counter()
    for number in range(first, first + PART):
        try:
            ends[check(make_mutation(number), random.Random(number))] += 1  # noqa: S311
        except Exception as error:
            raise AssertionError(f"mutation {number}: {error!r}") from error
    # The changes are neither all harmless nor all deadly.
    assert min(ends[end] for end in ("archive", "table", "error")) > PART / 50


def test_mutations_are_of_every_producer_and_the_same_each_time() -> None:
    assert len(PRODUCERS) >= 10
    assert [make_mutation(n) for n in range(20)] == [make_mutation(n) for n in range(20)]
