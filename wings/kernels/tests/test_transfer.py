"""Transfer of kernels: what leaves one cache, what another takes in, and what it refuses whole."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError, MissingError, StorageError
from testbed.kernel.build import native
from testbed.kernel.build.cache import (
    KernelIdentity,
    build_folder,
    find_kernel,
    write_identity,
)
from testbed.kernel.build.compiler import RECIPE
from testbed.kernel.build.native import is_whole
from testbed.kernel.build.pin import read_pin
from testbed.kernel.build.toolchain import read_name
from testbed.setup import root_import
from testbed.setup.parts import CachePart
from testbed.setup.root_pack import read_pack, write_pack
from tests.kernel.packed import LINUX, PROGRAMS, keep_build, keep_programs
from tests.kernel.toolchains import find_toolchain
from tests.setup.cached import change_list, rewrite
from wings.kernels.transfer import export_kernel, import_kernel


def silent(_message: str) -> None:
    """Say nothing."""


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


def exported(here: Path, **changes: object) -> Path:
    """A pack of a build, which says these ``changes`` of itself."""
    file, build = here.parent / "pack", keep_build(here)
    identity = replace(build.identity, **changes)  # type: ignore[arg-type]
    write_identity(build.binary.parent, identity)
    export_kernel(replace(build, identity=identity), keep_programs(here), file, silent,
                  replace=False)  # fmt: skip
    return file


def test_a_kernel_comes_over_with_its_programs(here: Path, there: Path) -> None:
    done = import_kernel(exported(here), there, there / "data", silent)
    assert done.added
    assert done.foreign == ()
    assert done.programs == native.native_folder(there)
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
    export_kernel(done.build, done.programs, again, silent, replace=False)
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
    assert [path for path in cache.rglob("*") if path.is_file() and path.name != "lock"] == []
    assert "nothing of it was used" in caught.value.problems[-1]
    return "\n".join(caught.value.problems[:-1])


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
        ({"version": "8.0"}, ("kernel 8.0: is none of this tree's, which are 7.3, 6.1",)),
    ],
)
def test_a_kernel_that_this_tree_does_not_pin_is_refused_naming_both(
    here: Path, there: Path, change: dict[str, object], named: tuple[str, ...]
) -> None:
    file = exported(here, **change)
    said = refused(file, there)
    assert said.startswith(f"{file}: ")
    assert [text for text in named if text not in said] == []


def test_a_damaged_pack_leaves_nothing(here: Path, there: Path) -> None:
    file = exported(here)
    file.write_bytes(file.read_bytes()[:-20])
    assert "or damaged" in refused(file, there)


def test_a_kernel_that_does_not_run_here_is_refused(here: Path, there: Path) -> None:
    file = exported(here)
    change_list(file, lambda document: document.update(machine="riscv64"))
    said = f"for riscv64, and this machine is {platform.machine()}"
    with pytest.raises(MissingError, match=said):
        import_kernel(file, there, there / "data", silent)
    assert not there.exists()


def test_programs_of_other_sources_are_left_out_and_named(here: Path, there: Path) -> None:
    file = exported(here)
    other = {"testbed/native/init.c": "0" * 64, "testbed/native/new.h": "1" * 64}
    change_list(file, lambda document: document["parts"][1]["sources"].update(other))
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
        export_kernel(build, programs, file, silent, replace=False)
    assert file.read_text() == "mine"
    export_kernel(build, programs, file, silent, replace=True)
    assert [each.part.name for each in read_pack(file).parts] == ["kernel-7.3", "programs"]
    with pytest.raises(StorageError, match=r"cannot write .*No such file.*another place"):
        export_kernel(build, programs, here / "no" / "pack", silent, replace=False)
    assert sorted(path.name for path in here.parent.iterdir()) == ["here", "pack"]


def test_a_program_that_is_gone_is_no_pack(here: Path) -> None:
    build, programs = keep_build(here), keep_programs(here)
    (programs / "init").unlink()
    with pytest.raises(StorageError, match=r"start again"):
        export_kernel(build, programs, here / "pack", silent, replace=False)


def test_a_cache_that_cannot_be_written_is_named(here: Path, there: Path) -> None:
    file = exported(here)
    there.mkdir()
    (there / "kernels").write_text("a file")
    with pytest.raises(StorageError, match=f"cannot import {file} to {there}: "):
        import_kernel(file, there, there / "data", silent)


def test_an_import_that_fails_halfway_leaves_nothing(
    here: Path, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = exported(here)

    def fail(*_asked: object) -> None:
        raise OSError(28, "No space left on device", "linux")

    monkeypatch.setattr(root_import, "extract_parts", fail)
    with pytest.raises(StorageError, match="No space left on device"):
        import_kernel(file, there, there / "data", silent)
    assert not (there / "kernels").exists()


def test_imported_programs_are_used_without_a_toolchain(
    here: Path, there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "ensure_toolchain", lambda *_asked: find_toolchain())
    file = tmp_path / "pack"
    programs = native.ensure_native(here, silent)
    export_kernel(keep_build(here), programs, file, silent, replace=False)
    done = import_kernel(file, there, there / "data", silent)
    monkeypatch.setattr(native, "ensure_toolchain", lambda *_asked: pytest.fail("it compiles"))
    assert native.ensure_native(there, pytest.fail) == done.programs


def test_a_pack_that_is_cut_or_altered_is_refused(here: Path, there: Path) -> None:
    """A byte that is altered may also be one that holds nothing, such as an owner's number."""
    file = exported(here)
    data = file.read_bytes()
    for place in range(0, len(data), len(data) // 60):
        file.write_bytes(data[:place])
        refused(file, there / "cut")
        file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        try:
            done = import_kernel(file, there / str(place), there / "data", silent)
        except (ConfigurationError, MissingError):
            continue
        assert done.build.binary.read_bytes() == LINUX
        assert done.build.identity == find_built(here)


def find_built(cache: Path) -> KernelIdentity:
    build = find_kernel(read_pin("7.3"), cache)
    assert build is not None
    return build.identity


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"compiler": "\x1b[2J"}, "has characters that no kernel's has"),
        ({"patches": {"\x1b[2J": "0"}}, "has characters that no kernel's has"),
        ({"package": 7}, "has characters that no kernel's has"),
        ({"binary_sha256": "0" * 64}, "or another than the build that it names"),
        ({"patches": []}, "or another than the build that it names"),
    ],
)
def test_what_is_no_build_is_refused(
    here: Path, there: Path, change: dict[str, object], said: str
) -> None:
    assert said in refused(exported(here, **change), there)


