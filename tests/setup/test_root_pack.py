"""A root pack is the same each time, and is imported as a whole or not at all."""

from __future__ import annotations

import errno
import io
import lzma
import os
import platform
import shutil
import tarfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.base import places, proc
from testbed.base.errors import EXIT_CONFIGURATION, ConfigurationError, MissingError, StorageError
from testbed.kernel.build.cache import read_build
from testbed.kernel.build.pin import read_pin
from testbed.model import DEFAULT_ROOT
from testbed.root.assembly import Assembly
from testbed.root.cache import find_root, packed_place
from testbed.root.lock import read_lock
from testbed.root.spec import read_spec
from testbed.setup import parts, root_pack
from testbed.setup.parts import gather_parts
from testbed.setup.python_packages import interpreter
from testbed.setup.root_import import import_pack, import_roots
from testbed.setup.root_pack import is_pack, read_pack
from tests.setup.cached import PACKAGE, change_list, keep_root, pack_parts, rewrite


@pytest.fixture(autouse=True)
def no_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock does not say what a made-up root comes to."""
    monkeypatch.setattr(parts, "read_lock", lambda file: replace(read_lock(file), digest=None))


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """The cache that the pack was made from."""
    return tmp_path / "made"


@pytest.fixture
def file(tmp_path: Path, made: Path) -> Path:
    return pack_parts(tmp_path / "pack.tar", made)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Another machine's cache, which is empty."""
    folder = tmp_path / "new"
    folder.mkdir()
    return folder


def quiet(_message: str) -> None:
    """Say nothing."""


def whole(cache: Path) -> dict[str, object]:
    """Everything in a cache that is of use: contents or links by their paths, and who may run."""
    return {
        str(path.relative_to(cache)): (path.stat().st_mode & 0o111, path.read_bytes())
        if path.is_file()
        else path.is_symlink() and path.readlink()
        for path in sorted(cache.rglob("*"))
        if path.name not in ("lock", "build.log", "root.json", "__pycache__")
        and path.parent.name != "__pycache__"
        and (path.relative_to(cache).parts[0] != "venv" or "site-packages" in path.parts)
    }


def refused(file: Path, cache: Path) -> str:
    """Why a pack is refused, which leaves nothing behind."""
    with pytest.raises(ConfigurationError) as caught:
        import_pack(file, cache, quiet)
    left = [path for path in cache.rglob("*") if not path.is_dir() and path.name != "lock"]
    assert left == []
    assert "nothing of it was used" in caught.value.problems[-1]
    return "\n".join(caught.value.problems[:-1])


def test_all_parts_arrive_as_they_were(file: Path, made: Path, cache: Path) -> None:
    done = import_pack(file, cache, quiet)
    assert [each.added for each in done] == [True] * 4
    assert whole(cache) == whole(made)
    spec = read_spec(DEFAULT_ROOT)
    here, there = find_root(spec, cache), find_root(spec, made)
    assert here is not None
    assert there is not None
    assert here.digest == there.digest
    assert read_build(done[1].place, read_pin("7.3")) is not None


def test_equal_parts_give_equal_bytes(file: Path, tmp_path: Path) -> None:
    again = pack_parts(tmp_path / "again.tar", tmp_path / "elsewhere")
    assert again.read_bytes() == file.read_bytes()


def test_what_is_there_stays_and_what_is_damaged_is_mended(file: Path, cache: Path) -> None:
    first = import_pack(file, cache, quiet)
    assert [each.added for each in import_pack(file, cache, quiet)] == [False] * 4
    (first[0].place / "usr" / "bin" / "sh").write_text("another")
    (first[1].place / "linux").write_bytes(b"another")
    done = import_pack(file, cache, quiet)
    assert [each.added for each in done] == [True, True, False, False]
    assert (first[0].place / "usr" / "bin" / "sh").read_text() == "a shell"


def test_a_shell_finds_the_packages_first(file: Path, tmp_path: Path) -> None:
    with tarfile.open(file) as archive:
        assert archive.getnames()[0].startswith("packages/")
    proc.run(("tar", "-xf", str(file), "-C", str(tmp_path), "packages"))
    [package] = (tmp_path / "packages").iterdir()
    assert package.read_bytes() == PACKAGE


def test_two_imports_at_once(file: Path, made: Path, cache: Path) -> None:
    with ThreadPoolExecutor() as workers:
        both = list(workers.map(lambda _: import_pack(file, cache, quiet), range(2)))
    assert sorted(each[0].added for each in both) == [False, True]
    assert whole(cache) == whole(made)


