"""The registry of wings finds what is there, and nothing where nothing is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.base import wings


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of wings in place of the tree's."""
    for name in loaded():
        monkeypatch.delitem(sys.modules, name)
    others = [place for place in sys.path if not (Path(place) / "wings").is_dir()]
    monkeypatch.setattr(sys, "path", others)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "wings").mkdir()
    (tmp_path / "wings" / "__init__.py").write_text("")
    yield tmp_path / "wings"
    for name in loaded():
        del sys.modules[name]


def loaded() -> list[str]:
    return [name for name in sys.modules if name.split(".")[0] == "wings"]


def add_wing(house: Path, name: str, provides: str, *needs: str) -> None:
    (house / name).mkdir()
    (house / name / "__init__.py").write_text(f"PROVIDES = {provides}\nNEEDS = {needs}\n")


def test_what_wings_provide_comes_by_extension_point(house: Path) -> None:
    add_wing(house, "left", "{'verbs': {'sing': 'wings.left.song:sing'}}")
    (house / "left" / "song.py").write_text("sing = 'la'\n")
    add_wing(house, "away", "{'importers': {'tape': 'wings.away:TAPE'}}\nTAPE = 1")
    assert [(each.wing, each.name) for each in wings.provided("verbs")] == [("left", "sing")]
    assert [each.load() for each in wings.provided("verbs")] == ["la"]
    assert [each.load() for each in wings.provided("importers")] == [1]
    add_wing(house, "right", "{'printers': {'whole': 'wings.right.press'}}")
    (house / "right" / "press.py").write_text("ink = 'black'\n")
    assert [each.load().ink for each in wings.provided("printers")] == ["black"]
    assert not list(wings.provided("sections"))


def test_a_wing_is_imported_no_further_than_it_is_asked_for(house: Path) -> None:
    add_wing(house, "left", "{'verbs': {'sing': 'wings.left.song:sing'}}")
    (house / "left" / "song.py").write_text("raise RuntimeError\n")
    (only,) = wings.provided("verbs")
    with pytest.raises(RuntimeError):
        only.load()


def test_a_wing_is_left_out_without_one_that_it_or_another_of_them_needs(house: Path) -> None:
    add_wing(house, "roof", "{}", "walls")
    add_wing(house, "walls", "{}", "floor")
    add_wing(house, "garden", "{}")
    assert [each.__name__ for each in wings.wings()] == ["wings.garden"]
    add_wing(house, "floor", "{}")
    assert len([*wings.wings()]) == 4


@pytest.mark.usefixtures("house")
def test_without_wings_nothing_is_provided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    assert not list(wings.provided("verbs"))
