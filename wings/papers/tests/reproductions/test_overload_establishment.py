from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.report.document import write_reports
from testbed.model import Record
from wings.papers.tests.reproductions.overloads import load_at, point, rebuilt
from wings.papers.tests.reproductions.sweeps import check_at, checks_at
from wings.server_loads.spec import Mechanism
from wings.server_loads.tests.served import served_of

NAME = "overload-establishment"
# Replies a second and the mean response above the saturation, by arm.
ABOVE: dict[Mechanism, tuple[float, float]] = {
    "default": (700.0, 900.0), "abort": (750.0, 600.0), "reserv": (800.0, 800.0),
    "abort rst-syn": (910.0, 9.0), "reserv rst-syn": (980.0, 8.0)
}  # fmt: skip


def sweep(seeds: int = 1) -> list[Record]:
    """All arms are alike up to the saturation, and above it at 1.15 and 1.5 times."""
    found = []
    for seed in range(seeds):
        for arm, (replies, response_ms) in ABOVE.items():
            found += [
                point(load_at(arm, 0.7), 700.0, 5.0, seed=seed),
                point(load_at(arm, 1.0), 999.0, 20.0, seed=seed),
                point(load_at(arm, 1.15), replies + 50 + seed, response_ms, 20.0, seed),
                point(load_at(arm, 1.5), replies + seed, response_ms, 40.0, seed),
            ]
    return found


def test_figures_table_and_story(tmp_path: Path) -> None:
    found = rebuilt(tmp_path, NAME, sweep())
    assert [figure.name for figure in found.figures] == ["throughput", "response-time", "failures"]
    assert all("priced by a model" in figure.caption for figure in found.figures)
    assert "Dashed" in found.figures[0].caption
    layers = found.figures[1].chart.to_dict()["layer"]
    assert layers[0]["encoding"]["y"]["scale"]["type"] == "log"
    (grid,) = found.tables
    assert len(grid.rows) == 20
    assert grid.rows[3][:4] == ("default", 1.5, 1500, 700.0)
    first, second, third = found.story
    assert first.startswith("The server keeps up with 1,000 connections a second")
    assert second.startswith("At 0.70 times that rate 100 % of the connections are answered")
    assert "default 700 a second after 900 ms" in third


def test_the_ideal_line_bends_at_the_capacity_of_the_prices(tmp_path: Path) -> None:
    chart = rebuilt(tmp_path, NAME, sweep()).figures[0].chart.to_dict()
    model = [row for row in chart["data"]["values"] if row["kind"] == "model"]
    assert [(round(row["x"], 3), round(row["y"], 1)) for row in model] == [
        (0.7, 700.0), (1.0, 1000.0), (1.053, 1052.6), (1.15, 1052.6), (1.5, 1052.6),
    ]  # fmt: skip


def test_what_is_stated_beside_ours(tmp_path: Path) -> None:
    found = rebuilt(tmp_path, NAME, sweep())
    assert check_at(found, "The peak throughput is the same").agreement == "agrees"
    abort = check_at(found, "throughput of abort over default")
    assert (abort.stated, abort.ours, abort.agreement) == ("at most 10 %", "6.7 to 7.1 %", "agrees")
    reserv = check_at(found, "throughput of reserv over default")
    assert (reserv.ours, reserv.agreement) == ("13.3 to 14.3 %", "differs")
    assert reserv.why.startswith("At 1.15, 1.5 times the saturation. See")
    peak = check_at(found, "peak throughput of abort rst-syn over")
    assert (peak.stated, peak.ours, peak.agreement) == ("11 %", "0.0 %", "differs")
    largest = check_at(found, "largest improvement of reserv rst-syn")
    assert (largest.stated, largest.ours, largest.agreement) == ("40 %", "40.0 %", "agrees")
    orders = check_at(found, "mean response time of abort rst-syn")
    assert (orders.ours, orders.agreement) == ("2.0 orders of magnitude", "agrees")
    assert check_at(found, "increases with the rate").ours == "in 2 of 2"
    assert check_at(found, "rise sharply").agreement == "agrees"
    assert check_at(found, "fairly close").agreement == "agrees"
    failed = check_at(found, "fewer clients without a response")
    assert (failed.ours.split(";")[0], failed.agreement) == ("in 0 of 4", "differs")


