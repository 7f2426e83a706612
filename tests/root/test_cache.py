"""A root is assembled whole or not at all, is the same each time, and is mended when damaged."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from testbed.base.debian import LOCKED_VARIABLE, MIRROR_VARIABLE, locked_only
from testbed.base.errors import MissingError, StorageError
from testbed.root import cache, download, release
from testbed.root.cache import Root, ensure_root, find_root
from testbed.root.download import package_file
from testbed.root.lock import Lock, format_lock
from testbed.root.spec import RootSpec
from tests.root.debs import Member, Mirror, locked, pack, publish, serving

FILES: dict[str, dict[str, Member]] = {
    "base": {"bin": None, "bin/sh": b"shell", "lib64/ld.so": b"loader",
             "usr/bin/sh-link": Path("/bin/sh"), "etc/base.conf": "no guest sees it",
             "usr/share/doc/base/copyright": "for people", "usr/share/doc-base/base": "stays",
             "usr/share/base/set-user": b"program"},
    "more": {"usr/bin/more": b"more", "usr/lib/empty": None, "usr/share/text": "text"},
}  # fmt: skip


@dataclass
class Trial:
    """A root of two packages, and the cache that it is assembled in."""

    folder: Path
    mirror: str
    said: list[str] = field(default_factory=list)

    def write(
        self, packages: Mapping[str, bytes], left_out: tuple[str, ...] = (),
        digest: str | None = None,
    ) -> RootSpec:  # fmt: skip
        """Lock ``packages`` as a root."""
        entries = tuple(locked(name, data) for name, data in packages.items())
        spec = RootSpec(
            self.folder, "A root", True, {"debian": ("stable",)}, {}, {}, {"for people": left_out}
        )
        self.folder.mkdir(exist_ok=True)
        spec.lock_file.write_text(format_lock(Lock("20261124T120000Z", entries, digest)))
        return spec

    def assemble(self, spec: RootSpec, cache: str = "cache") -> Root:
        """Assemble it below a cache."""
        return ensure_root(spec, self.folder.parent / cache, self.said.append)


PACKAGES = {name: pack(files) for name, files in FILES.items()}
LEFT_OUT = ("usr/share/doc/**",)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_PAUSE_S", 0.01)
    monkeypatch.delenv(download.SNAPSHOT_VARIABLE, raising=False)
    monkeypatch.delenv(LOCKED_VARIABLE, raising=False)


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    monkeypatch.setenv(MIRROR_VARIABLE, "http://127.0.0.1:1/debian")
    return Trial(tmp_path / "small", "")


@pytest.fixture
def spec(trial: Trial) -> RootSpec:
    """A root whose packages are in the cache already."""
    spec = trial.write(PACKAGES, LEFT_OUT)
    keep(trial, PACKAGES)
    return spec


def keep(trial: Trial, packages: Mapping[str, bytes], cache: str = "cache") -> None:
    folder = trial.folder.parent / cache / "roots" / "packages"
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in packages.items():
        package_file(folder, locked(name, data)).write_bytes(data)


def look(root: Root) -> dict[str, object]:
    return {
        path.relative_to(root.usr).as_posix(): str(path.readlink())
        if path.is_symlink()
        else (path.stat().st_mode & 0o7777, path.read_bytes())
        for path in root.usr.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def test_a_root_is_what_guests_get_as_usr(trial: Trial, spec: RootSpec) -> None:
    assert find_root(spec, trial.folder.parent / "cache") is None
    root = trial.assemble(spec)
    assert look(root) == {"bin/sh": (0o755, b"shell"), "lib64/ld.so": (0o755, b"loader"),
                          "bin/sh-link": "/bin/sh", "share/doc-base/base": (0o644, b"stays"),
                          "share/base/set-user": (0o755, b"program"), "bin/more": (0o755, b"more"),
                          "share/text": (0o644, b"text")}  # fmt: skip
    assert (root.usr / "lib" / "empty").is_dir()
    assert find_root(spec, trial.folder.parent / "cache") == root


def test_its_digest_is_that_of_its_files(trial: Trial, spec: RootSpec) -> None:
    first = trial.assemble(spec)
    keep(trial, PACKAGES, "other")
    previous = os.umask(0o077)
    try:
        second = trial.assemble(spec, "other")
    finally:
        os.umask(previous)
    assert first.digest == second.digest
    assert first.usr != second.usr
    others = {
        "a file more": PACKAGES | {"new": pack({"usr/new": "text"})},
        "another text": PACKAGES | {"more": pack(FILES["more"] | {"usr/share/text": "tex"})},
        "no program": PACKAGES | {"more": pack(FILES["more"] | {"usr/bin/more": "more"})},
    }
    digests = set()
    for packages in others.values():
        keep(trial, packages)
        digests.add(trial.assemble(trial.write(packages, LEFT_OUT)).digest)
    assert len(digests | {first.digest}) == 4


def test_a_root_in_a_cache_of_others_is_looked_through(
    trial: Trial, spec: RootSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mounted elsewhere, or copied, its files look other than they did, and are the same."""
    root = trial.assemble(spec)
    os.utime(root.usr / "share" / "text")
    number = errno.EROFS

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(cache, "note_root", refuse)
    assert find_root(spec, trial.folder.parent / "cache") == root
    number = errno.ENOSPC
    with pytest.raises(OSError, match="No space"):
        find_root(spec, trial.folder.parent / "cache")


