"""The jail: what its command says, and what a program inside can see, change and outlive."""

from __future__ import annotations

import os
import pwd
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.errors import MissingError
from testbed.base.places import ROOT
from testbed.kernel.run.jail import (
    FIRST_ID,
    LAST_ID,
    GuestFiles,
    jail_argv,
    jail_user,
    may_administer,
    open_stage,
    read_jail_problem,
)
from testbed.kernel.run.memory import MEMORY_VARIABLE, GuestMemory
from testbed.kernel.run.sandbox import ORPHANED, confined_argv

DEADLINE_S = 60.0
PARENT = """\
import sys, tempfile
from pathlib import Path
from testbed.kernel.run.sandbox import confined
from testbed.base import proc
from testbed.kernel.run.jail import GuestFiles, open_stage
contents = GuestFiles(*(Path(word) for word in sys.argv[2:6]), usr=Path("/usr"))
jailed = sys.argv[1] == "jailed"
with open_stage(contents, jailed) as stage, tempfile.TemporaryFile() as output:
    argv = (*stage.prefix, "/usr/bin/sleep", sys.argv[6])
    started = (
        confined(argv, output, pass_fds=stage.descriptors) if jailed
        else proc.started(argv, cwd=stage.directory)
    )
    with started as child:
        child.wait()
"""


@pytest.fixture
def contents(tmp_path: Path) -> GuestFiles:
    """A shell in place of the kernel, and folders with a file in each."""
    kernel = tmp_path / "kernel"
    shutil.copy("/bin/sh", kernel)
    folders = [tmp_path / name for name in ("bundle", "page", "out")]
    for folder in folders:
        folder.mkdir()
        (folder / "file").write_text(f"{folder.name}\n")
    return GuestFiles(kernel, *folders, usr=Path("/usr"))


def inside(contents: GuestFiles, script: str, *, jailed: bool = True) -> str:
    """What ``script`` prints, errors included, when it runs in place of the guest's kernel."""
    with open_stage(contents, jailed) as stage:
        argv = (*stage.prefix, stage.kernel, "-c", f"exec 2>&1; {script}")
        return proc.run(
            argv,
            cwd=stage.directory,
            check=False,
            env=stage.environment,
            pass_fds=stage.descriptors,
        ).stdout


@pytest.mark.parametrize("user", [None, FIRST_ID])
def test_the_command(contents: GuestFiles, user: int | None) -> None:
    argv = jail_argv(contents, 7, user)
    assert argv[0] == "bwrap"
    assert argv[argv.index("--") + 1 :][:3] == ("/usr/bin/setsid", "--fork", "--wait")
    assert argv[argv.index("--seccomp") + 1] == "7"
    kept = [argv[i + 1] for i, word in enumerate(argv) if word == "--cap-add"]
    assert bool(kept) == (user is not None)
    assert (f"--reuid={user}" in argv) == (user is not None)
    for word in ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts",
                 "--die-with-parent", "--new-session", "--clearenv"):  # fmt: skip
        assert word in argv
    writable = [argv[i + 1 : i + 3] for i, word in enumerate(argv) if word == "--bind"]
    assert writable == [(str(contents.out), "/stage/out")]
    read_only = {argv[i + 2]: argv[i + 1] for i, word in enumerate(argv) if word == "--ro-bind"}
    assert read_only == {
        "/usr": "/usr",
        "/stage/linux": str(contents.kernel),
        "/stage/bundle": str(contents.bundle),
        "/stage/page": str(contents.page),
    }


def test_memory_is_lent_by_its_descriptor(contents: GuestFiles) -> None:
    assert MEMORY_VARIABLE not in jail_argv(contents, 7, None)
    argv = jail_argv(replace(contents, inherited={MEMORY_VARIABLE: 9}), 7, None)
    at = argv.index(MEMORY_VARIABLE)
    assert argv[at - 1 : at + 2] == ("--setenv", MEMORY_VARIABLE, "9")
    assert argv.index("--clearenv") < at < argv.index("--")


@pytest.mark.usefixtures("jail")
def test_lent_memory_is_open_inside(contents: GuestFiles) -> None:
    memory = GuestMemory(1 << 20)
    os.pwrite(memory.descriptor, b"lent", 0)
    script = f'head -c 4 "/proc/self/fd/${MEMORY_VARIABLE}"'
    lent = replace(contents, inherited={MEMORY_VARIABLE: memory.descriptor})
    assert inside(lent, script) == "lent"


@pytest.mark.usefixtures("jail")
@pytest.mark.parametrize("path", ["/home", "/root", "/etc/passwd", "/etc/hosts", "/run", "/var"])
def test_the_hosts_files_are_not_there(contents: GuestFiles, path: str) -> None:
    assert "No such file" in inside(contents, f"ls {path}")


@pytest.mark.usefixtures("jail")
def test_what_is_there(contents: GuestFiles) -> None:
    listed = inside(contents, "ls -A / /stage /tmp; ls -A /home | wc -l").split("\n\n")
    assert listed[0].split()[1:] == [
        "bin",
        "dev",
        "lib",
        "lib64",
        "proc",
        "sbin",
        "stage",
        "tmp",
        "usr",
    ]
    assert listed[1].split()[1:] == ["bundle", "linux", "out", "page", "uml", "usr"]
    assert listed[2].splitlines()[0] == "/tmp:"
    assert inside(contents, "cat bundle/file page/file out/file") == "bundle\npage\nout\n"


@pytest.mark.usefixtures("jail")
def test_no_network_but_its_own_loopback(contents: GuestFiles) -> None:
    lines = inside(contents, "cat /proc/net/dev").splitlines()[2:]
    assert [line.split(":")[0].strip() for line in lines] == ["lo"]
    assert len(inside(contents, "cat /proc/net/route").splitlines()) == 1


