"""The shipped recipes, end to end: recorded, built, replayed, recorded again, and compared.

Packages come from their registries once and stay in the user's cache, as they do for users.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed import places
from testbed.errors import ConfigurationError
from testbed.page.archive import read_archive
from testbed.page.catalogue import list_pages, read_kind
from testbed.page.verify import verify_archive
from testbed.recipe import build_recipe
from testbed.recipe.compare import compare_recipe
from testbed.recipe.description import read_recipe
from testbed.recipe.install import install, read_package
from testbed.recipe.split import split

RECIPES = [folder for folder in list_pages(places.PAGES) if read_kind(folder) == "recipe"]
# What headless Chromium asked for when the packages lay on one plain server; a Debian package
# that has been replaced since may ask for something else.
REQUESTS = {"agency": 37, "flag-icons": 261, "gentelella": 37, "swagger-ui": 6}

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def names(folders: list[Path]) -> list[str]:
    return [folder.name for folder in folders]


def silent(_: str) -> None:
    """Progress is for people."""


def test_each_page_has_both_forms() -> None:
    plain = [folder for folder in RECIPES if read_recipe(folder).protocol == "http"]
    h2 = [folder for folder in RECIPES if read_recipe(folder).protocol == "h2"]
    assert len(plain) == 6
    assert names(h2) == [f"{name}-h2" for name in names(plain)]


@pytest.mark.parametrize("folder", RECIPES, ids=names(RECIPES))
def test_the_replay_is_the_recording(folder: Path) -> None:
    comparison = compare_recipe(folder, places.cache(), silent)
    assert comparison.same, comparison
    assert comparison.bytes_error_pct == 0
    name = folder.name.removesuffix("-h2")
    assert comparison.requests == REQUESTS.get(name, comparison.requests) > 5


@pytest.mark.parametrize("name", ["agency", "agency-h2"])
def test_a_page_is_the_same_on_every_build(tmp_path: Path, name: str) -> None:
    folder = places.PAGES / name
    (tmp_path / "b").mkdir()
    for cache in (tmp_path / "a", tmp_path / "b"):
        cache.mkdir(exist_ok=True)
        (cache / "packages").symlink_to(_packages(folder))
    built = [build_recipe(folder, tmp_path / cache, silent) for cache in "ab"]
    assert built[0].name == built[1].name
    first, second = (read_archive(each) for each in built)
    assert first.digest == second.digest
    assert verify_archive(built[0]) == []
    assert build_recipe(folder, tmp_path / "a", silent) == built[0]


def test_a_page_is_spread_and_keeps_its_parents(tmp_path: Path) -> None:
    folder = places.PAGES / "flag-icons"
    (tmp_path / "packages").symlink_to(_packages(folder))
    archive = read_archive(build_recipe(folder, tmp_path, silent))
    assert archive.hosts == ("www.flag-icons.test", "static.flag-icons.test",
                             "img.flag-icons.test")  # fmt: skip
    sheet = "http://static.flag-icons.test/css/flag-icon.css"
    flags = [entry for entry in archive.entries if entry.path.endswith(".svg")]
    assert {entry.parent for entry in flags} == {sheet}
    assert {entry.depth for entry in flags} == {2}
    assert all(entry.start_ms is None and entry.dur_ms is None for entry in archive.entries)


def test_what_a_script_asks_for_must_be_there(tmp_path: Path) -> None:
    folder = tmp_path / "swagger-ui"
    folder.mkdir()
    text = (places.PAGES / "swagger-ui" / "page.toml").read_text()
    edit = text.index("edits = ")
    wrong = text[:edit] + (
        'edits = [{ file = "swagger-initializer.js", '
        "old = '\"https://petstore.swagger.io/v2/swagger.json\"', "
        "new = '\"/none.json\", validatorUrl: \"none\"' }]\n"
    ) + text[text.index("]\n", edit) + 2 :]  # fmt: skip
    (folder / "page.toml").write_text(wrong)
    (tmp_path / "packages").symlink_to(_packages(places.PAGES / "swagger-ui"))
    with pytest.raises(ConfigurationError, match=r"asked for GET .*/none\.json.*recipe\.also"):
        build_recipe(folder, tmp_path, silent)
    assert not (tmp_path / "pages").exists()


def test_nothing_leads_outside() -> None:
    for folder in RECIPES:
        recipe = read_recipe(folder)
        package = read_package(recipe, install(recipe, places.cache(), silent))
        hosts = {recipe.main, *(rule.host for rule in recipe.hosts)}
        assert {file.url.split("/")[2] for file in split(recipe, package).files} <= hosts


def _packages(folder: Path) -> Path:
    """The user's packages, with this recipe's among them."""
    install(read_recipe(folder), places.cache(), silent)
    return places.cache() / "packages"
