"""The page on scenarios: it has every verb as it is used."""

from __future__ import annotations

import re
import tomllib

import pytest

from testbed.base.places import ROOT
from wings.scenarios.tests import SCENARIOS
from wings.scenarios.words import ATTACKER, ATTACKS, CALLS, MIDDLEBOX, RULES, Verb

PAGE = (ROOT / "wings" / "scenarios" / "README.md").read_text("utf-8")
VERBS = [
    (actor, name, verb)
    for actor, verbs in (("HOST", CALLS), (MIDDLEBOX, RULES), (ATTACKER, ATTACKS))
    for name, verb in verbs.items()
]


@pytest.mark.parametrize(("actor", "name", "verb"), VERBS, ids=lambda one: str(one)[:12])
def test_every_verb_is_on_the_page(actor: str, name: str, verb: Verb) -> None:
    mark = " *" if verb.result else ""
    assert f"| `{f'{actor} {name} {verb.usage}'.strip()}` | {verb.help}{mark} |" in PAGE


STATEMENT = re.compile(r"^\| \d+ \| ([\d.]+|all) \| .+ \| (.+) \|$", re.MULTILINE)
RFC_PAGE = (ROOT / "wings" / "papers" / "docs" / "rfc-7413.md").read_text("utf-8")
STATEMENTS = STATEMENT.findall(RFC_PAGE)
SOURCES = {
    path.stem: tomllib.loads(path.read_text())["source"] for path in SCENARIOS.glob("*.toml")
}


def sections_of(source: str) -> set[str]:
    """The sections of RFC 7413 that a scenario's ``source`` names."""
    of_the_rfc = re.findall(r"RFC 7413, sections? ([^;]+)", source)
    return {section for text in of_the_rfc for section in re.findall(r"\d[\d.]*\d|\d", text)}


@pytest.mark.parametrize(("section", "tested"), STATEMENTS)
def test_each_statement_of_the_rfc_is_tested_or_it_is_said_why_not(
    section: str, tested: str
) -> None:
    if not tested.startswith("not here: "):
        for name in tested.partition(" (")[0].split(", "):
            assert section in sections_of(SOURCES[name]), name


def test_each_scenario_of_the_rfc_tests_a_statement() -> None:
    tested = {name for _, names in STATEMENTS for name in re.split(r"[ ,]+", names)}
    assert {name for name, source in SOURCES.items() if "RFC 7413" in source} <= tested
    assert len(STATEMENTS) == RFC_PAGE.partition("\n## ")[0].count("\n|") - 2