@pytest.mark.usefixtures("jail")
def test_no_environment_and_no_other_process(
    contents: GuestFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "x")
    names = {line.split("=")[0] for line in inside(contents, "env").splitlines()}
    assert names == {"TMPDIR", "PWD"}
    commands = inside(contents, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert str(os.getpid()) not in inside(contents, "echo /proc/[0-9]*")
    assert "pytest" not in commands


@pytest.mark.usefixtures("jail")
def test_only_out_can_be_written(contents: GuestFiles) -> None:
    assert inside(contents, "echo new > out/made; mkdir out/folder; rm out/file") == ""
    assert (contents.out / "made").read_text() == "new\n"
    assert sorted(path.name for path in contents.out.iterdir()) == ["folder", "made"]
    for path in ("bundle/file", "page/file", "/usr/bin/env"):
        said = inside(contents, f"echo x >> {path}")
        assert "Read-only file system" in said or "Permission denied" in said, path
    for path in ("bundle/new", "page/new", "/usr/new"):
        said = inside(contents, f"mkdir {path}")
        assert "Read-only file system" in said or "Permission denied" in said, path


@pytest.mark.parametrize("kind", ["jailed", "plain"])
def test_it_ends_with_its_parent(
    contents: GuestFiles, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if kind == "jailed":
        request.getfixturevalue("jail")
    mark = f"86400.{os.getpid()}{kind == 'jailed':d}"
    paths = (contents.kernel, contents.bundle, contents.page, contents.out)
    argv = (sys.executable, "-c", PARENT, kind, *map(str, paths), mark)
    env = {**os.environ, "TMPDIR": str(tmp_path)}  # a killed parent leaves its stage
    with proc.started(argv, cwd=ROOT, env=env) as parent:
        await_that(lambda: bool(sleeping(mark)))
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait(DEADLINE_S)
        # Not by the group: the child leads one of its own.
        await_that(lambda: not sleeping(mark))


def test_without_a_jail_the_stage_looks_the_same(contents: GuestFiles) -> None:
    listed = inside(contents, "ls -A; cat bundle/file page/file out/file", jailed=False)
    folders = ["bundle", "out", "page", "uml", "usr"]
    assert listed.split() == [*folders, "bundle", "page", "out"]


def test_without_a_jail_the_stage_is_removed(contents: GuestFiles) -> None:
    with pytest.raises(KeyError), open_stage(contents, jailed=False) as stage:
        assert stage.directory is not None
        assert stage.directory.is_dir()
        folder = stage.directory
        (folder / "uml" / "left").write_text("x")
        raise KeyError
    assert not folder.exists()
    assert (contents.out / "file").read_text() == "out\n"


def test_root_gives_each_slot_an_id_that_nobody_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("testbed.kernel.run.jail.may_administer", lambda _status: True)
    taken = {FIRST_ID, FIRST_ID + 2}

    def find(number: int) -> int:
        if number not in taken:
            raise KeyError
        return number

    monkeypatch.setattr(pwd, "getpwuid", find)
    assert [jail_user(slot) for slot in range(2)] == [FIRST_ID + 1, FIRST_ID + 3]
    assert jail_user(10**6) not in taken
    taken.update(range(FIRST_ID, LAST_ID + 1))
    with pytest.raises(MissingError, match="run as an ordinary user"):
        jail_user(0)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert jail_user(0) is None


@pytest.mark.parametrize(("capabilities", "may"), [("00000000a80425fb", False), ("200000", True)])
def test_root_needs_a_capability_to_become_another(capabilities: str, may: bool) -> None:
    assert may_administer(f"CapPrm:\t1ffffffffff\nCapEff:\t{capabilities}\n") == may


def test_a_jail_has_no_more_than_its_caller(
    contents: GuestFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--nproc=1024" in jail_argv(contents, 7, None)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (5, 5))
    argv = jail_argv(contents, 7, None)
    assert "--nproc=5" in argv
    assert "--core=0" in argv


def test_a_machine_without_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "bwrap" in (read_jail_problem() or "")


def test_a_machine_that_refuses_the_jail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert read_jail_problem() == "bwrap: No permissions to create new namespace"


@pytest.mark.usefixtures("jail")
def test_nothing_begins_in_a_jail_whose_harness_is_gone(contents: GuestFiles) -> None:
    def run(harness_lives: bool) -> tuple[int, str]:
        told, alive, held = os.open("/dev/null", os.O_WRONLY), *os.pipe()
        try:
            if not harness_lives:
                os.close(held)
            with open_stage(contents, jailed=True) as stage:
                command = (*stage.prefix, stage.kernel, "-c", "echo begun")
                argv = confined_argv(command, told, alive)
                passed = (told, alive, *stage.descriptors)
                done = proc.run(argv, check=False, pass_fds=passed)
            return done.returncode, done.stdout
        finally:
            for descriptor in (told, alive, *((held,) if harness_lives else ())):
                os.close(descriptor)

    assert run(harness_lives=True) == (0, "begun\n")
    assert run(harness_lives=False) == (ORPHANED, "")


def test_a_machine_whose_jail_does_not_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A filter that lets calls seem to succeed leaves bubblewrap waiting for what never comes."""
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\nexec sleep 600\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("testbed.kernel.run.jail.PROBE_S", 0.1)
    assert read_jail_problem() == "bwrap did not end within 0.1 s"


def sleeping(mark: str) -> list[int]:
    """Processes of this machine that sleep for ``mark`` seconds."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"/usr/bin/sleep", mark.encode()]:
            found.append(int(path.parent.name))
    return found


def await_that(happens: Callable[[], bool]) -> None:
    """Poll until it does."""
    deadline = time.monotonic() + DEADLINE_S
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.02)
