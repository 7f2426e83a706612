"""What is noted of a whole load."""

from __future__ import annotations

import pytest

from testbed.recorder.netlog import NetLog
from testbed.recorder.notes import Notes
from testbed.recorder.seen import Seen
from testbed.recorder.shortfall import note_load


@pytest.mark.parametrize(("cut", "logged"), [(True, False), (True, True), (False, False)])
def test_a_log_without_an_end_lacks_something_unless_it_had_all_before(
    cut: bool, logged: bool
) -> None:
    seen = Seen("b", "t", "f", 0.0, 1.0, 1.0, None, True, (), {}, (), (), (), logged)
    notes = Notes()
    note_load(notes, seen, NetLog((), cut))
    assert bool(notes.sentences()) == (cut and not logged)
