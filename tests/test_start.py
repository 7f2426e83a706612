"""The start on a machine that has nothing: the locked Python, by whatever programs are there."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess  # noqa: TID251 - only the type of what proc returns

import pytest

from firstflight.start import is_store_elsewhere
from testbed.base import places, proc
from testbed.root.lock import read_lock
from testbed.root.spec import read_spec
from testbed.setup.python_packages import RUN, ensure_packages, interpreter, packages_place
from tests.web import serving_folder

NEEDED = ("bash", "cat", "cut", "dirname", "env", "flock", "head", "mkdir", "mv", "readlink", "rm",
          "sed", "sh", "sha256sum", "sort", "tail", "tar", "timeout", "tr", "uname", "wc", "chmod",
          "mktemp", "true")  # fmt: skip
"""What each system has."""
DOWNLOADERS = ("curl", "wget", "python3", "bash")
LOCK = read_lock(read_spec("python").lock_file)
KEPT = places.cache() / "roots" / "packages"


@dataclass
class Bare:
    """A machine with few programs, and a mirror on loopback."""

    home: Path
    mirror: str
    more: dict[str, str] = field(default_factory=dict)

    @property
    def cache(self) -> Path:
        return self.home / "cache" / "firstflight"

    def start(self, *words: str, tree: Path = places.ROOT) -> CompletedProcess[str]:
        """``./run.sh WORDS``."""
        environment = {
            "PATH": str(self.home / "bin"),
            "HOME": str(self.home),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "FIRSTFLIGHT_DEBIAN_MIRROR": self.mirror,
        }
        argv = (str(tree / "run.sh"), *words)
        return proc.run(argv, env=environment | self.more, check=False, timeout_s=300)


def make_bare(home: Path, programs: tuple[str, ...], mirror: str) -> Bare:
    """A PATH with what each system has and ``programs``, and nothing else."""
    (home / "bin").mkdir(parents=True)
    for name in {*NEEDED, *programs}:
        found = shutil.which(name, path="/usr/bin:/bin")
        assert found is not None, name
        (home / "bin" / name).symlink_to(found)
    return Bare(home, mirror)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of the lock as a mirror has them."""
    folder = tmp_path_factory.mktemp("mirror")
    for package in LOCK.packages:
        kept = KEPT / f"{package.sha256}.deb"
        assert kept.is_file(), "the tests themselves were started so"
        place = folder / package.archive / package.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(kept)
    return folder


@pytest.fixture(scope="module")
def mirror(archive: Path) -> Iterator[str]:
    with serving_folder(archive) as address:
        yield f"{address}/debian"


@pytest.mark.nightly(but="^(curl|bash)$")
@pytest.mark.parametrize("downloader", DOWNLOADERS)
def test_a_bare_machine_answers(tmp_path: Path, mirror: str, downloader: str) -> None:
    unpacker = () if downloader == "python3" else ("xz",)
    bare = make_bare(tmp_path / "home", (downloader, *unpacker), mirror)
    done = bare.start("--version")
    assert (done.returncode, done.stdout) == (0, f"{places.describe_version()}\n"), done.stderr
    assert (
        done.stderr == f"firstflight: Python: {len(LOCK.packages)} packages, the first time only\n"
    )
    again = bare.start("--version")
    assert (again.returncode, again.stderr) == (0, "")
    assert [path.name for path in (bare.cache / "python").iterdir()] == [
        next((bare.cache / "python").iterdir()).name
    ]


def test_help_and_typing_errors_take_no_package(tmp_path: Path, mirror: str) -> None:
    bare = make_bare(tmp_path / "home", ("curl", "xz"), mirror)
    helped = bare.start("run", "--help")
    assert helped.returncode == 0
    assert helped.stdout.startswith("Usage: ./run.sh run")
    wrong = bare.start("comapre")
    assert wrong.returncode == 2
    assert "did you mean 'compare'?" in wrong.stderr
    assert not (bare.cache / "venv").exists()


def test_a_path_with_a_space_and_a_link_to_the_script(tmp_path: Path, mirror: str) -> None:
    bare = make_bare(tmp_path / "home", ("curl", "xz"), mirror)
    tree = tmp_path / "a tree"
    tree.symlink_to(places.ROOT)
    assert bare.start("--version", tree=tree).returncode == 0


def test_packages_that_are_nowhere_are_all_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with serving_folder(tmp_path / "empty") as address:
        bare = make_bare(tmp_path / "home", ("curl", "xz"), f"{address}/debian")
        done = bare.start("run")
    assert done.returncode == 3
    for package in LOCK.packages:
        assert package.path in done.stderr
    assert "./run.sh import FILE" in done.stderr
    assert [path.name for path in (tmp_path / "home/cache/firstflight/python").iterdir()] == []


def test_a_wrong_package_is_named_and_not_kept(tmp_path: Path, archive: Path) -> None:
    folder = tmp_path / "mirror"
    shutil.copytree(archive, folder, symlinks=True)
    wrong = LOCK.packages[0]
    (folder / wrong.archive / wrong.path).unlink()
    (folder / wrong.archive / wrong.path).write_bytes(b"x" * wrong.size)
    with serving_folder(folder) as address:
        bare = make_bare(tmp_path / "home", ("curl", "xz"), f"{address}/debian")
        done = bare.start("run")
    assert done.returncode == 3
    assert f"{wrong.path}: its SHA-256 is not that of the lock" in done.stderr
    kept = {path.name for path in (bare.cache / "roots" / "packages").iterdir()}
    assert kept == {f"{package.sha256}.deb" for package in LOCK.packages[1:]}


