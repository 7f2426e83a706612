"""Where the kernel source comes from, what takes its place, and what is said when nothing does."""

from __future__ import annotations

import io
import lzma
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base import places
from testbed.base.checksums import file_sha256
from testbed.base.debian import LOCKED_VARIABLE, MIRROR_VARIABLE, locked_only
from testbed.base.errors import MissingError, StorageError
from testbed.kernel.build import cache as build
from testbed.kernel.build import source
from testbed.kernel.build.compiler import configure
from testbed.kernel.build.patches import apply_patch, read_patch
from testbed.kernel.build.pin import Pin, read_pin
from testbed.kernel.build.toolchain import ensure_toolchain
from testbed.root import download, release
from tests.kernel.small_pin import MAKEFILE, PROGRAM, make_pin
from tests.kernel.toolchains import find_toolchain
from tests.root.debs import Mirror, locked, pack, publish, serving

SNAPSHOT = download.SNAPSHOT_VARIABLE


@pytest.mark.thorough
@pytest.mark.nightly(but="^6.1$")
@pytest.mark.parametrize("version", ["6.1", "6.12"])
def test_a_pinned_source_takes_its_patches_and_its_configuration(
    version: str, tmp_path: Path
) -> None:
    """All of a build but compiling, which `make test-nightly` does."""
    pin = read_pin(version)
    with build.build_lock(pin, places.cache(), silent):
        toolchain = ensure_toolchain(places.cache(), silent)
        kept = source.fetch_source(pin, places.cache(), toolchain, silent)
    assert kept.sha256 == pin.tarball_sha256
    replace(kept, whole=False).unpack(tmp_path)
    for file in pin.patches:
        apply_patch(read_patch(file), tmp_path, kept.describe(), toolchain)
    configure(tmp_path, pin.config, f"kernel {version}", toolchain)


def silent(message: str) -> None:
    assert message


