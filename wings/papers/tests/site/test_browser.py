"""The site in a real browser: no page of it scrolls sideways, however narrow the window."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.analysis.report.test_browser import dump, probe
from wings.papers.site.pages import write_site
from wings.papers.tests.site.runs import write_kept, write_loads

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width", [360, 1280])
def test_no_page_scrolls_sideways(tmp_path: Path, width: int) -> None:
    out = tmp_path / "site"
    write_site([write_loads(tmp_path / "loads"), write_kept(tmp_path / "kept")], out)
    load, promise = (next((out / kind / "6.12").glob("*.html")) for kind in ("loads", "promises"))
    for page in (out / "index.html", load, promise):
        script = "document.title=document.documentElement.scrollWidth+' '+innerWidth"
        page.write_text(probe(page.read_text(), script))
        found = re.search(r"<title>(\d+) (\d+)</title>", dump(page, tmp_path / "profile", width))
        assert found is not None
        assert int(found[1]) <= int(found[2]) == width, page.name
