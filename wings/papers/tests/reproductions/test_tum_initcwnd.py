from __future__ import annotations

from pathlib import Path

import pytest

from analysis.report.publications import Rebuilt
from analysis.shortflow import predict_fetch_ms
from testbed.model import Condition, Record
from wings.papers.publications import rebuild_as
from wings.papers.published.reference import read_reference
from wings.papers.reproductions.tum_initcwnd import REQUEST_BYTES
from wings.papers.tests.reproductions.sweeps import (
    check_at,
    checks_at,
    condition,
    fetch,
    results_of,
)

REFERENCE = read_reference("tum-initcwnd")
LINK = {"down_kbit": 10000, "up_kbit": 10000, "buffer_bytes": 1_514_000, "framing_bytes": 14}
SIZES = {"file-60k": 61_920, "file-1m": 1_049_056}


def transfer(page: str, rtt_ms: float, window: int) -> Condition:
    return condition(page, rtt_ms, initcwnd_segments=window, dns="hosts", **LINK)


def loads(rtt_ms: float, times_ms: dict[tuple[str, int], float]) -> list[Record]:
    return [fetch(transfer(page, rtt_ms, window), plt_ms, SIZES[page])
            for (page, window), plt_ms in times_ms.items()]  # fmt: skip


def rebuilt(folder: Path, records: list[Record]) -> Rebuilt:
    found = rebuild_as(results_of(folder, records), REFERENCE)
    assert found is not None
    return found


def test_stated_durations_and_gains(tmp_path: Path) -> None:
    times = {("file-60k", 4): 1020.0, ("file-60k", 10): 816.0}
    found = rebuilt(tmp_path, loads(200.0, times))
    four = check_at(found, "duration of file-60k at RTT 200 ms with a window of 4")
    assert (four.stated, four.ours, four.agreement) == ("1.3 s", "1.02 s", "differs")
    assert four.why.startswith("Theirs takes 0.28 s more: 1.4 round trips. See")
    # (1.020 - 0.816) / 1.020 = 20.0 %; 0.204 s are 15 % of 1.36 s.
    gain = check_at(found, "improvement of file-60k at RTT 200 ms")
    assert (gain.stated, gain.ours, gain.agreement) == ("15 %", "20.0 %", "differs")
    assert "0.204 s (1.0 round trips) of 1.020 s" in gain.why and "1.36 s" in gain.why
    assert check_at(found, "improvement of file-60k at RTT 40 ms").agreement == "not measured"


def test_rounded_as_they_rounded_it_is_the_same(tmp_path: Path) -> None:
    times = {("file-60k", 4): 1349.0, ("file-60k", 10): 1149.0}
    found = rebuilt(tmp_path, loads(200.0, times))
    four, ten = checks_at(found, "duration of file-60k")
    assert (four.agreement, ten.agreement) == ("agrees", "agrees")
    assert check_at(found, "improvement of file-60k at RTT 200 ms").ours == "14.8 %"


def test_longer_files_and_shorter_paths_gain_less(tmp_path: Path) -> None:
    records = [*loads(200.0, {("file-60k", 4): 1000.0, ("file-60k", 10): 800.0}),
               *loads(200.0, {("file-1m", 4): 3000.0, ("file-1m", 10): 2850.0}),
               *loads(40.0, {("file-60k", 4): 400.0, ("file-60k", 10): 300.0})]  # fmt: skip
    found = rebuilt(tmp_path, records)
    sizes = check_at(found, "1 MiB profits")
    assert (sizes.ours, sizes.agreement) == ("in 1 of 1", "agrees")
    # 20 % at 200 ms, 25 % at 40 ms.
    paths = check_at(found, "lower round-trip time")
    assert paths.ours == "in 0 of 1; not in file-60k (25.0 %, 20.0 %)"
    assert [figure.title for figure in found.figures] == [
        "Figure 2: RTT 200 ms", "Figure 3: RTT 40 ms",
    ]  # fmt: skip


def test_the_model_is_beside_ours(tmp_path: Path) -> None:
    one = transfer("file-60k", 200.0, 4)
    exact_ms = predict_fetch_ms(one.link, one.tcp, 400, SIZES["file-60k"])
    found = rebuilt(tmp_path, [fetch(one, exact_ms * 1.02, SIZES["file-60k"])])
    (grid,) = found.tables
    # The sample's HAR says that the request had 400 bytes, and so does the fall-back.
    assert REQUEST_BYTES == 400
    assert grid.columns[0] == "Initial window (segments)"
    assert grid.rows == ((4, round(exact_ms * 1.02 / 1000, 3), round(exact_ms / 1000, 3), 2.0),)
    check = check_at(found, "the closed form")
    assert check.agreement == "differs"
    assert check.ours == "in 0 of 1; not in file-60k, window 4, RTT 200 ms (+2.00 %)"


@pytest.mark.parametrize("knobs", [{"dns": "resolver"}, {"loss_pct": 1.0}])
def test_where_the_model_does_not_hold_there_is_no_line(
    knobs: dict[str, object], tmp_path: Path
) -> None:
    one = condition("file-60k", 40.0, **{"initcwnd_segments": 4, "dns": "hosts", **LINK, **knobs})
    found = rebuilt(tmp_path, [fetch(one, 500.0, SIZES["file-60k"])])
    assert found.tables[0].rows == ((4, 0.5, None, None),)
    assert check_at(found, "the closed form").agreement == "not measured"


def test_another_link_is_drawn_but_not_compared(tmp_path: Path) -> None:
    one = condition("file-60k", 200.0, initcwnd_segments=4, dns="hosts")
    found = rebuilt(tmp_path, [fetch(one, 1300.0, SIZES["file-60k"])])
    assert len(found.figures) == 1
    assert {check.agreement for check in checks_at(found, "duration of")} == {"not measured"}
