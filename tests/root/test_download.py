"""Packages come from the first source that has them, and only as the lock says they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base.debian import MIRROR_VARIABLE
from testbed.base.errors import MissingError
from testbed.root import download as module
from testbed.root.download import SNAPSHOT_VARIABLE, download, list_sources, package_file
from testbed.root.lock import Lock, LockedPackage
from tests.root.debs import Mirror, locked, serving

DATA = {"one": b"1" * 300_000, "two": b"22" * 1000}
ONE, TWO = locked("one", DATA["one"]), locked("two", DATA["two"], "debian-security")
LOCK = Lock("20261124T120000Z", (ONE, TWO))


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSE_S", 0.01)
    monkeypatch.setattr(module, "_STALL_S", 1.0)
    monkeypatch.delenv(SNAPSHOT_VARIABLE, raising=False)


def fill(mirror: Mirror) -> None:
    mirror.add((ONE, DATA["one"]))
    mirror.add((TWO, DATA["two"]), below="debian-security")


def fetch(folder: Path) -> None:
    said: list[str] = []
    download(LOCK.packages, folder, list_sources(LOCK.taken), said.append)


def there(folder: Path) -> dict[str, bytes]:
    files = {package.name: package_file(folder, package) for package in LOCK.packages}
    return {name: file.read_bytes() for name, file in files.items() if file.exists()}


def test_each_comes_from_its_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as mirror:
        fill(mirror)
        monkeypatch.setenv(MIRROR_VARIABLE, f"{mirror.address}/debian/")
        fetch(tmp_path)
        fetch(tmp_path)
    assert there(tmp_path) == DATA
    assert len(mirror.asked) == 2
    assert len(list(tmp_path.iterdir())) == 2


def test_what_is_cut_off_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as mirror:
        fill(mirror)
        mirror.cut[f"/debian/{ONE.path}"] = [100_000, 200_000]
        monkeypatch.setenv(MIRROR_VARIABLE, f"{mirror.address}/debian")
        fetch(tmp_path)
    ranges = [asked for path, asked in mirror.asked if path.endswith(ONE.path)]
    assert ranges == [None, "bytes=100000-", "bytes=200000-"]
    assert there(tmp_path) == DATA


def test_a_redirection_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as mirror, serving() as other:
        fill(mirror)
        other.files[f"/there/{ONE.path}"] = DATA["one"]
        mirror.redirected[f"/debian/{ONE.path}"] = f"{other.address}/there/{ONE.path}"
        monkeypatch.setenv(MIRROR_VARIABLE, f"{mirror.address}/debian")
        fetch(tmp_path)
    assert there(tmp_path) == DATA
    assert len(other.asked) == 1


def test_what_has_left_the_mirror_is_in_the_archive_of_old_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as mirror, serving() as snapshots:
        mirror.add((TWO, DATA["two"]), below="debian-security")
        for taken in (LOCK.taken, "20250101T000000Z"):
            snapshots.add(
                (ONE, DATA["one"] if taken == LOCK.taken else b"old"),
                below=f"archive/debian/{taken}",
            )
        monkeypatch.setenv(MIRROR_VARIABLE, f"{mirror.address}/debian")
        monkeypatch.setenv(SNAPSHOT_VARIABLE, snapshots.address)
        fetch(tmp_path)
    assert there(tmp_path) == DATA
    assert len(snapshots.asked) == 1


def test_all_that_cannot_be_had_is_said_with_each_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as mirror:
        wrong = DATA["two"].replace(b"2", b"3")
        mirror.add((TWO, wrong), below="debian-security")
        monkeypatch.setenv(MIRROR_VARIABLE, f"{mirror.address}/debian")
        monkeypatch.setenv(SNAPSHOT_VARIABLE, f"{mirror.address}/nothing")
        with pytest.raises(MissingError) as raised:
            fetch(tmp_path)
    one, two, asked = str(raised.value).splitlines()
    assert asked.startswith(f"asked: the mirror ({mirror.address}/debian, {mirror.address}/debian-")
    assert one.startswith("one 1.0: the mirror: 404")
    assert "the archive of old versions: 404" in one
    assert two.startswith("two 1.0: the mirror: what came has SHA-256")
    assert TWO.sha256 in two
    assert there(tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/debian", "nonsense/debian"])
def test_a_mirror_that_does_not_answer_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv(MIRROR_VARIABLE, address)
    with pytest.raises(MissingError, match=r"one 1\.0: the mirror: "):
        fetch(tmp_path)


def test_without_a_source_the_remedy_is_said(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=f"set {MIRROR_VARIABLE}"):
        download(LOCK.packages, tmp_path, (), lambda said: None)


def test_an_archive_that_a_source_does_not_have_is_not_asked_for() -> None:
    source = module.PackageServer("one", {"debian": "http://there"})
    assert source.address_of(ONE) == f"http://there/{ONE.path}"
    assert source.address_of(TWO) is None
    assert isinstance(TWO, LockedPackage)


def test_what_came_before_an_interrupt_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PIECE_BYTES", 1000)
    pace = module._Pace(ONE.size)
    monkeypatch.setattr(module._Pace, "add", lambda _, count: pace.stopped.set())
    with serving() as mirror:
        fill(mirror)
        address = f"{mirror.address}/debian/{ONE.path}"
        assert "cut off" in str(module._fetch_from(address, ONE, tmp_path, pace))
        (partial,) = tmp_path.iterdir()
        assert 0 < partial.stat().st_size < ONE.size
        pace.stopped.clear()
        monkeypatch.setattr(module._Pace, "add", lambda _, count: None)
        assert module._fetch_from(address, ONE, tmp_path, pace) is None
    assert [asked is None for _, asked in mirror.asked] == [True, False]
    assert there(tmp_path) == {"one": DATA["one"]}
