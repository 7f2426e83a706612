"""Whether the tests pass is a matter of the code: not of the machine, nor of the day."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

TESTS = Path(__file__).parent


@given(st.booleans())
def test_a_slow_example_is_no_failure(_: bool) -> None:
    time.sleep(0.3)  # beyond Hypothesis' own deadline


def test_the_same_examples_are_tried_each_time() -> None:
    assert settings().derandomize


@pytest.mark.parametrize("word", ["[/]nonexistent", "mark[.]timeout", "deadline[=]None"])
def test_no_test_says_again_what_holds_for_all(word: str) -> None:
    """Paths that may exist, time-outs of single tests, deadlines of single properties."""
    found = [p.name for p in TESTS.rglob("*.py") if re.search(word, p.read_text("utf-8"))]
    assert found == []
