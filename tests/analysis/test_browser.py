"""The report in a real browser: the script runs under its own policy, and nothing overflows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from analysis.report import write_reports
from testbed import proc
from tests.analysis.sample import write_tls_sample

pytestmark = pytest.mark.browser

BROWSER = "chromium-headless-shell"


def dump(page: Path, profile: Path, width: int) -> str:
    """The document after its scripts ran, in a window ``width`` pixels wide."""
    argv = (
        BROWSER, "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
        f"--window-size={width},900", "--dump-dom", page.as_uri(),
    )  # fmt: skip
    return proc.run(argv, timeout_s=60).stdout


def test_waterfalls_are_drawn(sample: Path, tmp_path: Path) -> None:
    write_reports(sample)
    document = dump(sample / "report.html", tmp_path, 1200)
    data = json.loads(re.findall(r'id="waterfall-data">(.*?)</script>', document, re.DOTALL)[0])
    falls = document[document.index('id="falls"') : document.index('id="fall-values"')]
    assert 'id="falls" hidden' not in document
    assert falls.count("<option") == 2 * len(data["loads"]) == 2 * 117
    assert falls.count('class="plt"') == 2
    assert falls.count('class="stripe"') == 2 * 62
    assert "without Fast Open: load complete after 1680.6 ms, 62 requests" in falls
    assert "with Fast Open: load complete after 1584.6 ms, 62 requests" in falls


@pytest.mark.parametrize("width", [360, 390, 768, 1400])
@pytest.mark.parametrize("content", ["table 1", "over tls"])
def test_the_page_never_scrolls_sideways(
    sample: Path, tmp_path: Path, width: int, content: str
) -> None:
    folder = sample if content == "table 1" else write_tls_sample(tmp_path / "tls")
    write_reports(folder)
    source = (folder / "report.html").read_text()
    source = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", source)
    probe = "<script>document.title=document.documentElement.scrollWidth+' '+innerWidth</script>"
    page = tmp_path / "probe.html"
    page.write_text(source.replace("</body>", f"{probe}</body>"))
    found = re.search(r"<title>(\d+) (\d+)</title>", dump(page, tmp_path / "profile", width))
    assert found is not None
    assert int(found[1]) <= int(found[2]) == width
