"""Reference of the checks, ``docs/checks.md``: what is checked of a trial, in order, and when."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from testbed.kinds import KINDS, knobs_of
from testbed.mechanisms.checks import CHECKS
from testbed.proof.check import Check

CHECKS_REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "checks.md"
_INTRODUCTION = """\
# What is checked, and when

This page is written by `make reference` from the checks themselves. Every trial of every kind is
held against this list, in this order. A check speaks of a trial that left all that it needs (the
attributes of `Evidence` in [testbed/proof/evidence.py](../testbed/proof/evidence.py)). Whatever it
finds makes the trial *unproven*, in the words that its code has.
"""
_SHOWN = """
## What shows that a setting was performed

A setting off its default makes a trial unproven if what stands in its row does not speak of it.
"""


def render_checks() -> str:
    """Return the whole page."""
    parts = [_INTRODUCTION, *_table(CHECKS)]
    for kind in KINDS.values():
        own = getattr(import_module(kind.judgement), "OWN_CHECKS", ())
        if own:
            title = f"\n## Of a {kind.name.replace('_', ' ')} alone\n"
            parts += [title, *_table(own)]
    return "\n".join((*parts, _SHOWN, *_settings())) + "\n"


def _settings() -> Iterator[str]:
    yield "| setting | what shows it |"
    yield "|---|---|"
    shown = {
        ".".join((*each.table, each.name)): each.knob.shown
        for kind in KINDS.values()
        for each in knobs_of(kind)
    }
    yield from (f"| `{knob}` | {how} |" for knob, how in shown.items() if how)


def _table(checks: tuple[Check, ...]) -> Iterator[str]:
    yield "| check | what it proves | needs | source |"
    yield "|---|---|---|---|"
    for each in checks:
        needs = ", ".join(f"`{need}`" for need in each.needs)
        yield f"| {each.name} | {each.proves} | {needs} | {each.source} |"
