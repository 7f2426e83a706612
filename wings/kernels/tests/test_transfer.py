"""Transfer of kernels: what leaves one cache, what another takes in, and what it refuses whole."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError, MissingError, StorageError
from testbed.kernel.build import native
from testbed.kernel.build.cache import KernelIdentity, build_folder, find_kernel
from testbed.kernel.build.compiler import RECIPE
from testbed.kernel.build.native import is_whole
from testbed.kernel.build.pin import read_pin
from testbed.kernel.build.toolchain import read_name
from tests.kernel.packed import PROGRAMS, SOURCES_KEY, keep_build, keep_programs
from tests.kernel.toolchains import find_toolchain
from wings.kernels import transfer
from wings.kernels.pack import KernelPack, read_pack, render_pack
from wings.kernels.transfer import export_kernel, import_kernel


def silent(message: str) -> None:
    pytest.fail(message)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path / "here"


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Path]:
    """Another machine's cache, in which no import leaves anything half-written."""
    cache = tmp_path / "there"
    yield cache
    left = [path.name for path in cache.rglob(".*") if path.is_dir()]
    assert left == []


def exported(here: Path) -> Path:
    file = here.parent / "pack"
    export_kernel(keep_build(here), keep_programs(here), file, replace=False)
    return file


def repack(file: Path, **changes: object) -> None:
    """Make another pack of it, whole in itself."""
    file.write_bytes(render_pack(replace(read_pack(file), **changes)))  # type: ignore[arg-type]


def test_a_kernel_comes_over_with_its_programs(here: Path, there: Path) -> None:
    done = import_kernel(exported(here), there, there / "data", silent)
    assert done.added
    assert done.foreign == ()
    assert done.programs == there / "native" / SOURCES_KEY
    assert done.build == find_kernel(read_pin("7.3"), there)
    left = sorted(path.name for path in done.build.binary.parent.iterdir())
    assert left == ["build.json", "linux"]
    own = build_folder(read_pin("7.3"), here)
    for name in left:
        ours, theirs = own / name, done.build.binary.parent / name
        assert ours.read_bytes() == theirs.read_bytes()
    assert done.build.binary.stat().st_mode & 0o777 == 0o755
    for name, data in PROGRAMS.items():
        assert (done.programs / name).read_bytes() == data
        assert (done.programs / name).stat().st_mode & 0o777 == 0o755
    assert is_whole(done.programs)


def test_a_second_import_changes_nothing(here: Path, there: Path) -> None:
    file = exported(here)
    first = import_kernel(file, there, there / "data", silent)
    before = {path: path.stat().st_ino for path in there.rglob("*")}
    assert import_kernel(file, there, there / "data", silent) == replace(first, added=False)
    assert {path: path.stat().st_ino for path in there.rglob("*")} == before


def test_what_was_imported_is_exported_as_the_same_bytes(here: Path, there: Path) -> None:
    file = exported(here)
    done = import_kernel(file, there, there / "data", silent)
    assert done.programs is not None
    again = here.parent / "again"
    export_kernel(done.build, done.programs, again, replace=False)
    assert again.read_bytes() == file.read_bytes()


def test_the_machines_own_build_is_already_there(here: Path) -> None:
    done = import_kernel(exported(here), here, here / "data", silent)
    assert not done.added
    assert done.build.binary.parent == build_folder(read_pin("7.3"), here)


def test_other_bits_of_the_same_build_are_refused(here: Path, there: Path) -> None:
    own = keep_build(there, binary=b"not the same")
    with pytest.raises(
        ConfigurationError, match=r"has other bits: SHA-256 .* instead of"
    ) as caught:
        import_kernel(exported(here), there, there / "data", silent)
    assert str(own.binary.parent) in str(caught.value)
    assert not (there / "native").exists()


@pytest.mark.parametrize("name", ["linux", "build.json"])
def test_a_damaged_import_is_mended(here: Path, there: Path, name: str) -> None:
    file = exported(here)
    done = import_kernel(file, there, there / "data", silent)
    assert done.programs is not None
    (done.build.binary.parent / name).write_bytes(b"")
    (done.programs / "init").unlink()
    assert import_kernel(file, there, there / "data", silent) == done


