"""Loads of several kernels in one figure: matched by point, never pooled, each judged by itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.records.results import Results, read_results
from analysis.report.publications import Rebuilt
from firstflight.cli.main import main
from testbed.base.errors import ConfigurationError
from testbed.experiment.lanes import write_lanes
from testbed.model import Experiment, Record, TcpSpec
from tests.analysis.sample import write_results, write_sample
from tests.hallway import make_services
from wings.papers.reproductions.lanes import draw_lanes, name_lanes, write_lanes_page
from wings.papers.tests.reproductions.overloads import PRICES, load_at, point
from wings.papers.tests.reproductions.test_fastopen_server import at_rate, in_a_loop
from wings.server_loads.spec import Mechanism, ServerLoad
from wings.server_loads.tests.served import served_of

MULTIPLES = (0.7, 1.0, 1.5)
NAME = "overload-establishment"


def lane(folder: Path, records: Iterable[Record], kernel: str, version: str, name: str = NAME,
         reference: str | None = NAME, saturation: int | None = 1000) -> Results:  # fmt: skip
    """Exactly these records, as if they were of that kernel."""
    kept = [
        replace(record, trial=trial, trial_id=trial.id)
        for record in records
        for trial in (replace(record.trial, kernel=kernel, kernel_version=version),)
    ]
    asked = Experiment(name, "An overload",
                       tuple(dict.fromkeys(record.trial.condition for record in kept)),
                       kernel=kernel, kernel_version=version, reference=reference,
                       kind="server_load", saturation_per_s=saturation)  # fmt: skip
    return read_results(write_results(folder, kept, asked))


def overload(factor: float = 1.0, scale: float = 1.0) -> list[Record]:
    """Two mechanisms at three multiples: replies times ``factor``, a server ``scale`` fast."""
    found = []
    arms: tuple[Mechanism, ...] = ("default", "abort")
    for mechanism in arms:
        for multiple in MULTIPLES:
            load = load_at(mechanism, multiple)
            rate = round(1000 * multiple * scale)
            load = replace(load, arrivals=replace(load.arrivals, rate_per_s=rate))
            replies = min(rate, 900 * scale) * factor
            found.append(point(load, replies, 10.0 * factor, failed_pct=10 * multiple))
    return found


def drawn(*every: Results) -> Rebuilt:
    return draw_lanes(name_lanes(every))


def test_both_kernels_are_in_one_figure_and_their_distance_is_a_number(tmp_path: Path) -> None:
    found = drawn(lane(tmp_path / "v", overload(), "virtual", "7.3"),
                  lane(tmp_path / "h", overload(1.1), "host", "6.18"))  # fmt: skip
    names = [figure.name for figure in found.figures]
    expected = ["lanes-replies-of-saturation", "lanes-response-ms", "lanes-failed-pct"]
    assert names == expected
    spec = found.figures[0].chart.to_dict()
    shown = {row["dash"] for row in spec["data"]["values"]}
    assert shown == {"virtual 7.3", "host 6.18"}
    (grid,) = found.tables
    row = dict(zip(grid.columns, grid.rows[0], strict=True))
    assert row["Mechanism"] == "default"
    assert row["Replies, multiple of the saturation, host 6.18"] == 0.77
    assert row["host 6.18: % more"] == 10.0
    assert len(grid.rows) == 2 * len(MULTIPLES)
    first = found.story[0]
    assert first.startswith("Host 6.18 beside virtual 7.3, at 6 points that both have")
    assert "mean response (ms) +10.0 % (+10.0 to +10.0)" in first
    assert "failed (%) 0.0 points" in first


def test_each_kernel_has_its_own_verdicts_one_below_the_other(tmp_path: Path) -> None:
    virtual = lane(tmp_path / "v", overload(), "virtual", "7.3")
    found = drawn(virtual, lane(tmp_path / "h", overload(0.5), "host", "6.18"))
    assert [check.lane for check in found.checks] == ["virtual 7.3", "host 6.18"] * (
        len(found.checks) // 2
    )
    saturation = found.checks[:2]
    assert {check.what for check in saturation} == {saturation[0].what}
    assert [check.agreement for check in saturation] == ["differs", "differs"]
    assert any(sentence.startswith("Host 6.18: ") for sentence in found.story)


def test_reasons_of_the_model_are_given_in_virtual_time_only(tmp_path: Path) -> None:
    cpu = [
        at_rate(rate, on, rate / 50 - 10.0 * on) for rate in (2000, 4000) for on in (False, True)
    ]
    name = "fastopen-server-cpu"
    found = drawn(lane(tmp_path / "v", cpu, "virtual", "7.3", name, name),
                  lane(tmp_path / "h", cpu, "host", "6.18", name, name))  # fmt: skip
    virtual, host = found.checks[:2]
    assert (virtual.agreement, host.agreement) == ("differs", "differs")
    assert "price list" in virtual.why and "each has its price" in virtual.why
    assert "price" not in host.why and "model" not in host.why


def test_servers_of_different_speed_meet_at_multiples_of_their_saturations(tmp_path: Path) -> None:
    found = drawn(
        lane(tmp_path / "v", overload(), "virtual", "7.3"),
        lane(tmp_path / "h", overload(scale=3.0), "host", "6.18", saturation=3000),
    )
    (grid,) = found.tables
    assert [row[4] for row in grid.rows] == [0.0] * len(grid.rows)  # how much more is replied
    assert "Saturation of host 6.18: 3,000 1/s." in found.figures[0].caption


def test_without_a_saturation_they_meet_at_their_rates(tmp_path: Path) -> None:
    found = drawn(lane(tmp_path / "v", overload(), "virtual", "7.3", saturation=None),
                  lane(tmp_path / "h", overload(1.2), "host", "6.18"))  # fmt: skip
    assert found.figures[0].name == "lanes-throughput"
    assert found.tables[0].columns[1] == "Rate"
    assert found.tables[0].columns[2] == "Replies (1/s), virtual 7.3"


def test_what_the_kernels_do_not_share_is_named(tmp_path: Path) -> None:
    prices = [replace(one, measured=replace(served_of(one), prices_ns=PRICES))
              for one in overload()]  # fmt: skip
    slower = [
        replace(
            one,
            trial=replace(one.trial, condition=_with_rtt(one.trial.condition_as(ServerLoad), 20.0)),
        )
        for one in overload()
    ]
    found = drawn(lane(tmp_path / "v", prices, "virtual", "7.3"),
                  lane(tmp_path / "h", slower[:3], "host", "6.18"))  # fmt: skip
    assert "RTT (2 ms on virtual 7.3, 20 ms on host 6.18)" in found.figures[0].caption
    assert "priced by a model" in found.figures[0].caption
    assert "at 3 points" in found.story[0]
    missing = found.tables[0].rows[-1]
    assert missing[3] is None and missing[4] is None


def _with_rtt(load: ServerLoad, rtt_ms: float) -> ServerLoad:
    return replace(load, link=replace(load.link, rtt_ms=rtt_ms))


def test_prices_that_were_measured_are_named(tmp_path: Path) -> None:
    virtual = lane(tmp_path / "v", overload(), "virtual", "7.3")
    asked = {**virtual.manifest["experiment"], "prices_from": "measured: on a machine, n = 8"}
    measured = replace(virtual, manifest={**virtual.manifest, "experiment": asked})
    caption = drawn(measured, virtual).figures[0].caption
    assert "its prices are measured: on a machine, n = 8" in caption
    assert "chosen, not measured" in caption


def test_two_folders_of_one_kernel_are_told_apart(tmp_path: Path) -> None:
    lanes = name_lanes([lane(tmp_path / name, overload(), "virtual", "7.3")
                        for name in ("one", "two")])  # fmt: skip
    assert [each.name for each in lanes] == ["virtual 7.3, one", "virtual 7.3, two"]


def test_the_other_server_figures(tmp_path: Path) -> None:
    cpu = [at_rate(rate, on, rate / 100) for rate in (1000, 2000) for on in (False, True)]
    loop = [in_a_loop(on, 2000.0) for on in (False, True)]
    counters = {"TcpPassiveOpens": 90, "TcpInSegs": 600}
    counted = [replace(one, proof=replace(one.proof, server_counters=counters))
               for one in overload() if one.proof]  # fmt: skip
    for name, records, titles in (
        ("fastopen-server-cpu", cpu, ["Figure 6: server's processor (%)"]),
        ("fastopen-closed-loop", loop, []),
        ("overload-segments", counted, []),
        ("overload-termination", overload(), ["Figure 5: replies, multiple of the saturation"]),
    ):
        found = drawn(*(lane(tmp_path / name / kernel, records, kernel, "1", name, name)
                        for kernel in ("virtual", "host")))  # fmt: skip
        assert [figure.title for figure in found.figures] == titles
        assert len(found.tables) == 1
        assert "0.0" in found.story[0]


def test_what_no_lane_has_is_not_side_by_side(tmp_path: Path) -> None:
    name = "overload-segments"
    found = drawn(*(lane(tmp_path / kernel, overload(), kernel, "1", name, name)
                    for kernel in ("virtual", "host")))  # fmt: skip
    assert (found.tables, found.figures) == ((), ())
    counts = [check for check in found.checks if check.where == "Table II"]
    assert {check.agreement for check in counts} == {"not measured"}


def test_an_experiment_without_a_publication_has_a_figure_for_each_other_knob(
    tmp_path: Path,
) -> None:
    records = [
        replace(one, trial=replace(one.trial, condition=replace(
            one.trial.condition_as(ServerLoad), tcp=TcpSpec(tfo=tfo)
        )))
        for tfo in (False, True)
        for one in overload()
    ]  # fmt: skip
    found = drawn(*(lane(tmp_path / kernel, records, kernel, "1", "today", None, None)
                    for kernel in ("virtual", "host")))  # fmt: skip
    assert len(found.tables) == 2
    assert [figure.name for figure in found.figures][:2] == [
        "lanes-throughput-fast-open-off", "lanes-response-ms-fast-open-off"
    ]  # fmt: skip
    assert found.checks == ()


def test_only_loads_of_one_experiment_on_servers_are_side_by_side(tmp_path: Path) -> None:
    one = lane(tmp_path / "v", overload(), "virtual", "7.3")
    other = lane(tmp_path / "o", overload(), "virtual", "7.3", "overload-segments")
    with pytest.raises(ConfigurationError, match="several experiments"):
        name_lanes([one, other])
    pages = read_results(write_sample(tmp_path / "p"))
    with pytest.raises(ConfigurationError, match="no load on a server"):
        name_lanes([pages, pages])


def test_the_page_has_figures_distances_and_the_verdicts_of_each_kernel(tmp_path: Path) -> None:
    page = tmp_path / "lanes.html"
    write_lanes_page(page,
                     [lane(tmp_path / "v", overload(), "virtual", "7.3"),
                      lane(tmp_path / "h", overload(1.1), "host", "6.18")])  # fmt: skip
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
