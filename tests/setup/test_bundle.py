"""The bundle: what is in it, what its name depends on, and what happens when parts are missing."""

from __future__ import annotations

import marshal
import os
import stat
import threading
from array import array
from pathlib import Path

import pytest

from testbed.base import sources
from testbed.base.errors import MissingError
from testbed.model.trace import Trace
from testbed.root.cache import Root
from testbed.setup import bundle as bundles
from testbed.setup.bundle import Bundle, make_bundle


class Parts:
    """Built parts as bootstrap leaves them."""

    def __init__(self, folder: Path) -> None:
        self.cache, self.native = folder / "cache", folder / "native"
        self.root = Root("small", Path("/usr"), "0" * 64)
        self.native.mkdir(parents=True)
        for name in bundles.NATIVE:
            (self.native / name).write_text(name)

    def make(self) -> Bundle:
        return make_bundle(self.cache, self.native, self.root)


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(tmp_path)


def test_what_is_in_it(parts: Parts) -> None:
    made = parts.make()
    assert made.path.parent == parts.cache / "bundles"
    for name in (
        *("guest.py", "testbed/client/chromium/pinned.js", "etc/fonts/fonts.conf"),
        *("testbed/runner/trial.py", "testbed/lab/link/tap.py", "testbed/server/nginx.py"),
        *(f"native/{name}" for name in bundles.NATIVE),
    ):
        assert (made.path / name).is_file(), name
    assert (made.path / "native" / "mnt").is_dir()
    trial = Path(sources.PACKAGE, "runner/trial.py").read_bytes()
    assert (made.path / "testbed/runner/trial.py").read_bytes() == trial
    assert not (made.path / "testbed/results/store.py").exists()
    assert not (made.path / "testbed/mechanisms/fast_open/proof.py").exists()


def test_each_root_has_one_with_the_same_code(parts: Parts) -> None:
    rooted = [
        make_bundle(parts.cache, parts.native, Root("small", Path("/usr"), digest * 64))
        for digest in "12"
    ]
    assert len({made.digest for made in rooted}) == 1
    assert len({made.path for made in rooted}) == 2


def test_traces_are_in_it_as_the_kernel_reads_them(parts: Parts) -> None:
    one, other = (Trace(array("I", times)) for times in ([1, 2], [1, 3]))
    made = [
        make_bundle(parts.cache, parts.native, parts.root, traces={"x": trace})
        for trace in (one, other)
    ]
    packed = [(each.path / "traces" / "x").read_bytes() for each in made]
    assert list(map(Trace.unpack, packed)) == [one, other]
    assert len({each.path for each in made} | {parts.make().path}) == 3
    assert {each.digest for each in made} == {parts.make().digest}


def test_any_user_may_read_it(parts: Parts) -> None:
    before = os.umask(0o077)
    try:
        made = parts.make()
    finally:
        os.umask(before)
    programs = {made.path / "native" / name for name in bundles.NATIVE if not name.endswith(".so")}
    for path in (made.path, *made.path.rglob("*")):
        executable = path.is_dir() or path in programs
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if executable else 0o644), path


def test_it_is_compiled_and_knows_no_path_of_this_machine(parts: Parts) -> None:
    made = parts.make()
    compiled = list(made.path.rglob("*.pyc"))
    assert len(compiled) == len(list(made.path.rglob("*.py")))
    (trial,) = (path for path in compiled if path.name.startswith("trial."))
    content = trial.read_bytes()
    assert marshal.loads(content[16:]).co_filename == "/ff/bundle/testbed/runner/trial.py"  # noqa: S302
    # PEP 552: based on a hash that is never checked.
    assert content[4:8] == b"\x01\0\0\0"
    assert str(parts.cache).encode() not in content


def test_the_same_content_is_found_again(parts: Parts) -> None:
    first = parts.make()
    before = first.path.stat()
    assert parts.make() == first
    after = first.path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("name", ["native/init", "testbed/runner/trial.py", "SHA256SUMS"])
def test_a_damaged_file_heals_itself(
    parts: Parts, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "testbed")
    first = parts.make()
    whole = (first.path / name).read_bytes()
    (first.path / name).write_bytes(whole[: len(whole) // 2])
    assert parts.make() == first
    assert (first.path / name).read_bytes() == whole
    assert [path.name for path in (parts.cache / "bundles").iterdir()] == [first.path.name]
    (said,) = caplog.messages
    assert said.endswith(" in the cache is damaged; assembling it again")


def test_a_module_that_does_not_belong_there_goes(parts: Parts) -> None:
    """It would be imported in the place of Python's own."""
    stray = parts.make().path / "json.py"
    stray.touch()
    assert not (parts.make().path / "json.py").exists()


def test_two_machines_make_the_same(parts: Parts, tmp_path: Path) -> None:
    other = tmp_path / "other"
    assert parts.make().digest == Parts(other).make().digest


@pytest.mark.parametrize("part", [f"native/{name}" for name in bundles.NATIVE])
def test_every_part_decides_the_name(parts: Parts, tmp_path: Path, part: str) -> None:
    first = parts.make()
    (tmp_path / part).write_text("changed")
    second = parts.make()
    assert second.digest != first.digest
    assert second.path != first.path
    assert first.path.is_dir()


def test_a_module_decides_the_name(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = parts.make()
    tree = tmp_path / "tree"
    data = (sources.PACKAGE / name for name in bundles.DATA)
    for source in (*sources.imported_sources(*bundles.PROGRAMS), *data):
        target = tree / source.relative_to(sources.PACKAGE.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
    monkeypatch.setattr(sources, "PACKAGE", tree / "testbed")
    assert parts.make() == first
    with (tree / "testbed" / "runner" / "trial.py").open("a") as trial:
        trial.write("\n")
    assert parts.make().digest != first.digest


def test_every_missing_part_is_named(parts: Parts, tmp_path: Path) -> None:
    for part in ("native/init", "native/link"):
        (tmp_path / part).unlink()
    with pytest.raises(MissingError) as caught:
        parts.make()
    for words in ("native/init", "native/link", "./run.sh"):
        assert words in str(caught.value)
    assert "tfo.so" not in str(caught.value)
    assert not parts.cache.exists()


def test_two_at_once_make_one(parts: Parts) -> None:
    made: list[Bundle] = []
    threads = [threading.Thread(target=lambda: made.append(parts.make())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made[0] == made[1]
    assert [path.name for path in (parts.cache / "bundles").iterdir()] == [made[0].path.name]


def test_a_failure_leaves_nothing(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(bundles, "_fill", fail)
    with pytest.raises(OSError, match="no space left"):
        parts.make()
    assert list((parts.cache / "bundles").iterdir()) == []


def test_a_users_files_make_another_bundle_of_the_same_code(parts: Parts, tmp_path: Path) -> None:
    program, data = tmp_path / "mine", tmp_path / "data"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    data.write_text("x")
    plain = parts.make()
    files = {"mine": program, "lib/data": data}
    made = make_bundle(parts.cache, parts.native, parts.root, files)
    assert (made.digest, made.path == plain.path) == (plain.digest, False)
    assert not (plain.path / "own").exists()
    modes = {name: stat.S_IMODE((made.path / "own" / name).stat().st_mode) for name in files}
    assert modes == {"mine": 0o755, "lib/data": 0o644}
    assert make_bundle(parts.cache, parts.native, parts.root, files).path == made.path
    data.write_text("y")
    assert make_bundle(parts.cache, parts.native, parts.root, files).path != made.path
