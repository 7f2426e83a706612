"""Where the kernel source comes from, and what is said when it cannot be had."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base import debian, proc
from testbed.base.errors import MissingError
from testbed.kernel.build import source
from testbed.kernel.build.pin import Pin, read_pin
from testbed.kernel.build.toolchain import Toolchain

MADISON = """\
 linux-source-7.3 | 7.3.5-1~bpo13+1 | http://mirror.test/debian suite/main amd64 Packages
 linux-source-7.3 | 7.3.4-1~bpo13+1 | http://mirror.test/debian suite/main amd64 Packages
 linux-source-7.3 | 7.3.4-1~bpo13+1 | http://other.test/debian suite/main amd64 Packages
     linux | 7.3.4-1~bpo13+1 | http://mirror.test/debian suite/main Sources
"""

TOOLCHAIN = Toolchain(Path("/none"), "none")


@pytest.fixture
def pin() -> Pin:
    return read_pin("7.3")


def silent(message: str) -> None:
    assert message


def test_madison_lists_binary_versions_once() -> None:
    assert debian.parse_madison(MADISON) == ["7.3.5-1~bpo13+1", "7.3.4-1~bpo13+1"]


def test_exact_version_wins_over_newer_ones(pin: Pin, tmp_path: Path) -> None:
    for allow in (False, True):
        chosen = source.choose_version(pin, debian.parse_madison(MADISON), allow, tmp_path)
        assert chosen == pin.package_version


def test_another_revision_needs_permission(pin: Pin, tmp_path: Path) -> None:
    offered = ["7.3.5-1~bpo13+1", "7.3.4-2~bpo13+1"]
    with pytest.raises(MissingError) as caught:
        source.choose_version(pin, offered, False, tmp_path / "here")
    text = str(caught.value)
    assert f"linux-source-7.3 {pin.package_version} is no longer" in text
    assert "accept 7.3.4-2~bpo13+1" in text
    assert "--allow-kernel-revision" in text
    assert "--kernel-version 6.1" in text
    assert str(tmp_path / "here") in text
    assert source.choose_version(pin, offered, True, tmp_path) == "7.3.4-2~bpo13+1"


def test_another_upstream_is_never_taken(pin: Pin, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"offered: 7\.3\.5-1.*--kernel-version 6\.1") as caught:
        source.choose_version(pin, ["7.3.5-1~bpo13+1"], True, tmp_path)
    assert "--allow-kernel-revision" not in str(caught.value)
    with pytest.raises(MissingError, match="offered: nothing"):
        source.choose_version(pin, [], True, tmp_path)


def test_main_archive_is_picked_not_security() -> None:
    text = (
        "Debian|Debian-Security|http://mirror.test/debian-security/\n"
        "Other|Other|http://elsewhere.test/apt/\n"
        "Debian|Debian|http://mirror.test/debian/\n"
    )
    assert debian.parse_indextargets(text) == "http://mirror.test/debian"


def test_before_the_first_update_the_address_decides() -> None:
    text = "||http://mirror.test/debian-security/\n||http://mirror.test/debian/\n"
    assert debian.parse_indextargets(text) == "http://mirror.test/debian"


def test_a_machine_of_another_vendor_has_no_mirror_in_apt() -> None:
    assert debian.parse_indextargets("Ubuntu|Ubuntu|http://mirror.test/ubuntu/\n") is None
    assert debian.parse_indextargets("") is None


def test_debootstrap_names_its_default_mirror() -> None:
    script = "case $ARCH in\n\tamd64)\n\t\tdefault_mirror http://mirror.test/debian/\n\t;;\nesac\n"
    assert debian.parse_debootstrap(script) == "http://mirror.test/debian"
    assert debian.parse_debootstrap("mirror_style release\n") is None


def test_environment_overrides_the_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(debian.MIRROR_VARIABLE, "http://mine.test/debian/")
    assert debian.debian_mirror() == "http://mine.test/debian"


def test_no_mirror_names_the_remedies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(debian.MIRROR_VARIABLE, raising=False)
    monkeypatch.setattr(debian, "DEBOOTSTRAP", tmp_path)
    fake_program(tmp_path, "apt-get", "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(MissingError, match=r"debootstrap.*FIRSTFLIGHT_DEBIAN_MIRROR"):
        debian.debian_mirror()
    (tmp_path / "sid").write_text("default_mirror http://mirror.test/debian\n")
    assert debian.debian_mirror() == "http://mirror.test/debian"


def test_kept_tarball_is_used_without_any_program(pin: Pin, tmp_path: Path) -> None:
    content = b"a tarball"
    kept_pin = replace(pin, tarball_sha256=hashlib.sha256(content).hexdigest())
    place = source.kept_tarball(kept_pin, tmp_path)
    place.parent.mkdir(parents=True)
    place.write_bytes(content)
    found = source.fetch_source(kept_pin, tmp_path, TOOLCHAIN, silent)
    assert found == source.DebianSource(
        place, kept_pin.tarball_sha256, pin.package, pin.package_version, TOOLCHAIN
    )


def test_missing_keyring_names_its_package(
    pin: Pin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(debian.MIRROR_VARIABLE, "http://mirror.test/debian")
    monkeypatch.setattr(debian, "KEYRING", tmp_path / "none.gpg")
    with pytest.raises(MissingError, match="install the package debian-archive-keyring"):
        source.fetch_source(pin, tmp_path, TOOLCHAIN, silent)
    assert not list((tmp_path / "kernels" / "sources").rglob(".fetch-*"))


def test_download_is_private_verified_and_kept(
    pin: Pin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = make_package(tmp_path, pin.tarball, b"the source")
    programs = tmp_path / "bin"
    programs.mkdir()
    fake_program(
        programs,
        "apt-get",
        f'echo "$@" >> {tmp_path}/calls\ncase "$*" in *" download "*) cp {package} . ;; esac',
    )
    fake_program(
        programs, "apt-cache", f"echo ' {pin.package} | {pin.package_version} | x y Packages'"
    )
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setenv(debian.MIRROR_VARIABLE, "http://mirror.test/debian")
    monkeypatch.setattr(debian, "KEYRING", package)  # any file will do for a fake apt
    cache = tmp_path / "cache"

    with pytest.raises(MissingError, match=r"is pinned to .*; it is not used"):
        source.fetch_source(pin, cache, TOOLCHAIN, silent)

    good = replace(pin, tarball_sha256=hashlib.sha256(b"the source").hexdigest())
    found = source.fetch_source(good, cache, TOOLCHAIN, silent)
    assert found.tarball == source.kept_tarball(good, cache)
    assert found.tarball.read_bytes() == b"the source"
    calls = (tmp_path / "calls").read_text()
    assert f"download {pin.package}={pin.package_version}" in calls
    for private in ("Dir::Etc::SourceList=", "Dir::State=", "Dir::Cache="):
        assert f"{private}{cache}" in calls


def fake_program(folder: Path, name: str, script: str) -> None:
    """Write an executable shell script ``name`` into ``folder``."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def make_package(folder: Path, tarball: str, content: bytes) -> Path:
    """Build a Debian package that holds ``/usr/src/<tarball>``."""
    tree = folder / "package"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "usr" / "src").mkdir(parents=True)
    (tree / "usr" / "src" / tarball).write_bytes(content)
    (tree / "DEBIAN" / "control").write_text(
        "Package: p\nVersion: 1\nArchitecture: all\nMaintainer: m <m@m.test>\nDescription: d\n"
    )
    package = folder / "p.deb"
    proc.run(["dpkg-deb", "--build", str(tree), str(package)])
    return package
