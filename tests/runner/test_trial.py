"""What an error of a trial means for its outcome."""

from __future__ import annotations

import pytest

from testbed.base.errors import LabError, MissingError
from testbed.client.interface import LoadError, LoadTimeoutError
from testbed.runner.trial import _outcome


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(LoadTimeoutError("slow"), "timeout"), (LoadError("broken"), "failed"),
     (LabError("no server"), "failed"), (MissingError("no such congestion control"), "unsupported"),
     (OSError("disk"), "failed")],
)  # fmt: skip
def test_the_outcome_of_an_error(error: Exception, outcome: str) -> None:
    assert _outcome(error) == outcome
