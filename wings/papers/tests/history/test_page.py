"""The trend page: what needs a look comes first, in one file that loads nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analysis.records.kind import find_metric
from testbed.base.errors import ConfigurationError
from tests.analysis.nights import night, with_part
from wings.papers.history.database import open_history
from wings.papers.history.page import write_trend
from wings.papers.history.runs import keep_run


def test_the_page(tmp_path: Path) -> None:
    history, page = tmp_path / "history.sqlite", tmp_path / "out.html"
    keep_run(history, night(tmp_path / "one", 1), tmp_path / "one")
    newer = with_part("package.nginx", "1.26.0-1")
    keep_run(history, night(tmp_path / "two", 2, 1.2, newer, failed=2), tmp_path / "one")
    keep_run(history, night(tmp_path / "six", 3, version="6.1"), None)
    assert write_trend(history, page) == f"{page}: 3 runs, 16 cells, 2 lanes"
    text = page.read_text()
    assert text.count('<div class="trend"><svg') == 16
    marked = re.findall(r"<(?:polygon|circle)[^>]*><title>2026-11-02 02:17: ([^<]*), git", text)
    assert len([words for words in marked if words.endswith(" s, inconclusive")]) == 7
    assert [words for words in marked if "unproven" in words] == ["1 unproven, different"]
    assert "package.nginx: 1.22.1-9+deb12u2 → 1.26.0-1" in text
    assert "A &lt;b&gt;small&lt;/b&gt; sweep" in text
    assert not re.search(r"<script|src=|href=\"(?!#)|url\(", text)
    # What needs a look comes first.
    assert text.index("✗ different") < text.index("✓ same")


def test_the_page_by_another_metric_has_the_lanes_that_know_it(tmp_path: Path) -> None:
    history, page = tmp_path / "history.sqlite", tmp_path / "out.html"
    keep_run(history, night(tmp_path / "one", 1, seen=True), None)
    keep_run(history, night(tmp_path / "two", 2, 1.2, seen=True), tmp_path / "one")
    keep_run(history, night(tmp_path / "six", 3, version="6.1"), None)
    said = write_trend(history, page, metric=find_metric("fcp_ms"))
    assert said == f"{page}: 2 runs, 8 cells, 1 lane"
    text = page.read_text()
    assert "<h1>First contentful paints over time</h1>" in text
    assert "Against the baseline, by load time" in text
    assert 'class="dot different"' not in text
    write_trend(history, page, metric=find_metric("cls"))
    assert "<strong>0.0016</strong>" in page.read_text()


def test_a_metric_that_no_run_has_makes_no_page(tmp_path: Path) -> None:
    history = tmp_path / "history.sqlite"
    keep_run(history, night(tmp_path / "one", 1), None)
    with pytest.raises(
        ConfigurationError, match=r"first contentful paint \(fcp_ms\): only browsers"
    ):
        write_trend(history, tmp_path / "out.html", metric=find_metric("fcp_ms"))
    assert not (tmp_path / "out.html").exists()


def test_an_empty_history_makes_no_page(tmp_path: Path) -> None:
    history = tmp_path / "history.sqlite"
    with open_history(history, create=True):
        pass
    with pytest.raises(ConfigurationError, match="no run yet"):
        write_trend(history, tmp_path / "out.html")
    assert not (tmp_path / "out.html").exists()
