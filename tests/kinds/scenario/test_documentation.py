"""The page on scenarios: it has every verb as it is used."""

from __future__ import annotations

import pytest

from testbed.base.places import ROOT
from testbed.kinds.scenario.words import ATTACKER, ATTACKS, CALLS, MIDDLEBOX, RULES, Verb

PAGE = (ROOT / "docs" / "scenarios.md").read_text("utf-8")
VERBS = [
    (actor, name, verb)
    for actor, verbs in (("HOST", CALLS), (MIDDLEBOX, RULES), (ATTACKER, ATTACKS))
    for name, verb in verbs.items()
]


@pytest.mark.parametrize(("actor", "name", "verb"), VERBS, ids=lambda one: str(one)[:12])
def test_every_verb_is_on_the_page(actor: str, name: str, verb: Verb) -> None:
    mark = " *" if verb.result else ""
    assert f"| `{f'{actor} {name} {verb.usage}'.strip()}` | {verb.help}{mark} |" in PAGE
