"""Traces of stated models: the same everywhere, and what their models say."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import pytest

from testbed.base import places
from testbed.base.errors import ConfigurationError
from testbed.model.trace import Trace
from testbed.traces.catalogue import find_problem, list_models, read_all
from testbed.traces.synthesis import read_models, synthesise

BASE = 'title = "x"\nsource = "x"\nseed = 1\nduration_s = {duration}\n[down]\n{down}\n[up]\n{up}\n'


def made(tmp_path: Path, down: str, duration: int = 20) -> Trace:
    path = tmp_path / "x.toml"
    path.write_text(BASE.format(duration=duration, down=down, up="mean_mbit = 1"))
    return synthesise(path, "down")


def mbit(trace: Trace, since_ms: int = 0, until_ms: int | None = None) -> float:
    until_ms = trace.end_ms if until_ms is None else until_ms
    return sum(since_ms <= t < until_ms for t in trace.times) * 0.012 * 1000 / (until_ms - since_ms)


def test_a_constant_rate_is_one(tmp_path: Path) -> None:
    steady = made(tmp_path, "mean_mbit = 12")
    assert list(steady.times) == list(range(20_000))


def test_a_level_has_the_mean_and_the_memory_that_are_asked(tmp_path: Path) -> None:
    fading = made(tmp_path, "mean_mbit = 24\nspread = 0.3\nmemory_ms = 100", 200)
    assert mbit(fading) == pytest.approx(24, rel=0.05)
    seconds = [mbit(fading, s * 1000, s * 1000 + 1000) for s in range(199)]
    # A second of levels that last 100 ms varies by the square root of 2 * 100 / 1000 of the spread.
    spread = mean((each - mean(seconds)) ** 2 for each in seconds) ** 0.5 / 24
    assert spread == pytest.approx(0.3 * 0.2**0.5, rel=0.25)


def test_what_is_blocked_leaves_its_share(tmp_path: Path) -> None:
    down = "mean_mbit = 100\nblocked_every_s = 1\nblocked_for_s = 1\nblocked_share = 0.1"
    blocked = made(tmp_path, down, 300)
    assert mbit(blocked) == pytest.approx(55, rel=0.15)


def test_a_reallocation_has_its_gap(tmp_path: Path) -> None:
    down = "mean_mbit = 100\nperiod_s = 5\nperiod_least = 0.3\nperiod_gap_ms = 60"
    renewed = made(tmp_path, down)
    rates = [mbit(renewed, s * 1000 + 60, s * 1000 + 5000) for s in (0, 5, 10, 15)]
    assert all(29 < rate < 101 for rate in rates) and len({round(rate) for rate in rates}) == 4
    assert not [t for t in renewed.times if t % 5000 < 60]


def test_turns_are_shared(tmp_path: Path) -> None:
    shared = made(tmp_path, "mean_mbit = 100\nturn_ms = 4\nothers = 3", 60)
    assert mbit(shared) == pytest.approx(25, rel=0.1)
    turns = {t // 4 for t in shared.times}
    assert len(turns) == pytest.approx(60_000 / 4 / 4, rel=0.1)


@pytest.mark.parametrize(
    ("down", "says"),
    [("mean_mbit = 1\nspeed = 2", "[down] speed: unknown"), ("", "[down] mean_mbit: needed"),
     ("mean_mbit = 0", "[down] mean_mbit: needed, above 0"),
     ("mean_mbit = 20000", "[down] mean_mbit: needed, above 0, up to 10000"),
     ("mean_mbit = 1\nspread = -1", "[down] spread: -1 is no number from 0"),
     ("mean_mbit = 1\nspread = nan", "[down] spread: nan is no number"),
     ("mean_mbit = 1\nspread = true", "[down] spread: True is no number"),
     ('mean_mbit = "1"', "[down] mean_mbit: '1' is no number"),
     ("mean_mbit = 0.0001", "[down] lets nothing through")],
)  # fmt: skip
def test_a_model_that_is_wrong(tmp_path: Path, down: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        made(tmp_path, down)
    assert says in str(refused.value)


def test_every_trace_of_the_tree_is_made() -> None:
    models = list_models(places.TRACES)
    assert {name.rpartition("-")[2] for name in models} == {"down", "up"}
    made_of_all = read_all(models, None, places.TRACES)
    for name, (path, way) in models.items():
        of_models, _, duration_s = read_models(path)
        trace = made_of_all[name]
        assert duration_s - 1 < trace.end_ms / 1000 < duration_s
        assert trace.digest == synthesise(path, way).digest
        assert 0.2 < mbit(trace) / of_models[way].mean_mbit < 1.1


def test_one_trace_is_what_it_was() -> None:
    """Else results of another machine, or Python, would be of another environment."""
    trace = read_all(["lte-drive-down"], None, places.TRACES)["lte-drive-down"]
    assert trace.digest[:16] == "260d5c7d0aeba27f"


def test_a_name_that_is_none(tmp_path: Path) -> None:
    problem = find_problem("lte-drive-dwn", tmp_path, places.TRACES)
    assert problem is not None
    assert "did you mean 'lte-drive-down'" in problem
    missing = find_problem("my.trace", tmp_path, places.TRACES)
    assert missing == (
        f"there is no file {tmp_path}/my.trace; a trace of yours is beside the experiment file"
    )
    (tmp_path / "my.trace").write_text("1\n")
    assert find_problem("my.trace", tmp_path, places.TRACES) is None
    (tmp_path / "bad.trace").write_text("x\n")
    with pytest.raises(ConfigurationError) as refused:
        read_all(["bad.trace", "none.trace"], tmp_path, places.TRACES)
    assert len(refused.value.problems) == 2
