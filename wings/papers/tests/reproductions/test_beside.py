"""Claims of a TOML alone: held to the medians of cells and to pairs, and to what others have."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.records.results import Results, read_results
from analysis.report.publications import StatedCheck
from analysis.report.terminal import render_table
from testbed.base import places
from testbed.base.errors import ConfigurationError
from testbed.experiment.config import load_experiment
from testbed.runner.prepare import read_catalogue
from tests.analysis.sample import broken, record
from wings.papers.publications import rebuild_as
from wings.papers.published.reference import read_reference
from wings.papers.tests.reproductions.sweeps import condition, results_of

SAMPLES = places.ROOT / "analysis" / "samples"
OURS = ("bufferbloat", "fast-open-today", "from-orbit", "queue-or-sender", "tum-file-sizes",
        "tum-receive-window")  # fmt: skip
SLOWER = """
says = "a larger buffer makes the page slower"
place = "Ours"
rises = "plt_ms"
along = "buffer_bytes"
each = "qdisc"
row = "{qdisc}"
step = "{plt_ms:0} ms"
"""
TWICE = """
says = "a FIFO takes twice as long as another queue"
place = "Ours"
cells = "qdisc == 'fifo'"
derived.other_ms = "plt_ms.where(qdisc != 'fifo').groupby(buffer_bytes).transform('max')"
holds = "plt_ms >= 2 * other_ms"
row = "{buffer_bytes} ({other_ms:0} ms)"
"""
SAVES = """
says = "Fast Open saves a tenth"
place = "Ours"
table = "pairs"
holds = "saved_pct >= 10"
row = "{page} ({saved_pct:1} %)"
"""


def queues(folder: Path, **plt_ms: tuple[float, float]) -> Results:
    """Loads through buffers of 32 and 64 KB by each queue."""
    loads = [record(condition("amazon", 20.0, qdisc=qdisc, buffer_bytes=size), 0, took)
             for qdisc, times in plt_ms.items()
             for size, took in zip((32768, 65536), times, strict=True)]  # fmt: skip
    return results_of(folder / "results", loads)


def judged(folder: Path, results: Results, claim: str) -> StatedCheck:
    (folder / "x.toml").write_text(f'title = "X"\ncitation = "X."\n[[claim]]\n{claim}')
    rebuilt = rebuild_as(results, read_reference("x", folder))
    assert rebuilt is not None
    (check,) = rebuilt.checks
    return check


def test_a_claim_is_held_to_the_medians_of_cells(tmp_path: Path) -> None:
    results = queues(tmp_path, fifo=(1000.0, 3000.0), codel=(1000.0, 900.0))
    check = judged(tmp_path, results, SLOWER)
    assert (check.where, check.agreement) == ("Ours", "differs")
    assert check.ours == "in 1 of 2; not in codel (1000 ms, 900 ms)"


@pytest.mark.parametrize(("slow_ms", "agreement"), [(2000.0, "agrees"), (1700.0, "differs")])
def test_a_cell_is_held_against_those_that_the_claim_is_not_about(
    tmp_path: Path, slow_ms: float, agreement: str
) -> None:
    results = queues(tmp_path, fifo=(2000.0, slow_ms), codel=(1000.0, 900.0))
    check = judged(tmp_path, results, TWICE)
    assert check.agreement == agreement
    assert ("65536 B (900 ms)" in check.ours) == (agreement == "differs")


@pytest.mark.parametrize(("on_ms", "agreement"), [(890.0, "agrees"), (950.0, "differs")])
def test_a_claim_is_held_to_pairs(tmp_path: Path, on_ms: float, agreement: str) -> None:
    off, on = (condition("amazon", 20.0, tfo=tfo) for tfo in (False, True))
    results = results_of(tmp_path / "results", [record(off, 0, 1000.0), record(on, 0, on_ms)])
    assert judged(tmp_path, results, SAVES).agreement == agreement


def test_where_some_seeds_agree_the_spread_is_too_wide(tmp_path: Path) -> None:
    loads = [record(condition("amazon", 20.0, tfo=tfo), seed, plt_ms + 20.0 * seed * tfo)
             for tfo, plt_ms in ((False, 1000.0), (True, 850.0)) for seed in range(6)]  # fmt: skip
    check = judged(tmp_path, results_of(tmp_path / "results", loads), SAVES)
    assert check.agreement == "our spread is too wide to say"


def test_what_no_load_has_is_not_measured(tmp_path: Path) -> None:
    results = queues(tmp_path, fifo=(1000.0, 3000.0))
    check = judged(tmp_path, results, SLOWER.replace("plt_ms", "call_p95_ms"))
    assert check.agreement == "not measured"
    with pytest.raises(ConfigurationError, match="the table 'cells' has: page"):
        judged(tmp_path, results, SLOWER.replace("plt_ms", "plt_s"))


def test_claims_may_be_of_any_kind_of_trial(tmp_path: Path) -> None:
    results = read_results(SAMPLES / "overload-segments")
    claim = """
says = "no client fails"
place = "Ours"
holds = "failed_pct <= 0"
"""
    assert judged(tmp_path, results, claim).agreement != "not measured"
    assert judged(tmp_path, results, SAVES).agreement == "not measured"


@pytest.mark.parametrize("name", OURS)
def test_claims_of_our_experiments_are_judged_by_their_committed_results(name: str) -> None:
    experiment = load_experiment(places.CONFIGS / f"{name}.toml", read_catalogue())
    assert experiment.reference == name
    rebuilt = rebuild_as(read_results(SAMPLES / name), read_reference(name))
    assert rebuilt is not None
    assert [one.what for one in rebuilt.checks if one.agreement == "not measured"] == []
    assert len(rebuilt.checks) == len(read_reference(name).claims)
    assert all(one.why for one in rebuilt.checks if one.agreement == "differs")


def test_a_terminal_is_told_how_many_hold_and_which_do_not() -> None:
    said = " ".join(render_table(SAMPLES / "bufferbloat", 100).split())
    assert " of 9 claims agree. " in said
    assert "RFC 8290, abstract: FQ-CoDel isolates web traffic" in said
    assert "differs: in 0 of 5" in said


def test_without_a_proven_load_no_claim_is_measured(tmp_path: Path) -> None:
    failed = broken(record(condition("amazon", 20.0), 0, 1000.0), "failed")
    for claim in (SLOWER, TWICE, SAVES):
        folder = tmp_path / str(len(claim))
        folder.mkdir()
        check = judged(folder, results_of(folder / "results", [failed]), claim)
        assert check.agreement == "not measured"
