"""The virtual kernel and a house on top of it, for tests of the whole way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.base import places
from testbed.kernel.build.cache import find_kernel
from testbed.kernel.build.pin import read_pin
from tests.acceptance.house import House, Plant, open_house
from tests.copies import copy_code


@pytest.fixture(scope="session")
def acceptance_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An XDG_CACHE_HOME with kernels, C programs, driver, roots and packages of the real one."""
    if find_kernel(read_pin("7.3"), places.cache()) is None:
        pytest.skip("the virtual kernel is not built; run `make kernel`")
    home = tmp_path_factory.mktemp("cache")
    (home / "firstflight").mkdir()
    for part in ("js", "kernels", "native", "packages", "roots"):
        (places.cache() / part).mkdir(exist_ok=True)
        (home / "firstflight" / part).symlink_to(places.cache() / part)
    return home


@pytest.fixture(scope="module")
def house(acceptance_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A house for the tests of one file, so that they share what was recorded."""
    with open_house(tmp_path_factory.mktemp("house"), acceptance_cache) as house:
        yield house


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plant:
    """Change the code that guests run, a copy of it."""
    code = copy_code(tmp_path / "code", monkeypatch)

    def change(module: str, old: str, new: str) -> None:
        text = (code / module).read_text()
        assert text.count(old) == 1
        (code / module).write_text(text.replace(old, new))

    return change
