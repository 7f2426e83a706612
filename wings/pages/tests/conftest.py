"""The committed tables, built once for all tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.archive.reading import Archive, read_archive
from testbed.pages.build import build_page
from testbed.pages.catalogue import TABLE_NAME, list_pages

Small = Callable[[str], Path]
"""Makes a page folder from the rows of a table."""
PAGES = Path(__file__).parents[3] / "pages"
NAMES = tuple(path.name for path in list_pages(PAGES) if (path / TABLE_NAME).exists())

HEADER = "id,parent,host,mime,status,transfer_bytes,body_bytes,how,gap_ms,start_ms,dur_ms\n"
FACTS = (
    'title = "A <small> page"\nurl = "http://a.example/"\nrecorded = 2013-03-13\n'
    'source = "made up"\nlicence = "none"\nbodies = "synthetic"\ndeviations = []\n'
)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def built(cache: Path) -> Callable[[str], Archive]:
    """The archive of a committed page."""
    return lambda name: read_archive(build_page(PAGES / name, cache))


@pytest.fixture
def small(tmp_path: Path) -> Small:
    """A function that makes a page folder from the rows of a table."""

    def make(rows: str) -> Path:
        folder = tmp_path / "small"
        folder.mkdir(exist_ok=True)
        (folder / "page.toml").write_text(FACTS)
        (folder / "resources.csv").write_text(HEADER + rows)
        return folder

    return make
