"""A store of results in a bucket, and one on another machine."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess  # noqa: TID251 - only the type of what proc returns

import pytest

from tests.many.running import QUICK, assert_same, start
from tests.many.stores import StorePlace

pytestmark = [
    pytest.mark.guest,
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.usefixtures("many"),
]


@pytest.fixture(params=["bucket", "host"])
def place(request: pytest.FixtureRequest) -> StorePlace:
    found: StorePlace = request.getfixturevalue(request.param)
    return found


def ask(place: StorePlace, *words: str) -> CompletedProcess[str]:
    named = {"FIRSTFLIGHT_STORE": place.address} | dict(place.environment)
    return start(*words, environment=named)


def run(place: StorePlace, folder: Path, *words: str) -> str:
    done = ask(place, "run", QUICK, "-n", "2", *words, "-o", str(folder))
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.nightly
def test_what_one_machine_measured_no_other_measures(place: StorePlace, tmp_path: Path) -> None:
    first = run(place, tmp_path / "first")
    assert "from the store" not in first
    entries = place.list_entries()
    assert len(entries) == 4
    assert f"4 of 4 trials from the store {place.address}" in run(place, tmp_path / "second")
    assert_same(tmp_path / "second", tmp_path / "first")

    # Somebody else's bytes under the name of ours.
    place.write(entries[0], place.read(entries[1]))
    damaged = ask(place, "store", "verify")
    assert (damaged.returncode, damaged.stdout) == (1, "4 entries read, 1 damaged\n")
    said = run(place, tmp_path / "third", "--verify", "0")
    assert "left out: " in said
    assert "3 of 4 trials from the store" in said
    assert_same(tmp_path / "third", tmp_path / "first")
    assert ask(place, "store", "verify").stdout == "4 entries read, 0 damaged\n"

    listed = ask(place, "store", "list")
    assert (listed.returncode, "4 trials" in listed.stdout) == (0, True), listed.stderr
    assert place.address in listed.stdout
    pruned = ask(place, "store", "prune", "--most", "1")
    assert pruned.stdout.startswith("4 of 4 entries removed"), pruned.stderr
    assert place.list_entries() == []


@pytest.mark.nightly
def test_two_at_once_write_what_one_writes(place: StorePlace, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        for ran in [pool.submit(run, place, tmp_path / name, "--jobs", "1") for name in "ab"]:
            ran.result()
    assert_same(tmp_path / "a", tmp_path / "b")
    assert len(place.list_entries()) == 4
    assert ask(place, "store", "verify").stdout == "4 entries read, 0 damaged\n"