@pytest.mark.parametrize("name", ["linux", "init"])
def test_a_link_is_refused(here: Path, there: Path, name: str) -> None:
    file, build, programs = here.parent / "pack", keep_build(here), keep_programs(here)
    linked = (build.binary.parent if name == "linux" else programs) / name
    linked.symlink_to(linked.rename(here / name))
    export_kernel(build, programs, file, silent, replace=False)
    assert "holds links" in refused(file, there)


def test_a_pack_larger_than_any_of_ours_is_refused(here: Path, there: Path) -> None:
    file = exported(here)
    change_list(file, lambda document: document["parts"][1].update(bytes=140 << 20))
    assert "would unpack to more than 128.0 MiB" in refused(file, there)


def test_a_pack_of_several_kernels_is_refused(here: Path, there: Path) -> None:
    file, build = here.parent / "pack", keep_build(here).binary.parent
    kernels = [CachePart("kernel", version, f"kernels/{version}-0") for version in ("6.1", "7.3")]
    write_pack(file, dict.fromkeys(kernels, build), silent)
    assert "holds 2 kernels, and not one" in refused(file, there)


def test_a_pack_without_a_kernel_is_refused(here: Path, there: Path) -> None:
    file = exported(here)
    change_list(file, lambda document: document["parts"].pop(0))
    rewrite(file, lambda name, data: None if name.startswith("parts/kernel") else data)
    assert "holds no kernels, and not one" in refused(file, there)
