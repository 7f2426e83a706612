"""Planted regressions: each is found and named by cell, and the same twice is the same to the bit.

The last test is this repository's guard: the nightly sweep against its committed baseline.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from analysis.verdicts.compare.comparison import CompareOptions, Comparison
from analysis.verdicts.compare.folders import compare_results
from analysis.verdicts.compare.sentences import render_text
from testbed.base import places
from testbed.base.errors import EXIT_OK, EXIT_OUT_OF_TOLERANCE
from tests.acceptance.house import House, Ran
from tests.copies import copy_code

pytestmark = pytest.mark.guest

PAGE = "wikipedia"
COMMITTED = places.ROOT / "pages"
BOTH = {False, True}
RTT_MS = 20
KNOBS = {"page": PAGE, "client": "graph", "rtt_ms": RTT_MS, "tfo": [False, True]}
REDIRECT = "r,,en.wikipedia.org,text/html,301,480,,root,,90,5\n"


@pytest.fixture(scope="module")
def base(house: House) -> Ran:
    shutil.copytree(COMMITTED / PAGE, house.pages / PAGE)
    ran = house.run(**KNOBS)
    assert ran.code == EXIT_OK, ran.said
    return ran


def compare(base: Ran, new: Ran, *across: str) -> Comparison:
    return compare_results(base.folder, new.folder, CompareOptions(across=across))


def different(found: Comparison) -> set[bool]:
    """With or without Fast Open: which cells are called different; text names each of them."""
    told = {bool(c.axes["tfo"]) for c in found.cells if c.verdict == "different"}
    rows = [line for line in render_text(found, 120).splitlines() if line.startswith(PAGE)]
    named = {" on " in row for row in rows if not row.endswith(("same", "within"))}
    assert named == told
    return told


def shifts_ms(found: Comparison) -> dict[bool, float]:
    return {cell.axes["tfo"]: cell.effect.ms for cell in found.cells if cell.effect}


def test_the_same_twice_is_the_same_to_the_bit(house: House, base: Ran) -> None:
    found = compare(base, house.run(**KNOBS))
    assert (found.verdict, found.exit_code) == ("same", EXIT_OK)
    pairs = [pair for cell in found.cells for pair in cell.trials]
    assert len(pairs) == 2
    assert all(pair.same and pair.same_capture for pair in pairs)


@pytest.mark.nightly(but="^initcwnd")
@pytest.mark.parametrize(
    ("knob", "value", "least_ms"),
    [
        # Each object beyond four segments costs a round trip or more.
        ("initcwnd_segments", 4, RTT_MS),
        ("requests_per_connection", 1, RTT_MS),
        ("down_kbit", 3960, 1.0),
        # The root and what it names wait one after the other.
        ("server_think_ms", 20, 2 * 20 - 1),
    ],
)
def test_a_planted_regression_is_found(
    house: House, base: Ran, knob: str, value: int, least_ms: float
) -> None:
    new = house.run(**KNOBS, **{knob: value})
    assert new.code == EXIT_OK, new.said
    found = compare(base, new, knob)
    assert different(found) == BOTH
    assert found.exit_code == EXIT_OUT_OF_TOLERANCE
    assert all(cell.direction == "slower" for cell in found.cells)
    assert all(shift >= least_ms for shift in shifts_ms(found).values())


def test_one_more_redirect_is_found(
    house: House, base: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "pages" / PAGE
    shutil.copytree(COMMITTED / PAGE, folder)
    table = folder / "resources.csv"
    header, _, rows = table.read_text().partition("\n")
    root = rows.replace("0,,", "0,r,", 1).replace(",root,,", ",redirect,0,", 1)
    table.write_text(f"{header}\n{REDIRECT}{root}")
    monkeypatch.setattr(places, "PAGES", folder.parent)
    new = house.run(**KNOBS)
    assert new.code == EXIT_OK, new.said
    found = compare(base, new, "pages")
    assert different(found) == BOTH
    # One round trip more, on a connection that is open already.
    assert all(RTT_MS < shift < 3 * RTT_MS for shift in shifts_ms(found).values())


def test_fast_open_silently_off_is_found(
    house: House, base: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server no longer listens for it: nothing fails, but the wire tells."""
    code = copy_code(tmp_path / "code", monkeypatch)
    blocks = code / "server" / "blocks.py"
    assert " fastopen=256" in blocks.read_text()
    blocks.write_text(blocks.read_text().replace(" fastopen=256", ""))
    new = house.run(**KNOBS)
    assert new.one(tfo=False).outcome == "ok"
    assert new.one(tfo=True).outcome == "unproven"
    found = compare(base, new, "code")
    assert different(found) == {True}
    assert found.exit_code == EXIT_OUT_OF_TOLERANCE


def test_this_repository_keeps_its_page_load_times(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it fails for a good reason: ``./run.sh baseline update`` (docs/nightly.md)."""
    monkeypatch.setattr(places, "PAGES", COMMITTED)
    folder = tmp_path / "nightly"
    code, said = house.command("run", str(places.CONFIGS / "nightly.toml"), "-o", str(folder))
    assert code == EXIT_OK, said
    baseline = places.ROOT / "analysis" / "baselines" / "nightly"
    found = compare_results(baseline, folder, CompareOptions(across=("all",)))
    assert found.verdict == "same", render_text(found, 120)
    assert not found.added
