"""What an error inside a trial means for its outcome, and when a load starts."""

from __future__ import annotations

import pytest

from testbed.client.protocol import LoadError, LoadTimeoutError
from testbed.errors import LabError, MissingError
from testbed.trial import ALIGN_NS, LAUNCH_NS, _next_start, _outcome


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (LoadTimeoutError("slow"), "timeout"),
        (LoadError("broken"), "failed"),
        (LabError("no server"), "failed"),
        (MissingError("no such congestion control"), "unsupported"),
        (OSError("disk"), "failed"),
    ],
)
def test_the_outcome_of_an_error(error: Exception, outcome: str) -> None:
    assert _outcome(error) == outcome


def test_a_load_starts_at_a_round_instant_that_forgets_microseconds() -> None:
    now = 1_700_000_006_720_000_000
    start = _next_start(now)
    assert start % ALIGN_NS == 0
    assert LAUNCH_NS <= start - now < LAUNCH_NS + ALIGN_NS
    assert _next_start(now + 1000) == start