def refused(file: Path, cache: Path) -> str:
    """Return why it is refused; nothing of it is in the cache then."""
    with pytest.raises(ConfigurationError) as caught:
        import_kernel(file, cache, cache / "data", silent)
    assert not cache.exists()
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (
            {"patches": {"0001-other.patch": "a" * 64}},
            ("0001-other.patch aaaaaaaaaaaa instead of none", "patch none instead of "),
        ),
        ({"config_sha256": "b" * 64}, (f"configuration {'b' * 12} instead of ",)),
        (
            {"source_sha256": "c" * 64, "package_version": "7.3.5-1"},
            ("linux-source-7.3 7.3.5-1 (cccccccccccc) instead of linux-source-7.3 7.3.",),
        ),
        ({"compiler": "another"}, (f"compiler another instead of {read_name()}",)),
        ({"recipe": "0"}, (f"build recipe 0 instead of {RECIPE}",)),
        ({"version": "8.0"}, ("holds kernel 8.0, and this tree pins 7.3, 6.1",)),
    ],
)
def test_a_kernel_that_this_tree_does_not_pin_is_refused_naming_both(
    here: Path, there: Path, change: dict[str, object], named: tuple[str, ...]
) -> None:
    file = exported(here)
    identity: KernelIdentity = read_pack(file).identity
    repack(file, identity=replace(identity, **change))  # type: ignore[arg-type]
    said = refused(file, there)
    assert said.startswith(f"{file}: ")
    assert said.endswith("export the kernel in a tree of this version")
    assert [text for text in named if text not in said] == []


def test_a_damaged_pack_leaves_nothing(here: Path, there: Path) -> None:
    file = exported(here)
    file.write_bytes(file.read_bytes()[:-20])
    assert "or damaged" in refused(file, there)


def test_a_kernel_that_does_not_run_here_is_refused(here: Path, there: Path) -> None:
    file = exported(here)
    repack(file, machine="riscv64")
    said = f"for riscv64; this machine is {platform.machine()}"
    with pytest.raises(MissingError, match=said):
        import_kernel(file, there, there / "data", silent)
    assert not there.exists()


def test_programs_of_other_sources_are_left_out_and_named(here: Path, there: Path) -> None:
    file = exported(here)
    pack: KernelPack = read_pack(file)
    changed = {**pack.sources, "init.c": "0" * 64, "new.h": "1" * 64}
    repack(file, sources=changed)
    done = import_kernel(file, there, there / "data", silent)
    assert done.added
    assert done.programs is None
    assert done.foreign == ("init.c", "new.h")
    assert not (there / "native").exists()


def test_a_file_is_replaced_only_when_asked_and_as_a_whole(here: Path) -> None:
    build, programs = keep_build(here), keep_programs(here)
    file = here.parent / "pack"
    file.write_text("mine")
    with pytest.raises(ConfigurationError, match=r"pack is there.*--replace"):
        export_kernel(build, programs, file, replace=False)
    assert file.read_text() == "mine"
    export_kernel(build, programs, file, replace=True)
    assert read_pack(file).identity == build.identity
    with pytest.raises(StorageError, match=r"cannot write .*No such file.*another place"):
        export_kernel(build, programs, here / "no" / "pack", replace=False)
    assert sorted(path.name for path in here.parent.iterdir()) == ["here", "pack"]


def test_a_program_that_is_gone_is_no_pack(here: Path) -> None:
    build, programs = keep_build(here), keep_programs(here)
    (programs / "init").unlink()
    with pytest.raises(StorageError, match=r"start again"):
        export_kernel(build, programs, here / "pack", replace=False)


def test_a_cache_that_cannot_be_written_is_named(here: Path, there: Path) -> None:
    file = exported(here)
    there.mkdir()
    (there / "kernels").write_text("a file")
    with pytest.raises(StorageError, match=f"cannot write to the cache {there}: .*XDG_CACHE_HOME"):
        import_kernel(file, there, there / "data", silent)


def test_an_import_that_fails_halfway_leaves_nothing(
    here: Path, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = exported(here)

    def fail(*_asked: object) -> None:
        raise OSError(28, "No space left on device", "linux")

    monkeypatch.setattr(transfer, "write_identity", fail)
    with pytest.raises(StorageError, match="No space left on device"):
        import_kernel(file, there, there / "data", silent)
    assert list((there / "kernels").glob("*7.3-*")) == []


def test_imported_programs_are_used_without_a_toolchain(
    here: Path, there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "ensure_toolchain", lambda *_asked: find_toolchain())
    file = tmp_path / "pack"
    export_kernel(keep_build(here), native.ensure_native(here, lambda _line: None), file,
                  replace=False)  # fmt: skip
    done = import_kernel(file, there, there / "data", silent)
    monkeypatch.setattr(native, "ensure_toolchain", lambda *_asked: pytest.fail("it compiles"))
    assert native.ensure_native(there, silent) == done.programs
