"""Packages come from the first source that has them, and only as the lock says they are."""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.base.debian import MIRROR_VARIABLE
from testbed.base.errors import MissingError
from testbed.root import download as module
from testbed.root.download import SNAPSHOT_VARIABLE, GoneError, download, list_sources, package_file
from testbed.root.lock import Lock, LockedPackage
from tests.root.debs import Mirror, locked, serving, write_certificate

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
            data = DATA["one"] if taken == LOCK.taken else b"old"
            snapshots.add((ONE, data), below=f"archive/debian/{taken}")
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


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """A mirror that has both packages, and that this machine knows."""
    with serving() as mirror:
        fill(mirror)
        monkeypatch.setenv(MIRROR_VARIABLE, f"{mirror.address}/debian")
        yield mirror


AT_ONE, AT_TWO = f"/debian/{ONE.path}", f"/debian-security/{TWO.path}"


def ranges(mirror: Mirror, path: str) -> list[str | None]:
    return [wanted for asked, wanted in mirror.asked if asked == path]


def test_an_error_of_a_server_is_tried_again_and_loses_nothing(
    tmp_path: Path, mirror: Mirror
) -> None:
    package_file(tmp_path, ONE).with_suffix(".part").write_bytes(DATA["one"][:1000])
    mirror.refused[AT_ONE] = [500, 503]
    fetch(tmp_path)
    assert there(tmp_path) == DATA
    assert ranges(mirror, AT_ONE) == ["bytes=1000-"] * 3


def test_a_server_that_stays_broken_does_not_make_a_version_gone(
    tmp_path: Path, mirror: Mirror
) -> None:
    mirror.refused[AT_ONE] = [500] * 9
    said = r"^one 1\.0: the mirror: 500 .*\nasked: .*kept: try"
    with pytest.raises(MissingError, match=said) as caught:
        fetch(tmp_path)
    assert not isinstance(caught.value, GoneError)
    assert there(tmp_path) == {"two": DATA["two"]}


def test_a_file_that_nobody_has_makes_a_version_gone(tmp_path: Path, mirror: Mirror) -> None:
    del mirror.files[AT_ONE]
    with pytest.raises(GoneError) as caught:
        fetch(tmp_path)
    assert caught.value.packages == (ONE,)
    assert there(tmp_path) == {"two": DATA["two"]}
    assert ranges(mirror, AT_ONE) == [None]  # it has answered