def test_a_pack_that_is_cut_anywhere_is_refused(file: Path, cache: Path) -> None:
    data = file.read_bytes()
    with tarfile.open(file) as archive:
        edge = archive.getmember("parts/python.tar.xz").offset
    for length in (0, 100, 700, len(data) // 2, edge, len(data) - 11_000):
        file.write_bytes(data[:length])
        assert "no pack of a root" in refused(file, cache)


@pytest.mark.parametrize("name", ["packages/", "parts/root-", "parts/kernel-", "parts/python"])
def test_damage_is_named(file: Path, cache: Path, name: str) -> None:
    def damage(member: str, data: bytes) -> bytes:
        middle = len(data) // 2
        return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]

    rewrite(file, lambda each, data: damage(each, data) if each.startswith(name) else data)
    assert "damaged" in refused(file, cache)


def test_another_trees_pack_is_refused_with_every_reason(file: Path, cache: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        for part in document["parts"]:
            first = next(iter(part["sources"]))
            part["sources"][first] = "0" * 64

    change_list(file, change)
    said = refused(file, cache)
    assert "root debian-13: is made from another roots/debian-13/lock.toml than this tree's" in said
    assert "kernel 7.3: is made from another testbed/kernel/pins/7.3/kernel.config" in said
    assert "C programs: is made from another testbed/native/" in said
    assert "Python packages: is made from another bootstrap/requirements.txt" in said


def test_an_unknown_root_and_kernel_are_refused(file: Path, cache: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        document["parts"][0]["variant"] = "debian-99"
        document["parts"][1]["variant"] = "9.9"

    change_list(file, change)
    rewrite(
        file,
        lambda name, data: data if not name.startswith(("parts/root", "parts/kernel")) else None,
    )
    assert "lacks parts/kernel-9.9.tar.xz" in refused(file, cache)


def test_another_machines_pack_is_refused(
    file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(MissingError, match="is for x86_64, and this machine is aarch64"):
        import_pack(file, cache, quiet)


def test_other_formats_and_files_are_refused(file: Path, cache: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("no archive")
    assert "no pack of a root" in refused(other, cache)
    assert not is_pack(other)
    assert is_pack(file)
    change_list(file, lambda document: document.update(format=2))
    assert "of format 2; this version reads 1" in refused(file, cache)
    rewrite(file, lambda name, data: b"[]" if name == "pack.json" else data)
    assert "pack.json is not as" in refused(file, cache)
    rewrite(file, lambda name, data: None if name == "pack.json" else data)
    assert "it has no pack.json" in refused(file, cache)


def test_a_part_for_another_place_is_refused(file: Path, cache: Path) -> None:
    for folder in ("../x", "kernels/7.3-x", "roots/assembled/other", "bundles/x"):
        change_list(file, lambda document, at=folder: document["parts"][0].update(folder=at))  # type: ignore[misc]
        assert refused(file, cache)


@pytest.mark.parametrize("name", ["../../outside", "/outside", "lib64/../../outside", "link/file"])
def test_nothing_leads_out_of_a_part(file: Path, cache: Path, tmp_path: Path, name: str) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        archive.addfile(link)
        member = tarfile.TarInfo(name)
        member.size = 3
        archive.addfile(member, io.BytesIO(b"bad"))
    data = lzma.compress(stream.getvalue())
    rewrite(file, lambda each, old: data if each.startswith("parts/root") else old)
    assert "damaged" in refused(file, cache)
    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "file").exists()


def test_a_part_unpacks_to_no_more_than_the_list_says(file: Path, cache: Path) -> None:
    change_list(file, lambda document: document["parts"][0].update(bytes=10))
    assert "has more files than the pack says" in refused(file, cache)


def test_a_part_has_no_more_files_than_any_of_ours(
    file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(root_pack, "_MOST_FILES", 2)
    assert "has more files than" in refused(file, cache)


def test_a_disk_without_room_is_named_before(
    file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(StorageError, match="free space, or set XDG_CACHE_HOME"):
        import_pack(file, cache, quiet)


def test_a_root_is_taken_by_its_digest_whatever_the_lock_says(
    file: Path, made: Path, cache: Path
) -> None:
    root = find_root(read_spec(DEFAULT_ROOT), made)
    assert root is not None

    def change(document: dict[str, Any]) -> None:
        document["parts"][0]["sources"] = {"roots/debian-13/lock.toml": "0" * 64}

    change_list(file, change)
    for _ in range(2):
        taken = import_roots(file, {"mine": root.digest}, cache, quiet)
        assert taken["mine"].usr == packed_place(root.digest, cache) / "usr"
        assert taken["mine"].digest == root.digest
    assert find_root(read_spec(DEFAULT_ROOT), cache) is None
    with pytest.raises(ConfigurationError, match="lacks the root mine"):
        import_roots(file, {"mine": "0" * 64}, cache, quiet)


def test_a_root_of_another_digest_than_the_locks_is_refused(
    file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "read_lock", lambda f: replace(read_lock(f), digest="0" * 64))
    assert "root debian-13: has the digest" in refused(file, cache)


def test_a_root_that_the_lock_names_is_not_put_there_twice(file: Path, cache: Path) -> None:
    import_pack(file, cache, quiet)
    root = find_root(read_spec(DEFAULT_ROOT), cache)
    assert root is not None
    assert import_roots(file, {DEFAULT_ROOT: root.digest}, cache, quiet) == {DEFAULT_ROOT: root}
    assert not packed_place(root.digest, cache).exists()


def test_a_disk_that_is_full_in_the_middle_leaves_nothing(
    file: Path, made: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_words: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Assembly, "write", fail)
        with pytest.raises(StorageError, match="No space left on device; make room, and try again"):
            import_pack(file, cache, quiet)
    assert [path for path in cache.rglob("*") if path.is_file() and path.name != "lock"] == []
    import_pack(file, cache, quiet)
    assert whole(cache) == whole(made)


def test_what_a_killed_import_left_goes(file: Path, made: Path, cache: Path) -> None:
    left = cache / "roots" / "assembled" / ".new-killed" / "python"
    left.mkdir(parents=True)
    (left / "half").write_text("of a file")
    partial = cache / "roots" / "packages" / ".new-0.deb"
    partial.parent.mkdir()
    partial.write_text("half a package")
    import_pack(file, cache, quiet)
    assert whole(cache) == whole(made)


def test_a_kernel_of_ones_own_is_not_exported(cache: Path) -> None:
    with pytest.raises(ConfigurationError, match="kernel 'mine' is none that this tree pins"):
        gather_parts((DEFAULT_ROOT,), ("7.3", "mine"), cache, quiet)


def test_it_is_imported_without_python_packages(file: Path, made: Path, cache: Path) -> None:
    # Its lock would not let the made-up root in.
    change_list(file, lambda document: document["parts"].pop(0))
    rewrite(file, lambda name, data: None if name.startswith("parts/root") else data)
    shutil.rmtree(made / "roots" / "assembled")
    (made / "roots" / "assembled").mkdir()
    home = cache.parent / "home"
    argv = (interpreter(), "-I", "-S", "-c", "import sys; sys.path.insert(0, sys.argv[1]); "
            "from testbed.setup.root_import import import_named; "
            "sys.exit(import_named(sys.argv[2:]))", str(places.ROOT), str(file))  # fmt: skip
    done = proc.run(argv, env={**os.environ, "XDG_CACHE_HOME": str(home)})
    assert "kernel 7.3: imported to" in done.stdout
    assert whole(home / "firstflight") == whole(made)
    file.write_bytes(file.read_bytes()[:5000])
    done = proc.run(argv, env={**os.environ, "XDG_CACHE_HOME": str(home)}, check=False)
    assert done.returncode == EXIT_CONFIGURATION
    assert done.stderr.startswith(f"error: {file}: is no pack of a root or a kernel, or damaged")


def test_a_wrong_root_is_not_taken_by_a_digest(file: Path, cache: Path, tmp_path: Path) -> None:
    digest = keep_root(tmp_path / "elsewhere", "another shell")
    change_list(file, lambda document: document["parts"][0].update(digest=digest))
    with pytest.raises(ConfigurationError, match="not those that the pack names"):
        import_roots(file, {"mine": digest}, cache, quiet)
    assert not packed_place(digest, cache).exists()


def test_the_list_tells_of_the_parts_and_of_nobody(file: Path) -> None:
    pack = read_pack(file)
    assert [each.part.name for each in pack.parts] == [
        "root-debian-13", "kernel-7.3", "programs", "python",
    ]  # fmt: skip
    assert set(pack.packages.values()) == {
        name.partition("/")[2].removesuffix(".deb") for name in pack.packages
    }
    with tarfile.open(file) as archive:
        assert {(each.uname, each.uid, each.mtime) for each in archive} == {("", 0, 1_700_000_000)}
