"""Page of several kernels: whole, without scripts, and with the lane of each number."""

from __future__ import annotations

from pathlib import Path

from firstflight.cli.main import main
from testbed.experiment.lanes import write_lanes
from tests.hallway import make_services
from wings.papers.reproductions.lanes import write_lanes_page
from wings.papers.tests.reproductions.test_lanes import lane, overload


def test_the_page_has_figures_distances_and_the_verdicts_of_each_kernel(tmp_path: Path) -> None:
    page = tmp_path / "lanes.html"
    write_lanes_page(page, [
        lane(tmp_path / "v", overload(), "virtual", "7.3"),
        lane(tmp_path / "h", overload(1.1), "host", "6.18"),
    ])  # fmt: skip
    text = page.read_text()
    assert text.count("<svg") == 3
    assert "<script" not in text
    assert "Host 6.18 beside virtual 7.3" in text
    assert '<td class="text wrap" data-name="Lane">host 6.18</td>' in text
    assert "Figure 3, side by side" in text


def test_equal_records_give_an_equal_page(tmp_path: Path) -> None:
    every = [lane(tmp_path / "v", overload(), "virtual", "7.3"),
             lane(tmp_path / "h", overload(1.1), "host", "6.18")]  # fmt: skip
    pages = [tmp_path / name for name in ("a.html", "b.html")]
    for page in pages:
        write_lanes_page(page, every)
    assert pages[0].read_text() == pages[1].read_text()


def test_loads_on_a_server_are_drawn_in_one_figure_as_well(tmp_path: Path) -> None:
    versions = ("6.1", "7.3")
    for version in versions:
        lane(tmp_path / version, overload(), "virtual", version)
    write_lanes(tmp_path, versions)
    assert main(["report", str(tmp_path)], make_services(tmp_path)) == 0
    assert {p.name for p in tmp_path.iterdir()} == {
        *versions, "lanes.json", "compare.html", "lanes.html"
    }  # fmt: skip
