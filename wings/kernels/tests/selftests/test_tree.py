"""Tests of a kernel are shared by all that differ in nothing which the tests are made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base import places
from testbed.kernel.build.patches import Patch
from tests.kernel.small_tree import commit, make_repository
from wings.kernels.own.definition import OwnKernel, read_kernel, write_own
from wings.kernels.own.git import resolve
from wings.kernels.selftests.tree import key_of_tests


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def patch_of(name: str) -> Patch:
    return Patch("0001-x.patch", "x", f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-a\n+b\n")


def keep(own: OwnKernel) -> str:
    write_own(own, places.data(), replaced=True)
    return key_of(own.name)


def key_of(version: str) -> str:
    return key_of_tests(read_kernel(version, places.data()))


def test_a_patch_of_tcp_has_the_tests_of_its_base() -> None:
    assert keep(OwnKernel("mine", "7.3", (patch_of("net/ipv4/tcp.c"),))) == key_of("7.3")
    assert key_of("7.3") != key_of("6.1")


@pytest.mark.parametrize("name", ["tools/testing/selftests/net/tls.c", "include/uapi/linux/tcp.h"])
def test_a_patch_of_tests_or_their_headers_has_others(name: str) -> None:
    assert keep(OwnKernel("mine", "7.3", (patch_of(name),))) != key_of("7.3")


def test_commits_share_tests_until_one_changes_them(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "linux")
    keys: list[str] = []
    for name in ("net/tcp.c", "net/tcp.c", "tools/testing/selftests/net/tls.c"):
        file = repository / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{len(keys)}\n")
        commit(repository, name)
        source = resolve(repository, "HEAD", places.data() / "git-objects")
        keys.append(keep(OwnKernel("mine", "7.3", git=source)))
    assert keys[0] == keys[1] != keys[2]