@pytest.mark.parametrize("name", ["bin/sh", "share/text"])
def test_a_damaged_root_is_assembled_again(trial: Trial, spec: RootSpec, name: str) -> None:
    root = trial.assemble(spec)
    before = look(root)
    (root.usr / name).write_bytes(b"other")
    assert find_root(spec, trial.folder.parent / "cache") is None
    assert trial.assemble(spec) == root
    assert look(root) == before
    (root.usr / name).unlink()
    assert look(trial.assemble(spec)) == before


def test_a_root_whose_times_alone_are_others_is_whole(trial: Trial, spec: RootSpec) -> None:
    root = trial.assemble(spec)
    os.utime(root.usr / "bin" / "sh", (1, 1))
    unpacked = list(trial.said)
    assert trial.assemble(spec) == root
    assert trial.said == unpacked


@pytest.mark.parametrize(
    ("bad", "words"),
    [({"usr/share/text": "another"}, "more and bad both have usr/share/text|bad and more both"),
     ({"lib/x": "1", "usr/lib/x": "1"}, "bad and bad both have usr/lib/x"),
     ({"usr/../../out": "text"}, "has the path"),
     ({"usr/way": Path("/etc"), "usr/way/file": "text"}, "through the link usr/way"),
     ({"usr/way": Path("/tmp"), "usr/way/no-folder": None}, "through the link usr/way")],
)  # fmt: skip
def test_what_does_not_fit_leaves_nothing_behind(
    trial: Trial, bad: dict[str, Member], words: str
) -> None:
    packages = PACKAGES | {"bad": pack(bad)}
    spec = trial.write(packages)
    keep(trial, packages)
    with pytest.raises(StorageError, match=words):
        trial.assemble(spec)
    assembled = trial.folder.parent / "cache" / "roots" / "assembled"
    assert list(assembled.iterdir()) == []
    assert not (trial.folder.parent / "out").exists()


