"""A component of a root: packages of other suites, beside the root's and never mixed with them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base.debian import LOCKED_VARIABLE, MIRROR_VARIABLE, locked_only
from testbed.base.errors import ConfigurationError, MissingError
from testbed.client.program import Program
from testbed.root import download, release
from testbed.root.cache import FORMAT, Root, ensure_root, find_root, root_key, root_place
from testbed.root.download import package_file
from testbed.root.lock import Lock, LockedPackage, format_lock, read_lock
from testbed.root.spec import Component, RootSpec, read_spec
from testbed.setup import parts
from testbed.setup.parts import CachePart
from testbed.setup.programs import find, package_names
from testbed.setup.root_import import import_pack
from testbed.setup.root_pack import write_pack
from tests.root.debs import Mirror, locked, pack, publish, serving

TAKEN, THEN = "20261124T120000Z", "20260101T120000Z"
OWN = pack({"usr/bin/server": b"old", "usr/share/text": "old"})
OTHER = pack(
    {"usr/bin/server": b"new", "usr/bin/also": Path("/usr/bin/server"),
     "lib64/ld.so": Path("/lib/ld.so"), "lib/ld.so": b"its own loader",
     "usr/share/doc/server": "for people", "usr/share/zone": Path("/etc/zone")}
)  # fmt: skip
NEWER = pack({"usr/bin/server": b"newest"})
PLACE = "lib/firstflight/quic/usr"
LOCK = Lock(
    TAKEN, (locked("server", OWN),),
    components={"quic": Lock(THEN, (locked("server", OTHER, version="2.0"),))},
)  # fmt: skip
LATEST = locked("server", NEWER, version="3.0")
TEXT = """\
title = "A root"
clients = true
packages = {server = "serves"}
without = {}
[suites]
debian = ["stable"]
[left_out]
"for people" = ["usr/share/doc/**"]
[component.quic]
suites = {debian = ["unstable"]}
packages = {server = "serves by QUIC"}
without = {perl = "for maintainer scripts"}
"""


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RootSpec:
    """A root with a component, whose packages are in the cache."""
    monkeypatch.setattr(download, "_PAUSE_S", 0.01)
    monkeypatch.setattr(release, "verify_release", lambda data, address: data.decode())
    monkeypatch.delenv(download.SNAPSHOT_VARIABLE, raising=False)
    monkeypatch.delenv(LOCKED_VARIABLE, raising=False)
    monkeypatch.setenv(MIRROR_VARIABLE, "http://127.0.0.1:1/debian")
    folder = tmp_path / "roots" / "small"
    folder.mkdir(parents=True)
    (folder / "root.toml").write_text(TEXT)
    (folder / "lock.toml").write_text(format_lock(LOCK))
    keep(tmp_path, LOCK.packages[0], OWN)
    keep(tmp_path, LOCK.components["quic"].packages[0], OTHER)
    return read_spec("small", tmp_path / "roots")


def keep(folder: Path, package: LockedPackage, data: bytes) -> None:
    packages = folder / "cache" / "roots" / "packages"
    packages.mkdir(parents=True, exist_ok=True)
    package_file(packages, package).write_bytes(data)


def forget(folder: Path, package: LockedPackage) -> None:
    package_file(folder / "cache" / "roots" / "packages", package).unlink()


@pytest.fixture
def moved_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """A mirror whose suite of the component, and none other, has another version."""
    offers = {"unstable": [(LATEST, NEWER, "")], "stable": []}
    with serving(publish(offers)) as mirror:
        monkeypatch.setenv(MIRROR_VARIABLE, f"{mirror.address}/debian")
        yield mirror


def assemble(spec: RootSpec) -> Root:
    return ensure_root(spec, spec.folder.parent.parent / "cache", lambda said: None)


def files(usr: Path) -> dict[str, str]:
    return {
        path.relative_to(usr).as_posix(): str(path.readlink())
        if path.is_symlink()
        else path.read_text()
        for path in usr.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def test_it_is_in_a_folder_of_its_own(spec: RootSpec) -> None:
    root = assemble(spec)
    assert files(root.usr) == {
        "bin/server": "old", "share/text": "old", f"{PLACE}/bin/server": "new",
        f"{PLACE}/bin/also": "server", f"{PLACE}/lib64/ld.so": "../lib/ld.so",
        f"{PLACE}/lib/ld.so": "its own loader", f"{PLACE}/share/zone": "/etc/zone",
    }  # fmt: skip
    assert [path.name for path in root.usr.parent.iterdir() if path.is_dir()] == ["usr"]
    assert find_root(spec, spec.folder.parent.parent / "cache") == root
    program = Program("server", packages="", places=(Path("/usr", PLACE, "bin/server"),))
    assert package_names(program) == ()
    assert find(program, root.usr) == root.usr / PLACE / "bin" / "server"


def test_its_files_count_for_the_digest_and_its_packages_for_the_key(spec: RootSpec) -> None:
    with_it, key = assemble(spec), root_key(spec)
    spec.lock_file.write_text(format_lock(replace(LOCK, digest=with_it.digest)))
    assert assemble(spec) == with_it
    spec.lock_file.write_text(format_lock(replace(LOCK, components={})))
    without = replace(spec, components={})
    assert assemble(without).digest != with_it.digest
    assert root_key(without) != key


def test_a_root_without_one_has_the_key_that_it_had(spec: RootSpec) -> None:
    spec.lock_file.write_text(format_lock(replace(LOCK, components={})))
    (package,) = LOCK.packages
    made_of = json.dumps([FORMAT, [[package.name, package.sha256]], ["usr/share/doc/**"]])
    expected = hashlib.sha256(made_of.encode()).hexdigest()[:16]
    assert root_key(replace(spec, components={})) == expected


def test_the_newest_of_its_own_suites_takes_the_place_of_what_is_gone(
    spec: RootSpec, tmp_path: Path, moved_on: Mirror
) -> None:
    forget(tmp_path, LOCK.components["quic"].packages[0])
    with locked_only(), pytest.raises(MissingError, match=r"only as locked: server 2\.0: "):
        assemble(spec)
    root = assemble(spec)
    assert root.newer == (
        "1 of 2 packages are newer than the lock: quic/server 2.0 -> 3.0"
    )  # fmt: skip
    assert files(root.usr) == {
        "bin/server": "old", "share/text": "old", f"{PLACE}/bin/server": "newest"
    }  # fmt: skip
    assert not any("stable/" in path for path, _ in moved_on.asked if "unstable" not in path)


def test_it_goes_along_in_a_pack(
    spec: RootSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, other = assemble(spec), tmp_path / "other"
    monkeypatch.setattr(parts, "read_spec", lambda name: spec)
    place = root_place(spec, tmp_path / "cache")
    part = CachePart("root", "small", f"roots/assembled/{place.name}")
    write_pack(tmp_path / "pack.tar", {part: place}, lambda said: None)
    other.mkdir()
    import_pack(tmp_path / "pack.tar", other, lambda said: None)
    imported = find_root(spec, other)
    assert imported is not None
    assert imported.digest == root.digest
    assert files(imported.usr) == files(root.usr)


def test_all_that_is_gone_is_said_at_once(
    spec: RootSpec, tmp_path: Path, moved_on: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(download.SNAPSHOT_VARIABLE, f"{moved_on.address}/old")
    for package in LOCK.all_packages.values():
        forget(tmp_path, package)
    with locked_only(), pytest.raises(MissingError) as caught:
        assemble(spec)
    said = str(caught.value)
    assert "server 1.0: " in said
    assert "server 2.0: " in said
    assert {path.split("/")[4] for path, _ in moved_on.asked if "/old/" in path} == {TAKEN, THEN}


def test_a_lock_without_it_is_refused(spec: RootSpec) -> None:
    spec.lock_file.write_text(format_lock(replace(LOCK, components={})))
    with pytest.raises(ConfigurationError, match=r"not those of root.toml; ./run.sh root update"):
        assemble(spec)


def test_its_lock_is_read_as_it_was_written(spec: RootSpec) -> None:
    whole = replace(LOCK, digest="0" * 64)
    spec.lock_file.write_text(format_lock(whole))
    assert read_lock(spec.lock_file) == whole
    assert whole.size == len(OWN) + len(OTHER)
    assert list(whole.all_packages) == ["server", "quic/server"]
    assert spec.components == {
        "quic": Component({"debian": ("unstable",)}, {"server": "serves by QUIC"},
                          {"perl": "for maintainer scripts"})
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [("component.quic", "component.Qu_ic", "component.Qu_ic: a name has small letters"),
     (THEN, "then", "component.quic: taken is 'then'"),
     (f'taken = "{THEN}"', f'taken = "{THEN}"\ndigest = "1"', "component.quic: unknown: digest"),
     ("[component.quic]", "[[component]]", "component must be tables")],
)  # fmt: skip
def test_what_is_wrong_with_its_lock_is_said(
    spec: RootSpec, old: str, new: str, words: str
) -> None:
    spec.lock_file.write_text(format_lock(LOCK).replace(old, new))
    with pytest.raises(ConfigurationError, match=words):
        read_lock(spec.lock_file)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [("clients = true", "clients = false", "only a root that guests run"),
     ('{debian = ["unstable"]}', '{ours = ["x"]}', "component.quic: suites.ours: the archives"),
     ("[component.quic]", "[component.quic]\ntitle = 'x'", "component.quic: unknown: title"),
     ("[component.quic]", "[component]\nquic = 3\n[left_out.x]", "quic: it must be a table")],
)  # fmt: skip
def test_what_is_wrong_with_its_wish_is_said(
    spec: RootSpec, old: str, new: str, words: str
) -> None:
    (spec.folder / "root.toml").write_text(TEXT.replace(old, new))
    with pytest.raises(ConfigurationError, match=words):
        read_spec("small", spec.folder.parent)