def test_a_mean_that_has_not_settled_is_held_against_nothing(tmp_path: Path) -> None:
    moving = [replace(record, measured=replace(served_of(record), response_halves_ms=(1.0, 2.0)))
              for record in sweep()]  # fmt: skip
    found = rebuilt(tmp_path, NAME, moving)
    assert check_at(found, "mean response time of abort rst-syn").agreement == "not measured"
    assert check_at(found, "rise sharply").agreement == "not measured"
    assert check_at(found, "throughput of abort over default").agreement == "agrees"
    (grid,) = found.tables
    assert {row[6] for row in grid.rows} == {None}


@pytest.mark.parametrize(("answered", "agreement"), [(40, "agrees"), (60, "differs")])
def test_syns_that_are_sent_again_are_counted(
    tmp_path: Path, answered: int, agreement: str
) -> None:
    records = [point(load_at("default", 1.5), 700.0, 900.0, repeated=100,
                     repeated_answered=answered)]  # fmt: skip
    assert check_at(rebuilt(tmp_path, NAME, records), "sent again").agreement == agreement


def test_seeds_make_intervals_of_gains(tmp_path: Path) -> None:
    found = rebuilt(tmp_path, NAME, sweep(seeds=6))
    # 40 % in the first run, and less where both gained the same.
    largest = check_at(found, "largest improvement of reserv rst-syn")
    assert "interval 39.7 to 40.0 %" in largest.ours


@pytest.mark.parametrize(
    ("at_once", "above", "agreement"),
    [(999.0, 700.0, "agrees"), (900.0, 700.0, "differs"), (999.0, 1140.0, "differs")],
)
def test_a_saturation_is_held_against_what_was_measured(
    tmp_path: Path, at_once: float, above: float, agreement: str
) -> None:
    records = [point(load_at("default", 1.0), at_once, 20.0),
               point(load_at("default", 1.15), above, 900.0)]  # fmt: skip
    found = rebuilt(tmp_path, NAME, records)
    assert check_at(found, "This experiment").agreement == agreement
    assert ("read no curve" in found.story[0]) == (agreement == "differs")


def test_without_a_saturation_nothing_is_held_against_the_publication(tmp_path: Path) -> None:
    found = rebuilt(tmp_path, NAME, sweep(), saturation=None)
    assert {check.agreement for check in found.checks} == {"not measured"}
    assert found.figures[0].chart.to_dict()["layer"][0]["encoding"]["x"]["title"] == "Rate (1/s)"


def test_what_else_was_swept_makes_figures_of_its_own(tmp_path: Path) -> None:
    records = [point(load_at("default", multiple, listen_backlog=backlog), 900.0, 20.0)
               for backlog in (64, 128) for multiple in (1.0, 1.15)]  # fmt: skip
    found = rebuilt(tmp_path, NAME, records)
    titles = [figure.title for figure in found.figures[::3]]
    assert titles == ["Figure 3(a): throughput (listen backlog 64)",
                      "Figure 3(a): throughput (listen backlog 128)"]  # fmt: skip
    assert len(checks_at(found, "This experiment")) == 2


def test_of_no_load_there_is_nothing(tmp_path: Path) -> None:
    found = rebuilt(tmp_path, NAME, [])
    assert (found.figures, found.tables, found.story) == ((), (), ())


def test_the_report_of_a_publication_begins_with_its_story(tmp_path: Path) -> None:
    records = [
        point(load_at("default", multiple), replies, response_ms)
        for multiple, replies, response_ms in ((0.7, 700.0, 5.0), (1.0, 999.0, 20.0),
                                               (1.5, 700.0, 900.0))
    ]  # fmt: skip
    made = tmp_path / "run"
    rebuilt(made, "overload-establishment", records)
    write_reports(made)
    page = (made / "report.html").read_text()
    story, _, rest = page.partition('<p class="story">')[2].partition("</p>")
    assert story.startswith("The server keeps up with 1,000 connections a second")
    assert page.index('class="story"') < page.index('class="findings"')
    assert "with another kernel and another server" in rest and "another browser" not in rest