def make_tarball(program: str) -> bytes:
    """Return a kernel's tarball whose program is ``program``."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, text in (("Makefile", MAKEFILE), ("hello.c", program)):
            member = tarfile.TarInfo(f"linux-source/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return lzma.compress(stream.getvalue())


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """An empty mirror, which this machine knows, and whose index Debian has signed."""
    monkeypatch.setattr(download, "_PAUSE_S", 0.01)
    monkeypatch.setattr(release, "verify_release", lambda data, address: data.decode())
    monkeypatch.delenv(SNAPSHOT, raising=False)
    monkeypatch.delenv(LOCKED_VARIABLE, raising=False)
    with serving() as mirror:
        monkeypatch.setenv(MIRROR_VARIABLE, f"{mirror.address}/debian")
        yield mirror


@pytest.fixture
def pin(tmp_path: Path) -> Pin:
    """A pin whose package is nowhere, and whose tarball is not in the cache."""
    made = make_pin(tmp_path)
    kept = source.kept_tarball(made, tmp_path / "cache")
    data = pack({"usr/src": None, f"usr/src/{made.tarball}": kept.read_bytes()})
    kept.unlink()
    (tmp_path / "package").write_bytes(data)
    return replace(made, file=locked(made.package, data, version=made.package_version))


def offer(mirror: Mirror, pin: Pin, **programs: str) -> None:
    """Let the mirror offer versions of the source with these programs, but not the pinned one."""
    offers = []
    for name, program in programs.items():
        data = pack({f"usr/src/{pin.tarball}": make_tarball(program)})
        version = name.removeprefix("v").replace("_", ".") + "-1"
        offers.append((locked(pin.package, data, version=version), data, ""))
    mirror.files |= publish({pin.suite: offers})


def test_kept_tarball_is_used_without_any_server(tmp_path: Path) -> None:
    pin = make_pin(tmp_path)
    found = source.fetch_source(pin, tmp_path / "cache", find_toolchain(), silent)
    place = source.kept_tarball(pin, tmp_path / "cache")
    assert found == source.DebianSource(
        place, pin.tarball_sha256, pin.package, pin.package_version, find_toolchain()
    )


def test_the_pinned_package_is_fetched_verified_and_its_tarball_kept(
    tmp_path: Path, pin: Pin, mirror: Mirror
) -> None:
    data = (tmp_path / "package").read_bytes()
    mirror.add((pin.file, data))
    mirror.cut[f"/debian/{pin.file.path}"] = [100]
    found = source.fetch_source(pin, tmp_path / "cache", find_toolchain(), silent)
    assert file_sha256(found.tarball) == pin.tarball_sha256 == found.sha256
    assert found.tarball == source.kept_tarball(pin, tmp_path / "cache")
    assert found.tarball.stat().st_mode & 0o777 == 0o644
    assert list((tmp_path / "cache" / "kernels" / "sources" / "packages").iterdir()) == []
    assert len(mirror.asked) == 2


def test_it_comes_from_an_archive_of_old_versions(
    tmp_path: Path, pin: Pin, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (tmp_path / "package").read_bytes()
    offer(mirror, pin, v9_9_2=PROGRAM)
    mirror.add((pin.file, data), below=f"old/archive/debian/{pin.taken}")
    monkeypatch.setenv(SNAPSHOT, f"{mirror.address}/old")
    found = source.fetch_source(pin, tmp_path / "cache", find_toolchain(), silent)
    assert found.sha256 == pin.tarball_sha256


def test_a_package_with_another_tarball_than_is_pinned_is_not_used(
    tmp_path: Path, pin: Pin, mirror: Mirror
) -> None:
    mirror.add((pin.file, (tmp_path / "package").read_bytes()))
    wrong = replace(pin, tarball_sha256="0" * 64)
    with pytest.raises(StorageError, match=r"is pinned to 0{64}; it is not used"):
        source.fetch_source(wrong, tmp_path / "cache", find_toolchain(), silent)
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


def test_the_newest_that_all_patches_fit_takes_its_place(
    tmp_path: Path, pin: Pin, mirror: Mirror
) -> None:
    other = "int main(void) { return 1; }\n"
    offer(mirror, pin, v9_9_0=PROGRAM, v9_9_3=f"{PROGRAM}\n", v9_9_2=f"{PROGRAM}\n\n", v9_9_4=other)
    said: list[str] = []
    found = source.fetch_source(pin, tmp_path / "cache", find_toolchain(), said.append)
    assert found.package_version == "9.9.3-1"
    assert found.sha256 != pin.tarball_sha256
    assert any("linux-source-7.3 9.9.4-1 is offered, and not used: 0001.patch" in s for s in said)
    tarballs = list((tmp_path / "cache").rglob(pin.tarball))
    assert tarballs == [found.tarball]


def test_nothing_older_and_nothing_that_patches_do_not_fit_takes_its_place(
    tmp_path: Path, pin: Pin, mirror: Mirror
) -> None:
    offer(mirror, pin, v9_9_0=PROGRAM, v9_9_4="int main(void) { return 1; }\n")
    with pytest.raises(MissingError) as caught:
        source.fetch_source(pin, tmp_path / "cache", find_toolchain(), silent)
    said = str(caught.value)
    assert said.startswith("kernel 9.9: linux-source-7.3 9.9.1-1 is no longer to be had:\n")
    assert f"asked: the mirror ({mirror.address}/debian" in said
    assert "9.9.4-1 is offered, and not used: 0001.patch does not apply" in said
    assert "trixie-backports offers 9.9.4-1, 9.9.0-1" in said
    assert "--kernel-version 6.1" in said
    assert str(source.kept_tarball(pin, tmp_path / "cache")) in said


def test_nothing_takes_its_place_if_only_what_is_locked_may_be_used(
    tmp_path: Path, pin: Pin, mirror: Mirror
) -> None:
    offer(mirror, pin, v9_9_2=PROGRAM)
    with locked_only(), pytest.raises(MissingError, match=r"(?s)no longer .*404 Not Found.*asked"):
        source.fetch_source(pin, tmp_path / "cache", find_toolchain(), silent)
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


def test_a_kernel_of_a_newer_source_is_named_as_what_it_is(
    tmp_path: Path, pin: Pin, mirror: Mirror
) -> None:
    cache = tmp_path / "cache"
    offer(mirror, pin, v9_9_2=f"{PROGRAM}\n")
    made = build.ensure_kernel(pin, cache, 1, silent)
    assert made.identity.package_version == "9.9.2-1"
    assert made.identity.source_sha256 != pin.tarball_sha256
    assert made.binary.parent.name.endswith("-newer")
    asked = len(mirror.asked)
    assert build.ensure_kernel(pin, cache, 1, silent) == made == build.find_kernel(pin, cache)
    assert len(mirror.asked) == asked
    assert build.find_kernel(replace(pin, tarball_sha256="1" * 64), cache) is None
    with locked_only():
        assert build.find_kernel(pin, cache) is None
        with pytest.raises(MissingError, match="no longer to be had"):
            build.ensure_kernel(pin, cache, 1, silent)
    mirror.add((pin.file, (tmp_path / "package").read_bytes()))
    with locked_only():
        exact = build.ensure_kernel(pin, cache, 1, silent)
    assert exact.identity.package_version == pin.package_version
    assert build.find_kernel(pin, cache) == exact
