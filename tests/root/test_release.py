"""What Debian offers counts only as its signed index says."""

from __future__ import annotations

import hashlib
import lzma

import pytest

from testbed.base.debian import MIRROR_VARIABLE
from testbed.base.errors import MissingError
from testbed.root import release
from testbed.root.release import find_sha256, read_index
from tests.root.debs import serving
from tests.root.test_index import offer

INDEX = "main/binary-amd64/Packages.xz"
SUITES = {"debian": ("stable",), "debian-security": ("stable-security",)}


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "_PAUSE_S", 0.01)


def publish(**packages: str) -> dict[str, bytes]:
    """Return the files of a mirror whose suites offer a package in these versions."""
    files = {}
    for archive, (suite,) in SUITES.items():
        data = lzma.compress(offer("a", packages[archive.replace("-", "_")]).encode())
        digest = hashlib.sha256(data).hexdigest()
        text = f"Suite: {suite}\nSHA256:\n {'0' * 64} 5 contrib/Packages.xz\n {digest} 9 {INDEX}\n"
        files[f"/{archive}/dists/{suite}/InRelease"] = text.encode()
        files[f"/{archive}/dists/{suite}/{INDEX}"] = data
    return files


@pytest.fixture
def signed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take each index for one that Debian has signed."""
    monkeypatch.setattr(release, "verify_release", lambda data, address: data.decode())


@pytest.mark.usefixtures("signed")
def test_the_newest_of_all_suites_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(publish(debian="1.0", debian_security="1.1")) as mirror:
        monkeypatch.setenv(MIRROR_VARIABLE, f"{mirror.address}/debian")
        offered = read_index(SUITES).offered("a")
    assert [(one.version, one.archive) for one in offered] == [
        ("1.1", "debian-security"), ("1.0", "debian"),
    ]  # fmt: skip


def refused(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    with serving(files) as mirror:
        monkeypatch.setenv(MIRROR_VARIABLE, f"{mirror.address}/debian")
        with pytest.raises(MissingError, match=words):
            read_index(SUITES)


@pytest.mark.usefixtures("signed")
def test_an_index_that_is_not_the_signed_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    files = publish(debian="1.0", debian_security="1.1")
    files[f"/debian/dists/stable/{INDEX}"] += b"more"
    refused(files, monkeypatch, "is not what its signed index says")


@pytest.mark.usefixtures("signed")
def test_the_index_of_another_suite_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    files = publish(debian="1.0", debian_security="1.1")
    other = "/debian-security/dists/stable-security/InRelease"
    files["/debian/dists/stable/InRelease"] = files[other]
    refused(files, monkeypatch, "dists/stable/InRelease is another suite's")


def test_what_nobody_signed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    files = publish(debian="1.0", debian_security="1.1")
    refused(files, monkeypatch, "not signed by a key of Debian's archives")


def test_a_mirror_that_has_no_security_beside_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIRROR_VARIABLE, "http://127.0.0.1:1/mirror")
    with pytest.raises(MissingError, match="no mirror of debian-security is known"):
        read_index(SUITES)


def test_an_index_without_the_file_is_said() -> None:
    with pytest.raises(MissingError, match="names no main"):
        find_sha256(f"SHA256:\n {'0' * 64} 5 other\n", INDEX)


@pytest.mark.usefixtures("signed")
def test_an_error_of_the_server_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(publish(debian="1.0", debian_security="1.1")) as mirror:
        monkeypatch.setenv(MIRROR_VARIABLE, f"{mirror.address}/debian")
        mirror.refused["/debian/dists/stable/InRelease"] = [503, 500]
        assert read_index(SUITES).offered("a")
        mirror.refused["/debian/dists/stable/InRelease"] = [404]
        with pytest.raises(MissingError, match="InRelease cannot be had: HTTP Error 404"):
            read_index(SUITES)
