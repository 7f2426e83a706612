"""Roots on the command line: assembled as locked or with the newest, and locks written anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from firstflight.cli import root as verbs
from firstflight.cli.main import main
from testbed.base.debian import LOCKED_VARIABLE, MIRROR_VARIABLE, only_locked
from testbed.base.errors import EXIT_MISSING, EXIT_OK
from testbed.root import download, release
from testbed.root.lock import Lock, format_lock, read_lock
from testbed.root.spec import Component, RootSpec
from tests.hallway import make_services
from tests.root.debs import Mirror, locked, pack, publish, serving

OLD = locked("one", pack({"usr/one": "old"}))
DATA = pack({"usr/one": "new"})
NEW = locked("one", DATA, version="2.0")


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RootSpec:
    """A root of one package, which is the only one that verbs know."""
    spec = RootSpec(
        tmp_path / "small", "A root", True, {"debian": ("stable",)}, {"one": "why"}, {}, {}
    )
    spec.folder.mkdir()
    spec.lock_file.write_text(format_lock(Lock("20261124T120000Z", (OLD,))))
    monkeypatch.setattr(verbs, "read_spec", lambda name: spec)
    monkeypatch.setattr(verbs, "programs_of", lambda clients: ())
    monkeypatch.setattr(download, "_PAUSE_S", 0.01)
    monkeypatch.delenv(LOCKED_VARIABLE, raising=False)
    monkeypatch.delenv(download.SNAPSHOT_VARIABLE, raising=False)
    return spec


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """A mirror that has moved on."""
    monkeypatch.setattr(release, "verify_release", lambda signed, address: signed.decode())
    with serving(publish({"stable": [(NEW, DATA, "")]})) as mirror:
        monkeypatch.setenv(MIRROR_VARIABLE, f"{mirror.address}/debian")
        yield mirror


@pytest.mark.usefixtures("spec", "mirror")
def test_what_is_gone_is_named_and_locked_makes_it_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    services = make_services(tmp_path)
    assert main(["root", "assemble", "small", "--locked"], services) == EXIT_MISSING
    told = capsys.readouterr().err
    assert "only as locked: one 1.0: the mirror: 404" in told
    assert "asked: the mirror (" in told
    assert not only_locked()
    assert main(["root", "assemble", "small"], services) == EXIT_OK
    said = capsys.readouterr()
    assert "1 of 1 packages are newer than the lock: one 1.0 -> 2.0" in said.err
    assert (Path(said.out.split()[0]) / "one").read_text() == "new"


@pytest.mark.usefixtures("mirror")
def test_an_update_writes_what_the_root_comes_to(
    tmp_path: Path, spec: RootSpec, capsys: pytest.CaptureFixture[str]
) -> None:
    services = make_services(tmp_path)
    before = spec.lock_file.read_text()
    assert main(["root", "update", "small", "--dry-run"], services) == EXIT_OK
    assert capsys.readouterr().out == "one: 1.0 -> 2.0\n"
    assert spec.lock_file.read_text() == before
    assert main(["root", "update", "small"], services) == EXIT_OK
    changed, written = capsys.readouterr().out.splitlines()
    lock = read_lock(spec.lock_file)
    assert changed == "one: 1.0 -> 2.0"
    assert lock.packages == (NEW,)
    assert f"with the digest {lock.digest}" in written
    assert "make results" in written
    assert main(["root", "assemble", "small"], services) == EXIT_OK
    assert capsys.readouterr().out.splitlines()[1] == lock.digest
    assert main(["root", "update", "small"], services) == EXIT_OK
    assert capsys.readouterr().out == "small: nothing newer is offered\n"
    assert read_lock(spec.lock_file) == lock


def test_an_update_resolves_components_by_suites_of_their_own(
    tmp_path: Path, spec: RootSpec, mirror: Mirror, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    data = pack({"usr/one": "newest"})
    newest = locked("one", data, version="3.0")
    mirror.files |= publish({"unstable": [(newest, data, "")]})
    part = Component({"debian": ("unstable",)}, {"one": "why"}, {})
    monkeypatch.setattr(verbs, "read_spec", lambda name: replace(spec, components={"new": part}))
    services = make_services(tmp_path)
    assert main(["root", "update", "small"], services) == EXIT_OK
    assert capsys.readouterr().out.startswith("new/one: absent -> 3.0\none: 1.0 -> 2.0\n")
    lock = read_lock(spec.lock_file)
    assert lock.all_packages == {"one": NEW, "new/one": newest}
    assert main(["root", "assemble", "small", "--locked"], services) == EXIT_OK
    usr, digest = capsys.readouterr().out.split()
    assert digest == lock.digest
    assert Path(usr, "one").read_text() == "new"
    assert Path(usr, "lib/firstflight/new/usr/one").read_text() == "newest"
    assert main(["root", "update", "small"], services) == EXIT_OK
    assert capsys.readouterr().out == "small: nothing newer is offered\n"
    assert read_lock(spec.lock_file) == lock


def test_an_update_that_cannot_be_assembled_leaves_the_lock(
    tmp_path: Path, spec: RootSpec, mirror: Mirror
) -> None:
    before = spec.lock_file.read_text()
    mirror.files[f"/debian/{NEW.path}"] = b"wrong"
    assert main(["root", "update", "small"], make_services(tmp_path)) == EXIT_MISSING
    assert spec.lock_file.read_text() == before


@pytest.mark.parametrize("verb", [["plan"], ["run", "--dry-run"]])
def test_verbs_of_experiments_take_the_option(
    tmp_path: Path, verb: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*verb, "--locked", "--json"], make_services(tmp_path)) == EXIT_OK
    assert json.loads(capsys.readouterr().out)
    assert not only_locked()
