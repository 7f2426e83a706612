"""The shipped recipes, end to end: recorded, built, replayed, recorded again, and compared.

Packages come from their registries once and stay in the user's cache, as they do for users.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.archive.reading import Archive, read_archive
from testbed.base import places
from testbed.base.errors import ConfigurationError, MissingError
from testbed.model import Replay
from testbed.pages.catalogue import list_pages, read_kind
from wings.pages.exchange import Recording
from wings.pages.har_export import write_archive
from wings.pages.recipe import build
from wings.pages.recipe.build import build_recipe, gather_files, make_canonical
from wings.pages.recipe.description import read_recipe
from wings.pages.recipe.packages import install
from wings.pages.recipe.site import split
from wings.pages.tests.recipe.compare import compare, load_twice
from wings.pages.verify import verify_archive

RECIPES = [folder for folder in list_pages(places.PAGES) if read_kind(folder) == "recipe"]
# What headless Chromium asked for when the packages lay on one plain server; a Debian package
# that has been replaced since may ask for something else.
REQUESTS = {
    "admin-lte": 35, "agency": 37, "altair": 18, "argon": 20, "dc": 11, "dygraphs": 31,
    "flag-icons": 261, "gentelella": 37, "owl": 17, "reveal": 15, "sb-admin": 17,
    "semantic-ui": 23, "swagger-ui": 6, "tabler": 379, "tabler-gallery": 40,
}  # fmt: skip

Loads = tuple[Recording, Recording, Replay]


pytestmark = pytest.mark.browser


def names(folders: list[Path]) -> list[str]:
    return [folder.name for folder in folders]


PLAIN = [folder for folder in RECIPES if not folder.name.endswith("-h2")]


def silent(_: str) -> None:
    """Progress is for people."""


def test_each_page_has_both_forms_and_those_of_today_are_over_tls() -> None:
    plain = [folder for folder in RECIPES if read_recipe(folder).protocol == "http"]
    h2 = [folder for folder in RECIPES if read_recipe(folder).protocol == "h2"]
    assert len(plain) == 21
    today = [f"{kind}-{size}" for kind in ("app", "guide", "news", "shop", "travel")
             for size in ("p25", "p50", "p75", "p90")]  # fmt: skip
    assert names(h2) == sorted([*(f"{name}-h2" for name in names(plain)), *today])


@pytest.fixture(scope="module")
def loads() -> Callable[[str], Loads]:
    """Loads the page of a name and its replay once for all tests."""
    return functools.cache(lambda name: load_twice(places.PAGES / name, places.cache(), silent))


def archived(recording: Recording, folder: Path) -> Archive:
    """The page that is made of a recorded load."""
    write_archive(folder, make_canonical(recording), licence="none")
    return read_archive(folder)


@pytest.mark.nightly(but="^agency$")
@pytest.mark.parametrize("folder", RECIPES, ids=names(RECIPES))
def test_the_replay_is_the_recording(folder: Path, loads: Callable[[str], Loads]) -> None:
    comparison = compare(folder.name, *loads(folder.name))
    assert comparison.same, comparison
    assert comparison.bytes_error_pct == 0
    name = folder.name.removesuffix("-h2")
    assert comparison.requests == REQUESTS.get(name, comparison.requests) > 5


@pytest.fixture
def agency(
    tmp_path: Path, loads: Callable[[str], Loads], monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Path]:
    """A page's folder and its build in ``tmp_path``, of a recording that is there already."""
    recorded, *_ = loads("agency")
    monkeypatch.setattr(build, "capture_recipe", lambda *_: recorded)
    folder = places.PAGES / "agency"
    (tmp_path / "packages").symlink_to(_packages(folder))
    return folder, build_recipe(folder, tmp_path, silent)


@pytest.mark.nightly(but="^agency$")
@pytest.mark.parametrize("name", ["agency", "agency-h2"])
def test_a_page_is_the_same_on_every_build(
    tmp_path: Path, loads: Callable[[str], Loads], name: str
) -> None:
    folder = places.PAGES / name
    (tmp_path / "packages").symlink_to(_packages(folder))
    built = build_recipe(folder, tmp_path, silent)
    recorded, *_ = loads(name)
    assert read_archive(built).digest == archived(recorded, tmp_path / name).digest
    assert verify_archive(built) == []


def test_a_built_page_is_not_recorded_again(
    tmp_path: Path, agency: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, built = agency
    for name in ("set_up_recording", "capture_recipe"):
        monkeypatch.delattr(build, name)
    assert build_recipe(folder, tmp_path, silent) == built


def test_a_damaged_recording_is_recorded_again(tmp_path: Path, agency: tuple[Path, Path]) -> None:
    folder, built = agency
    for cached in (*(tmp_path / "recipes").rglob("bodies/*"), *built.glob("bodies/*")):
        cached.write_bytes(cached.read_bytes()[:-1])
    told: list[str] = []
    assert build_recipe(folder, tmp_path, told.append) == built
    assert verify_archive(built) == []
    assert [line for line in told if "of its recording is damaged; recording it again" in line]


def test_what_recording_takes_is_set_up_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> Path:
        raise MissingError("recording takes node")

    monkeypatch.setattr(build, "set_up_recording", refuse)
    with pytest.raises(MissingError, match="recording takes node"):
        build_recipe(places.PAGES / "agency", tmp_path, silent)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.nightly
def test_a_page_is_spread_and_keeps_its_parents(
    tmp_path: Path, loads: Callable[[str], Loads]
) -> None:
    recorded, *_ = loads("flag-icons")
    archive = archived(recorded, tmp_path / "flag-icons")
    assert archive.hosts == ("www.flag-icons.test", "static.flag-icons.test",
                             "img.flag-icons.test")  # fmt: skip
    sheet = "http://static.flag-icons.test/css/flag-icon.css"
    flags = [entry for entry in archive.entries if entry.path.endswith(".svg")]
    assert {entry.parent for entry in flags} == {sheet}
    assert {entry.depth for entry in flags} == {2}
    assert all(entry.start_ms is None and entry.dur_ms is None for entry in archive.entries)


@pytest.mark.thorough
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


@pytest.mark.nightly(but="^agency$")
@pytest.mark.parametrize("folder", PLAIN, ids=names(PLAIN))
def test_nothing_leads_outside(folder: Path) -> None:
    recipe = read_recipe(folder)
    installed = install(recipe, places.cache(), silent)
    files = split(recipe, gather_files(recipe, installed, places.cache(), silent)).files
    hosts = {recipe.main, *(rule.host for rule in recipe.hosts)}
    assert {file.url.split("/")[2] for file in files} == hosts


def _packages(folder: Path) -> Path:
    """The user's packages, with this recipe's among them."""
    install(read_recipe(folder), places.cache(), silent)
    return places.cache() / "packages"
