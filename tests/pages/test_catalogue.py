"""page.toml: what is written is read back, and every mistake is told."""

from __future__ import annotations

import tempfile
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.base.errors import ConfigurationError
from testbed.model.device import DEVICES
from testbed.pages.catalogue import PageFacts, format_facts, read_facts
from wings.pages.tests.conftest import FACTS

texts = st.text(st.characters(exclude_categories=["Cs"]))


def reread(facts: PageFacts) -> PageFacts:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.toml"
        path.write_text(format_facts(facts), encoding="utf-8", newline="")
        return read_facts(path)


@given(
    st.builds(
        PageFacts, title=texts, url=texts, recorded=st.dates(), source=texts, licence=texts,
        bodies=texts, deviations=st.lists(texts).map(tuple), pinned=st.booleans(),
        made_up=st.booleans(), recipe=st.none(), table=st.none(),
        device=st.sampled_from([None, *DEVICES.values()]),
    )
)  # fmt: skip
def test_what_is_written_is_read_back(facts: PageFacts) -> None:
    assert reread(facts) == facts


def test_half_a_surrogate_pair_is_replaced() -> None:
    facts = PageFacts("a\ud800b", "", date(2026, 1, 1), "", "", "", ())
    assert reread(facts).title == "a\ufffdb"


def test_the_optional_keys(tmp_path: Path) -> None:
    path = tmp_path / "page.toml"
    path.write_text(FACTS)
    assert (read_facts(path).pinned, read_facts(path).recipe) == (False, None)
    path.write_text(FACTS + "pinned = true\n[recipe]\npackage = 'a'\n")
    assert (read_facts(path).pinned, read_facts(path).recipe) == (True, {"package": "a"})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("pinned = 1\n", "pinned is 1, expected a bool"),
        ("recipe = 'x'\n", "recipe is 'x', expected a dict"),
        ("unheard = 1\n", "unknown key 'unheard'"),
    ],
)
def test_a_wrong_optional_key(tmp_path: Path, more: str, message: str) -> None:
    path = tmp_path / "page.toml"
    path.write_text(FACTS + more)
    with pytest.raises(ConfigurationError, match=message):
        read_facts(path)


def test_deviations_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "page.toml"
    path.write_text(FACTS.replace("deviations = []", "deviations = [1]"))
    with pytest.raises(ConfigurationError, match="deviations holds something"):
        read_facts(path)
