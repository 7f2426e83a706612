"""The manual page is what the verbs say, and one that man and mandoc read."""

from __future__ import annotations

import os
import sys

import click
import pytest

from firstflight.manual import MANUAL
from firstflight.reference import list_verbs
from testbed.base import proc
from testbed.base.places import ROOT, describe_version


def test_it_is_what_the_verbs_say() -> None:
    # In a process of its own, as in test_usage.py.
    program = "import firstflight.manual as it; print(it.render_manual(), end='')"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    rendered = proc.run((sys.executable, "-P", "-c", program), env=environment).stdout
    assert MANUAL.read_text(encoding="utf-8") == rendered, "run make reference"


def test_nothing_is_wrong_with_it() -> None:
    done = proc.run(("mandoc", "-T", "lint", "-W", "warning", str(MANUAL)), check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


@pytest.mark.parametrize(
    "verb",
    [" ".join(words) for words, verb in list_verbs() if not isinstance(verb, click.Group)],
)
def test_every_verb_is_in_it(verb: str) -> None:
    shown = proc.run(("mandoc", "-T", "ascii", "-O", "width=200", str(MANUAL))).stdout
    plain = _struck(shown)
    assert f"   {verb} [OPTIONS]" in plain
    assert describe_version() in plain


def _struck(text: str) -> str:
    """Return what a terminal shows of letters that are printed over each other."""
    shown: list[str] = []
    for letter in text:
        if letter == "\b":
            shown.pop()
        else:
            shown.append(letter)
    return "".join(shown)
