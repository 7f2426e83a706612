"""A mirror is found in what apt and debootstrap have on this machine, without either."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base import debian
from testbed.base.debian import MIRROR_VARIABLE, debian_archives

DEBIAN = {
    "debian": "http://mirror.test/debian",
    "debian-security": "http://mirror.test/debian-security",
}


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of apt's, on a machine without debootstrap."""
    monkeypatch.delenv(MIRROR_VARIABLE, raising=False)
    monkeypatch.setattr(debian, "APT", tmp_path)
    monkeypatch.setattr(debian, "DEBOOTSTRAP", tmp_path / "debootstrap")
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "debootstrap").mkdir()
    return tmp_path


def test_lines_of_apt_are_read(apt: Path) -> None:
    (apt / "sources.list").write_text(
        "# deb http://old.test/debian trixie main\n"
        "deb-src http://source.test/debian trixie main\n"
        "deb [arch=amd64 signed-by=/a/key] http://mirror.test/debian/ trixie main # ours\n"
        "deb http://second.test/debian trixie main\n"
    )
    assert debian_archives() == DEBIAN


def test_paragraphs_of_apt_are_read(apt: Path) -> None:
    (apt / "sources.list.d" / "debian.sources").write_text(
        "Types: deb\nURIs: http://off.test/debian\nSuites: trixie\nComponents: main\n"
        "Enabled: no\n\n"
        "Types: deb deb-src\n# http://note.test/debian\nURIs: http://mirror.test/debian/\n"
        "Suites: trixie trixie-updates\nComponents: main\n contrib\nSigned-By: /a/key\n\n"
        "Types: deb\nURIs: http://security.test/debian-security\nSuites: trixie-security\n"
        "Components: main\n"
    )
    assert debian_archives() == DEBIAN | {"debian-security": "http://security.test/debian-security"}


def test_a_list_of_mirrors_is_followed(apt: Path) -> None:
    (apt / "mirrors").write_text("# ours\nhttp://mirror.test/debian\tpriority:1\n")
    (apt / "sources.list").write_text(f"deb mirror+file:{apt}/mirrors trixie main\n")
    assert debian_archives() == DEBIAN


def test_archives_of_others_are_none_of_debians(apt: Path) -> None:
    (apt / "sources.list.d" / "others.list").write_text(
        "deb http://vendor.test/linux/debian trixie stable\n"
        "deb http://vendor.test/apt/debian trixie/vendor/7 main\n"
        "deb http://vendor.test/ubuntu noble main\n"
        "deb http://vendor.test/debian binary/\n"
        "deb\n"
    )
    assert debian_archives() == {}


def test_debootstrap_names_its_default_mirror(apt: Path) -> None:
    script = "case $ARCH in\n\tamd64)\n\t\tdefault_mirror http://mirror.test/debian/\n\t;;\nesac\n"
    (apt / "debootstrap" / "sid").write_text(script)
    assert debian_archives() == DEBIAN
    (apt / "debootstrap" / "sid").write_text("mirror_style release\n")
    assert debian_archives() == {}


def test_the_environment_comes_first(apt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (apt / "sources.list").write_text("deb http://other.test/debian trixie main\n")
    monkeypatch.setenv(MIRROR_VARIABLE, "http://mirror.test/debian/")
    assert debian_archives() == DEBIAN
    monkeypatch.setenv(MIRROR_VARIABLE, "http://mirror.test/copy")
    assert debian_archives() == {"debian": "http://mirror.test/copy"}


def test_only_what_is_locked_is_asked_for_within_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(debian.LOCKED_VARIABLE, raising=False)
    with debian.locked_only():
        with debian.locked_only():
            assert debian.only_locked()
        assert debian.only_locked()
    assert not debian.only_locked()