def test_an_archive_of_old_versions_is_asked_after_the_mirror(tmp_path: Path) -> None:
    bare = make_bare(tmp_path / "home", ("curl", "xz"), "http://127.0.0.1:9/debian")
    bare.more = {"FIRSTFLIGHT_DEBIAN_ARCHIVE": "http://127.0.0.1:9/old"}
    done = bare.start("run")
    assert done.returncode == 3
    for package in LOCK.packages:
        assert f"http://127.0.0.1:9/debian/{package.path}:" in done.stderr
        assert f"http://127.0.0.1:9/old/archive/debian/{LOCK.taken}/{package.path}:" in done.stderr


@pytest.mark.parametrize("name", ["two words", "a:b"])
def test_a_cache_that_no_kernel_could_be_built_in_is_refused(tmp_path: Path, name: str) -> None:
    bare = make_bare(tmp_path / "home", (), "")
    bare.more = {"XDG_CACHE_HOME": str(tmp_path / name)}
    done = bare.start("run")
    assert done.returncode == 3
    assert "holds a space or a colon" in done.stderr
    bare.more = {"XDG_CACHE_HOME": "relative"}
    assert "must be an absolute path" in bare.start("run").stderr


def test_git_bisect_is_told_apart_what_ends_it(tmp_path: Path) -> None:
    bare = make_bare(tmp_path / "home", (), "http://127.0.0.1:9/debian")
    bare.more = {"XDG_CACHE_HOME": "relative"}
    assert bare.start("kernel", "bisect-step").returncode == 128 + 3


def test_another_machine_is_refused_by_its_name(tmp_path: Path) -> None:
    bare = make_bare(tmp_path / "home", ("curl", "xz"), "http://127.0.0.1:9/debian")
    (tmp_path / "home" / "bin" / "uname").unlink()
    (tmp_path / "home" / "bin" / "uname").write_text("#!/bin/sh\necho Linux aarch64\n")
    (tmp_path / "home" / "bin" / "uname").chmod(0o755)
    done = bare.start("run")
    assert done.returncode == 3
    assert "this machine is Linux aarch64" in done.stderr


def test_two_at_once_both_start(tmp_path: Path, mirror: str) -> None:
    bare = make_bare(tmp_path / "home", ("curl", "xz"), mirror)
    results: list[int] = []
    threads = [
        threading.Thread(target=lambda: results.append(bare.start("--version").returncode))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [0, 0]
    assert len(list((bare.cache / "python").iterdir())) == 1


@pytest.mark.usefixtures("not_below_nohup")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    bare = make_bare(tmp_path / "home", ("xz",), "http://127.0.0.1:9/debian")
    waits = tmp_path / "home" / "bin" / "curl"
    waits.write_text(f"#!/bin/sh\n: >{tmp_path}/begun\nexec sleep 60\n")
    waits.chmod(0o755)
    (tmp_path / "home" / "bin" / "sleep").symlink_to("/usr/bin/sleep")
    environment = {
        "PATH": str(tmp_path / "home" / "bin"),
        "XDG_CACHE_HOME": str(tmp_path / "home" / "cache"),
        "FIRSTFLIGHT_DEBIAN_MIRROR": bare.mirror,
    }
    with proc.started((str(places.ROOT / "run.sh"), "run"), env=environment) as child:
        while not (tmp_path / "begun").exists():
            assert child.poll() is None
        os.killpg(child.pid, number)
        assert child.wait(60) == 130
    assert list((bare.cache / "python").iterdir()) == []


@pytest.mark.parametrize(
    ("store", "elsewhere"),
    [
        ("", False),
        ("none", False),
        ("s3://bucket/x", True),
        ("ssh://host/x", True),
        ("file:///x", False),
        ("/x", False),
    ],
)
def test_a_store_may_be_elsewhere(store: str, elsewhere: bool) -> None:
    assert is_store_elsewhere({"FIRSTFLIGHT_STORE": store}) is elsewhere
    assert not is_store_elsewhere({})


@pytest.mark.nightly
@pytest.mark.parametrize("address", ["s3://bucket/x", "ssh://127.0.0.1/x"])
def test_a_store_elsewhere_takes_packages_that_are_named(address: str, tmp_path: Path) -> None:
    """The start goes on with a run's own packages, and the verb says what they lack."""
    kept = places.cache()
    (tmp_path / "firstflight").mkdir()
    for name in ("python", "roots"):
        (tmp_path / "firstflight" / name).symlink_to(kept / name)
    (tmp_path / "firstflight" / "venv").mkdir()
    ours = packages_place(RUN, kept)
    (tmp_path / "firstflight" / "venv" / ours.name).symlink_to(ensure_packages(RUN, kept, print))
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "FIRSTFLIGHT_STORE": address}
    argv = (str(places.ROOT / "run.sh"), "store", "list")
    done = proc.run(argv, env=environment, check=False, timeout_s=600)
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    assert f"FIRSTFLIGHT_STORE={address}: " in done.stderr
    assert "make many-machines installs" in done.stderr


def test_this_process_runs_on_what_the_start_unpacked() -> None:
    assert Path(interpreter()).is_relative_to(places.cache().resolve() / "python") or Path(
        interpreter()
    ).is_relative_to(places.cache() / "python")
