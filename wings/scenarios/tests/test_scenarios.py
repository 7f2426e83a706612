"""Scenarios on the virtual kernel: each is kept or known to have changed, and its fault is seen."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from testbed.base.errors import EXIT_OK, EXIT_OUT_OF_TOLERANCE
from testbed.model import Record
from testbed.results.folder import read_records
from testbed.results.manifest import Stored, load_manifest
from tests.acceptance.house import House
from wings.scenarios.spec import Scenario
from wings.scenarios.tests import SCENARIOS
from wings.scenarios.tests.promised import result_of

pytestmark = [pytest.mark.guest, pytest.mark.slow]

FILES = tuple(sorted(SCENARIOS.glob("*.toml")))
KERNEL = ("--kernel-version", "7.3")
FEW = tuple(path.stem for path in FILES[::12])
PLACE = "\n# fault\n"
STARTS = ('steps = """\n', "steps = '''\n")


def perform(house: House, name: str, *words: str) -> tuple[int, str, dict[str, Record]]:
    """Perform scenarios; return the exit code, what was printed, and the records by scenario."""
    folder = house.folder / "results" / name
    code, said = house.command("scenario", *words, "-o", str(folder))
    return code, said, {r.trial.condition_as(Scenario).scenario: r for r in read_records(folder)}


def with_fault(text: str) -> str:
    """The file of a scenario with its fault in its place, or first, in all its forms."""
    fault = tomllib.loads(text)["fault"].strip()
    if PLACE in text:
        return text.replace(PLACE, f"\n{fault}\n")
    for start in STARTS:
        text = text.replace(start, f"{start}{fault}\n")
    return text


@pytest.fixture(scope="module")
def performed(house: House) -> tuple[int, str, dict[str, Record]]:
    return perform(house, "all", "all", *KERNEL)


@pytest.mark.thorough
def test_every_promise_has_its_answer(performed: tuple[int, str, dict[str, Record]]) -> None:
    code, said, found = performed
    assert code == EXIT_OK, said
    verdicts = {name: result_of(r).verdict for name, r in found.items() if r.measured}
    assert verdicts.keys() == {path.stem for path in FILES}
    for name, verdict in verdicts.items():
        changed = "changed" in tomllib.loads((SCENARIOS / f"{name}.toml").read_text())
        assert verdict == ("changed" if changed else "kept"), result_of(found[name])


@pytest.mark.thorough
@pytest.mark.nightly(but="^few$")
@pytest.mark.parametrize("names", [FEW, ("all",)], ids=["few", "all"])
def test_every_run_has_the_same_bits(
    house: House, performed: tuple[int, str, dict[str, Record]], names: tuple[str, ...]
) -> None:
    _, _, again = perform(house, f"again {names[0]}", *names, *KERNEL)
    assert len(again) == (len(FILES) if names == ("all",) else len(FEW))
    assert {name: r.artefacts for name, r in again.items()} == {
        name: performed[2][name].artefacts for name in again
    }


def test_what_the_store_has_is_not_performed_again(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRSTFLIGHT_STORE", str(tmp_path))
    for name in ("once", "twice"):
        assert perform(house, name, "refused", "cached-cookie")[0] == EXIT_OK
    once, twice = (house.folder / "results" / name for name in ("once", "twice"))
    assert (once / "records.jsonl").read_bytes() == (twice / "records.jsonl").read_bytes()
    assert load_manifest(once).stored is None
    assert load_manifest(twice).stored == Stored(trials=2, again=1)


@pytest.mark.thorough
def test_each_scenario_fails_with_its_fault(house: House, tmp_path: Path) -> None:
    for path in FILES:
        (tmp_path / path.name).write_text(with_fault(path.read_text()))
    files = [str(path) for path in sorted(tmp_path.glob("*.toml"))]
    code, said, found = perform(house, "faults", *files)
    assert code == EXIT_OUT_OF_TOLERANCE, said
    verdicts = {name: r.measured and result_of(r).verdict for name, r in found.items()}
    assert verdicts == dict.fromkeys(verdicts, "broken")
    assert len(verdicts) == len(files)


PLANTED = {
    "no early data at all": ("accepted", "server  listen", "server early off\nserver  listen"),
    "another first flight": ("accepted", "server-hello+ticket,sealed*2", "server-hello,sealed*4"),
    "taken, not refused": ("refused", "server  early off\n", ""),
    "nobody sends it again": ("replayed", "client2 send e copied\n", ""),
    "nothing is copied": ("replayed", "client > server data", "client > server [F] data"),
    "sent again too late": ("replayed", "wait 1s\n\n", "wait 20s\n\n"),
}
"""Faults of early data: a scenario, and what in it becomes what."""


def test_each_fault_of_early_data_is_seen(house: House, tmp_path: Path) -> None:
    files = []
    for fault, (name, old, new) in PLANTED.items():
        text = (SCENARIOS / f"early-data-{name}.toml").read_text()
        assert old in text
        files.append(tmp_path / f"{fault.replace(' ', '-').replace(',', '')}.toml")
        files[-1].write_text(text.replace(old, new))
    _, said, found = perform(house, "early", *map(str, files))
    verdicts = {name: r.measured and result_of(r).verdict for name, r in found.items()}
    assert verdicts == {file.stem: "broken" for file in files}, said