def test_a_damaged_package_of_the_cache_is_downloaded_again(
    trial: Trial, spec: RootSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = locked("more", PACKAGES["more"])
    file = package_file(trial.folder.parent / "cache" / "roots" / "packages", more)
    file.write_bytes(PACKAGES["more"][::-1])
    with serving() as mirror:
        mirror.add((more, PACKAGES["more"]))
        monkeypatch.setenv(MIRROR_VARIABLE, f"{mirror.address}/debian")
        trial.assemble(spec)
    assert file.read_bytes() == PACKAGES["more"]
    assert len(mirror.asked) == 1


def test_two_at_once_assemble_it_once(trial: Trial, spec: RootSpec) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(trial.assemble, [spec, spec])
    assert first == second
    assert sum("unpacking" in said for said in trial.said) == 1


def test_a_package_that_is_nowhere_is_named(trial: Trial) -> None:
    with pytest.raises(MissingError, match=r"base 1\.0: the mirror: .*\n.*more 1\.0"):
        trial.assemble(trial.write(PACKAGES))


def test_the_digest_of_the_lock_is_that_of_the_root(trial: Trial, spec: RootSpec) -> None:
    root = trial.assemble(spec)
    keep(trial, PACKAGES, "other")
    trial.write(PACKAGES, LEFT_OUT, root.digest)
    assert trial.assemble(spec, "other").digest == root.digest


def test_a_root_of_another_digest_than_the_lock_says_is_refused(trial: Trial) -> None:
    spec = trial.write(PACKAGES, LEFT_OUT, "0" * 64)
    keep(trial, PACKAGES)
    with pytest.raises(StorageError, match=rf"to the digest [0-9a-f]{{64}}, .* says {'0' * 64}"):
        trial.assemble(spec)
    assert list((trial.folder.parent / "cache" / "roots" / "assembled").iterdir()) == []


NEWER = {"base": "usr/newer", "extra": "usr/extra"}


@pytest.fixture
def moved_on(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """A mirror that has another version of ``base``, which needs ``extra``, and ``more``."""
    data = {name: pack({path: name}) for name, path in NEWER.items()}
    offers = [(locked("base", data["base"], version="2.0"), data["base"], "Depends: extra, more\n"),
              (locked("extra", data["extra"], version="3.0"), data["extra"], ""),
              (locked("more", PACKAGES["more"]), PACKAGES["more"], "")]  # fmt: skip
    monkeypatch.setattr(release, "verify_release", lambda data, address: data.decode())
    with serving(publish({"stable": offers})) as mirror:
        monkeypatch.setenv(MIRROR_VARIABLE, f"{mirror.address}/debian")
        yield mirror


LINE = (
    "2 of 3 packages are newer than the lock: base 1.0 -> 2.0, extra absent -> 3.0"
)  # fmt: skip


def test_the_newest_takes_the_place_of_what_is_gone(trial: Trial, moved_on: Mirror) -> None:
    spec = trial.write(PACKAGES, LEFT_OUT, "0" * 64)  # the digest of the lock is not its own
    root = trial.assemble(spec)
    assert root.newer == LINE
    assert set(look(root)) == {"newer", "extra", "bin/more", "share/text"}
    asked = len(moved_on.asked)
    trial.said.clear()
    assert trial.assemble(spec) == root == find_root(spec, trial.folder.parent / "cache")
    assert trial.said == [f"root small: {LINE}"]
    assert len(moved_on.asked) == asked


def test_what_comes_to_be_had_again_is_preferred(trial: Trial, moved_on: Mirror) -> None:
    spec = trial.write(PACKAGES, LEFT_OUT)
    newer = trial.assemble(spec)
    keep(trial, PACKAGES)
    with locked_only():
        exact = trial.assemble(spec)
    assert exact.newer == ""
    assert exact.digest != newer.digest
    assert exact.usr != newer.usr
    assert trial.assemble(spec) == exact


def test_locked_names_all_that_is_missing_and_who_was_asked(
    trial: Trial, moved_on: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = trial.write(PACKAGES | {"third": b"3"}, LEFT_OUT)
    monkeypatch.setenv(download.SNAPSHOT_VARIABLE, f"{moved_on.address}/old")
    with locked_only(), pytest.raises(MissingError) as caught:
        trial.assemble(spec)
    first, third, asked = str(caught.value).splitlines()
    assert first.startswith("root small, only as locked: base 1.0: the mirror: 404 Not Found; ")
    assert third.startswith("third 1.0: the mirror: 404 Not Found; the archive of old versions: ")
    assert f"{moved_on.address}/debian" in asked
    assert f"{moved_on.address}/old/archive/debian/20261124T120000Z" in asked
    assert not (trial.folder.parent / "cache" / "roots" / "assembled").exists()


def test_a_lock_of_what_nobody_offers_is_said_with_both_reasons(
    trial: Trial, moved_on: Mirror
) -> None:
    spec = trial.write({"nowhere": b"1", "neither": b"2"})
    with pytest.raises(MissingError) as caught:
        trial.assemble(spec)
    said = str(caught.value)
    assert "nowhere 1.0: the mirror: 404 Not Found\nasked: the mirror (" in said
    assert said.endswith("neither 1.0: nothing newer is offered\nnowhere 1.0: nothing newer is "
                         "offered")  # fmt: skip


def test_a_package_that_has_moved_to_another_path_is_the_very_same(
    trial: Trial, moved_on: Mirror
) -> None:
    spec = trial.write({"more": PACKAGES["more"]}, digest="0" * 64)
    text = spec.lock_file.read_text()
    spec.lock_file.write_text(text.replace("pool/main", "pool/updates/main"))
    with pytest.raises(StorageError, match="to the digest"):
        trial.assemble(spec)
    spec.lock_file.write_text(spec.lock_file.read_text().replace(f'digest = "{"0" * 64}"\n', ""))
    root = trial.assemble(spec)
    assert root.newer == ""
    assert set(look(root)) == {"bin/more", "share/text"}
