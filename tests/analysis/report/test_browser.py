"""The report in a real browser: the script runs under its own policy, and nothing overflows."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.report.document import write_reports
from testbed.base import proc
from tests.analysis.sample import conditions, experiment, record, write_results, write_tls_sample

pytestmark = pytest.mark.browser

BROWSER = "chromium-headless-shell"


def dump(page: Path, profile: Path, width: int) -> str:
    """The document after its scripts ran, in a window ``width`` pixels wide."""
    argv = (BROWSER, "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
            f"--window-size={width},900", "--dump-dom", page.as_uri())  # fmt: skip
    return proc.run(argv, timeout_s=300).stdout


def write_sweep(folder: Path) -> Path:
    """Two pages over many RTTs, windows and both arms, twice: every kind of figure, long tables."""
    asked = tuple(
        replace(one, tcp=replace(one.tcp, initcwnd_segments=window))
        for one in conditions(["amazon", "wsj"], [20.0, 50.0, 100.0, 150.0, 200.0])
        for window in (4, 10, 20)
    )
    records = [record(one, seed) for one in asked for seed in range(2)]
    return write_results(folder, records, experiment(2, conditions=asked, reference=None))


def probe(source: str, script: str) -> str:
    """``source`` without its policy, and with a script at its end."""
    free = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", source)
    return free.replace("</body>", f"<script>{script}</script></body>")


def test_a_choice_of_page_hides_the_rows_of_the_others(tmp_path: Path) -> None:
    write_reports(write_sweep(tmp_path / "sweep"))
    page = tmp_path / "probe.html"
    page.write_text(
        probe(
            (tmp_path / "sweep" / "report.html").read_text(),
            """
            const table = document.querySelector("#proof .foldable"), seen = function () {
              return Array.from(table.querySelectorAll("tbody tr")).filter(function (row) {
                return row.offsetHeight > 0; }).length; };
            const all = seen(), choice = table.querySelector("select");
            choice.value = "wsj";
            choice.dispatchEvent(new Event("change"));
            document.title = all + " " + seen();
            """,
        )
    )
    found = re.search(r"<title>(\d+) (\d+)</title>", dump(page, tmp_path / "profile", 1200))
    assert found is not None
    assert (int(found[1]), int(found[2])) == (40, 60)


def test_waterfalls_are_drawn(sample: Path, tmp_path: Path) -> None:
    write_reports(sample)
    document = dump(sample / "report.html", tmp_path, 1200)
    data = json.loads(re.findall(r'id="waterfall-data">(.*?)</script>', document, re.DOTALL)[0])
    falls = document[document.index('id="falls"') : document.index('id="fall-values"')]
    assert 'id="falls" hidden' not in document
    assert falls.count("<option") == 2 * len(data["loads"]) == 2 * 96
    assert falls.count('class="plt own"') == falls.count('class="plt other"') == 2
    assert "With Fast Open: complete 96.0 ms (5.7 %) sooner than without Fast Open." in falls
    assert falls.count('class="stripe"') == 2 * 62
    assert "without Fast Open: load complete after 1680.6 ms, 62 requests" in falls
    assert "with Fast Open: load complete after 1584.6 ms, 62 requests" in falls


@pytest.mark.nightly(but="360")
@pytest.mark.parametrize("width", [360, 390, 768, 1400])
@pytest.mark.parametrize("content", ["table 1", "over tls", "sweep"])
def test_the_page_never_scrolls_sideways(
    sample: Path, tmp_path: Path, width: int, content: str
) -> None:
    folder = {"table 1": lambda: sample, "over tls": lambda: write_tls_sample(tmp_path / "tls"),
              "sweep": lambda: write_sweep(tmp_path / "sweep")}[content]()  # fmt: skip
    write_reports(folder)
    page = tmp_path / "probe.html"
    page.write_text(probe(
        (folder / "report.html").read_text(),
        "document.title=document.documentElement.scrollWidth+' '+innerWidth",
    ))  # fmt: skip
    found = re.search(r"<title>(\d+) (\d+)</title>", dump(page, tmp_path / "profile", width))
    assert found is not None
    assert int(found[1]) <= int(found[2]) == width
