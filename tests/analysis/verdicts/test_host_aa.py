"""100 A/A comparisons on recorded loads in real time: who compares a thing with itself is right.

``data/host-aa`` is a baseline of the host kernel with about 40 loads in each cell.  A split deals
the loads of each cell out to two results folders by chance; what is measured is one and the same.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.records.cells import cells_of, key_of
from analysis.records.results import read_results
from analysis.verdicts.compare.comparison import Comparison
from analysis.verdicts.compare.folders import compare_results
from testbed.model import PageLoad, Record
from testbed.results.records import write_record
from tests.analysis.sample import conditions, experiment, record, write_results
from tests.measured import load_of

pytestmark = pytest.mark.slow

RECORDED = Path(__file__).parents[1] / "data" / "host-aa"
SPLITS = 100
FLAGGED_AT_MOST = 5
SHIFT = 1.03
"""The planted regression: 3 % on one cell."""
FOUND_AT_LEAST = 80


def invented(folder: Path, cells: int = 4, loads: int = 40) -> Path:
    """What a host run leaves: skewed noise of 1 %, now and then a stall."""
    draws = random.Random(3)  # noqa: S311
    asked = conditions(("amazon", "wsj"), (20.0,))[:cells]
    records = []
    for condition in asked:
        for block in range(loads):
            made = record(condition, block)
            stall = 300.0 if draws.random() < 0.02 else 0.0
            made = _of(made, 3000.0 * (1 + draws.gammavariate(2.0, 0.005)) + stall)
            trial = replace(made.trial, kernel="host", kernel_version="6.18")
            records.append(replace(made, trial=trial, trial_id=trial.id))
    return write_results(
        folder, records, experiment(loads, conditions=asked, kernel="host", reference=None)
    )


def splits(
    folder: Path, where: Path, times: int, factor: float = 1.0
) -> Iterator[tuple[Path, Path, str]]:
    """``times`` pairs of folders that share the loads of ``folder``, dealt out by chance.

    In the second of each pair the loads of one cell are longer by ``factor``; its key in words.
    """
    results = read_results(folder)
    manifest = json.dumps(results.manifest)
    cells = cells_of(results)
    first = str(key_of(cells[0].axes))
    # A load is in every pair: its line is written out once.
    lines = [[_line(one) for one in cell.records] for cell in cells]
    changed = [[_line(_longer(one, factor)) for one in cells[0].records], *lines[1:]]
    for seed in range(times):
        draws = random.Random(seed)  # noqa: S311
        halves: tuple[list[str], list[str]] = ([], [])
        for cell, longer in zip(lines, changed, strict=True):
            dealt = list(range(len(cell)))
            draws.shuffle(dealt)
            halves[0].extend(cell[number] for number in dealt[: len(dealt) // 2])
            halves[1].extend(longer[number] for number in dealt[len(dealt) // 2 :])
        yield (_write(where / f"{seed}-base", halves[0], manifest),
               _write(where / f"{seed}-new", halves[1], manifest), first)  # fmt: skip


def flagged(found: Comparison) -> list[str]:
    return [str(key_of(cell.axes)) for cell in found.cells if cell.verdict == "different"]


def count_flagged(folder: Path, where: Path, times: int) -> int:
    return sum(
        compare_results(base, new).verdict == "different"
        for base, new, _ in splits(folder, where, times)
    )


def count_found(folder: Path, where: Path, times: int) -> tuple[int, int]:
    """How often the planted shift is found, and how often another cell is flagged."""
    found = others = 0
    for base, new, key in splits(folder, where, times, SHIFT):
        names = flagged(compare_results(base, new))
        found += key in names
        others += bool(set(names) - {key})
    return found, others


def test_recorded_loads_are_hardly_ever_called_different_from_themselves(tmp_path: Path) -> None:
    assert count_flagged(RECORDED, tmp_path, SPLITS) <= FLAGGED_AT_MOST


def test_a_shift_in_recorded_loads_is_found_where_it_is(tmp_path: Path) -> None:
    found, others = count_found(RECORDED, tmp_path, SPLITS)
    assert found >= FOUND_AT_LEAST
    assert others <= FLAGGED_AT_MOST


@pytest.mark.nightly
def test_the_same_holds_for_invented_loads(tmp_path: Path) -> None:
    folder = invented(tmp_path / "invented")
    assert count_flagged(folder, tmp_path / "aa", 40) <= 2
    found, others = count_found(folder, tmp_path / "ab", 20)
    assert found >= 18
    assert others <= 1


def _of(one: Record, plt_ms: float) -> Record:
    assert isinstance(load_of(one), PageLoad)
    return replace(one, measured=replace(load_of(one), plt_ms=plt_ms, requests=()))


def _longer(one: Record, factor: float) -> Record:
    return _of(one, load_of(one).plt_ms * factor) if one.measured and factor != 1.0 else one


def _line(one: Record) -> str:
    return write_record(one).decode()


def _write(folder: Path, lines: Sequence[str], manifest: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(manifest)
    (folder / "records.jsonl").write_text("".join(lines))
    return folder