@pytest.mark.parametrize(
    ("wrong", "words"),
    [(DATA["one"].replace(b"1", b"2"), "what came has SHA-256 .* it is not used"),
     (DATA["one"] + b"more", "more came than the 300000 bytes of it: they are not used"),
     (DATA["one"] * 100, "more came than the 300000 bytes of it")],
)  # fmt: skip
def test_a_wrong_file_is_named_not_used_and_not_kept(
    tmp_path: Path, mirror: Mirror, wrong: bytes, words: str
) -> None:
    mirror.files[AT_ONE] = wrong
    with pytest.raises(GoneError, match=rf"^one 1\.0: the mirror: {words}"):
        fetch(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [package_file(tmp_path, TWO).name]
    assert len(ranges(mirror, AT_ONE)) == 1


def test_a_wrong_beginning_is_dropped_and_all_of_it_asked_for(
    tmp_path: Path, mirror: Mirror
) -> None:
    package_file(tmp_path, ONE).with_suffix(".part").write_bytes(b"wrong")
    package_file(tmp_path, TWO).with_suffix(".part").write_bytes(b"3" * 9000)
    fetch(tmp_path)
    assert there(tmp_path) == DATA
    assert ranges(mirror, AT_ONE) == ["bytes=5-", None]


def test_a_mirror_that_stalls_is_given_up_and_what_came_is_kept(
    tmp_path: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_STALL_S", 0.2)
    mirror.stalled[AT_ONE] = 100_000
    with pytest.raises(MissingError, match=r"one 1\.0: the mirror: timed out\nasked: the mirror"):
        fetch(tmp_path)
    mirror.stalled.clear()
    fetch(tmp_path)
    assert there(tmp_path) == DATA
    assert ranges(mirror, AT_ONE)[-1] == "bytes=100000-"


def test_a_mirror_that_never_answers_is_not_waited_for_again(
    tmp_path: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_STALL_S", 0.2)
    monkeypatch.setattr(module, "_AT_ONCE", 1)
    mirror.stalled = {AT_ONE: 0, AT_TWO: 0}
    with pytest.raises(MissingError, match=r"one 1\.0: .*timed out\ntwo 1\.0: .*timed out"):
        fetch(tmp_path)
    assert {path for path, _ in mirror.asked} == {AT_ONE}  # the larger is the first


def test_what_an_archive_that_is_down_may_have_is_not_gone(
    tmp_path: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    del mirror.files[AT_ONE]
    monkeypatch.setenv(SNAPSHOT_VARIABLE, "http://127.0.0.1:1")
    said = r"one 1\.0: the mirror: 404 .*; the archive of"
    with pytest.raises(MissingError, match=said) as caught:
        fetch(tmp_path)
    assert not isinstance(caught.value, GoneError)


def test_packages_of_a_mirror_that_is_down_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MIRROR_VARIABLE, "http://127.0.0.1:1/debian")
    packages = [locked(f"p{number}", b"1") for number in range(9)]
    with pytest.raises(MissingError, match=r"^p0 1\.0 and 8 others: the mirror: .*\nasked: .*kept"):
        download(packages, tmp_path, list_sources(), lambda said: None)


def test_one_that_is_cut_off_at_each_piece_comes_all_the_same(
    tmp_path: Path, mirror: Mirror
) -> None:
    mirror.cut[AT_ONE] = list(range(30_000, 300_000, 30_000))
    fetch(tmp_path)
    assert there(tmp_path) == DATA
    assert len(ranges(mirror, AT_ONE)) == 10


def trust(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust the authorities in this file alone, as a program that starts now would."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates))
    monkeypatch.setattr(urllib.request, "_opener", None)  # it keeps those of its first request


def test_tls_may_lead_to_another_host(
    tmp_path: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = write_certificate(tmp_path)
    trust(made, monkeypatch)
    with serving(certificate=made) as tls:
        tls.redirected = {path: f"{mirror.address}{path}" for path in (AT_ONE, AT_TWO)}
        monkeypatch.setenv(MIRROR_VARIABLE, f"{tls.address}/debian")
        fetch(tmp_path / "there")
        assert there(tmp_path / "there") == DATA
        trust(Path("/nowhere"), monkeypatch)
        with pytest.raises(MissingError, match="CERTIFICATE_VERIFY_FAILED"):
            fetch(tmp_path / "unknown")


def test_an_archive_of_two_states_leads_to_the_nearest_before(
    tmp_path: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    del mirror.files[AT_ONE]
    older, newer = "20261101T000000Z", "20261201T000000Z"
    with serving() as archive:
        archive.add((ONE, DATA["one"]), below=f"archive/debian/{older}")
        archive.add((ONE, b"another"), below=f"archive/debian/{newer}")
        archive.redirected = {
            f"/archive/debian/{LOCK.taken}/{ONE.path}":
                f"{archive.address}/archive/debian/{older}/{ONE.path}"
        }  # fmt: skip
        monkeypatch.setenv(SNAPSHOT_VARIABLE, f"{archive.address}/")
        fetch(tmp_path)
    assert there(tmp_path) == DATA
    assert [path.split("/")[3] for path, _ in archive.asked] == [LOCK.taken, older]


def test_an_interrupt_ends_at_once_what_stalls(
    tmp_path: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_STALL_S", 60.0)
    monkeypatch.setattr(module, "_TELL_S", 0.1)
    mirror.stalled[AT_ONE] = 100_000

    partial = package_file(tmp_path, ONE).with_suffix(".part")

    def interrupt(said: str) -> None:
        assert said
        if partial.exists() and partial.stat().st_size == 100_000:
            raise KeyboardInterrupt

    began_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        download((ONE,), tmp_path, list_sources(), interrupt)
    assert time.monotonic() - began_s < 30
    mirror.stalled.clear()
    fetch(tmp_path)
    assert there(tmp_path) == DATA


def test_rate_and_time_left_are_told() -> None:
    pace = module._Pace(4 << 20, started_s=time.monotonic() - 1)
    assert "left" not in pace.describe()
    pace.add(1 << 20)
    assert re.fullmatch(r"packages: 1\.0 MiB of 4\.0 MiB, .*/s, 3.0 s left", pace.describe())
