"""The jail: what its command says, what is given to a program inside, and how both end."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.errors import MissingError
from testbed.base.places import ROOT
from testbed.kernel.run import jail
from testbed.kernel.run.jail import (
    FIRST_ID,
    LAST_ID,
    SHARED_MEMORY,
    GuestFiles,
    Hold,
    Stage,
    _claimed,
    core_of,
    has_id,
    jail_user,
    jailed,
    may_become_another,
    open_stage,
    read_hold,
)
from testbed.kernel.run.memory import MEMORY_VARIABLE, GuestMemory
from tests.kernel.host_state import await_that, list_named

LOADER = Path("/lib64/ld-linux-x86-64.so.2").resolve()
DEADLINE_S = 60.0
ORPHANED = 137
PYTHON = ("loader", "/usr/bin/python3", "-I", "-S", "-c")
PARENT = """\
import sys, tempfile
from pathlib import Path
from testbed.kernel.run.jail import GuestFiles, jailed, open_stage
from tests.kernel.run import inmate
mark, namespaces, *paths = sys.argv[1:]
if namespaces == "none":
    inmate.forbid_namespaces()
code = '''
import os, sys, time
for generation in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        break
while True:
    time.sleep(60)
'''
contents = GuestFiles(*map(Path, paths), usr=Path("/usr"))
with open_stage(contents) as stage, tempfile.TemporaryFile() as output:
    words = ("loader", "/usr/bin/python3", "-I", "-S", "-c", code, mark)
    with jailed(stage, words, output) as child:
        child.wait()
"""


@pytest.fixture
def contents(tmp_path: Path) -> GuestFiles:
    """The machine's loader in place of the kernel, which runs Python; folders with a file each."""
    folders = [tmp_path / name for name in ("bundle", "page", "out")]
    for folder in folders:
        folder.mkdir()
        (folder / "file").write_text(f"{folder.name}\n")
    return GuestFiles(LOADER, *folders, usr=Path("/usr"))


def run(stage: Stage, *words: str) -> proc.Completed:
    """Run ``words`` in place of the guest's kernel."""
    argv = (*stage.prefix, *words)
    return proc.run(argv, check=False, env=stage.environment, pass_fds=stage.descriptors)


def inside(contents: GuestFiles, program: str, *, landlock: int = 99) -> str:
    """What a Python ``program`` prints, errors included, inside."""
    with open_stage(contents, landlock=landlock) as stage:
        done = run(stage, *PYTHON, f"import os\n{program}")
    return done.stdout + done.stderr


def words_of(contents: GuestFiles, slot: int = 0) -> dict[str, list[str]]:
    """The options of the command."""
    with open_stage(contents, slot) as stage:
        options: dict[str, list[str]] = {}
        for word in stage.prefix[1:-1]:
            name, _, value = word.partition("=")
            options.setdefault(name, []).append(value)
        assert stage.prefix[-1] == "--"
        descriptors = {
            number
            for name in ("filter", "harness", "stage", "run", "read", "write", "lent")
            for value in options.get(name, [])
            for number in value.split(",")
        }
        assert {str(number) for number in stage.descriptors} == descriptors
    return options


def test_the_command_names_descriptors(contents: GuestFiles) -> None:
    options = words_of(contents)
    for name in ("filter", "harness", "stage", "kernel", "run", "read", "write", "cpu"):
        assert all(value.replace(",", "").isdigit() for value in options[name]), name
    assert "lent" not in options
    assert options["cpu"] == [str(core_of(0))]
    assert ("user" in options) == (os.geteuid() == 0)
    assert words_of(contents, slot=1)["cpu"] == [str(core_of(1))]


def test_slots_are_spread_over_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5, 1, 3})
    assert [core_of(slot) for slot in range(4)] == [1, 3, 5, 1]


@pytest.mark.usefixtures("jail")
def test_lent_memory_is_open_inside(contents: GuestFiles) -> None:
    memory = GuestMemory(1 << 20)
    os.pwrite(memory.descriptor, b"lent", 0)
    lent = replace(contents, inherited={MEMORY_VARIABLE: memory.descriptor})
    assert words_of(lent)["lent"] == [str(memory.descriptor)]
    program = f"print(os.pread(int(os.environ['{MEMORY_VARIABLE}']), 4, 0))"
    assert inside(lent, program) == "b'lent'\n"


@pytest.mark.parametrize("landlock", [99, 1, 0])
def test_the_stage_has_links_to_what_is_given(contents: GuestFiles, landlock: int) -> None:
    program = """\
for name in ("bundle", "page", "out"):
    print(open(name + "/file").read(), end="")
print(os.path.samefile("usr", "/usr"), os.path.samefile("uml", os.environ["TMPDIR"]))
"""
    assert inside(contents, program, landlock=landlock) == "bundle\npage\nout\nTrue True\n"
    program = "print(os.listdir('page'), os.path.samefile('page', 'bundle'))"
    assert inside(replace(contents, page=None), program, landlock=landlock) == "[] False\n"


@pytest.mark.usefixtures("jail")
def test_any_folder_may_be_the_user_land(contents: GuestFiles, tmp_path: Path) -> None:
    usr = tmp_path / "closed" / "usr"
    usr.mkdir(parents=True)
    (usr / "file").write_text("another\n" * 1000)
    usr.parent.chmod(0o700)
    # Without Python in it: the loader itself reads what it is to start.
    with open_stage(replace(contents, usr=usr)) as stage:
        done = run(stage, "loader", "/proc/self/cwd/usr/file")
        assert "invalid ELF header" in done.stderr
        done = run(stage, "loader", "/usr/bin/python3")
        assert "cannot open shared object file" in done.stderr


@pytest.mark.usefixtures("jail")
def test_the_environment_is_the_jails(
    contents: GuestFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "x")
    said = inside(contents, "print(sorted(os.environ))")
    assert said == "['GLIBC_TUNABLES', 'LC_CTYPE', 'TMPDIR']\n"


@pytest.mark.usefixtures("jail")
def test_only_out_can_be_written(contents: GuestFiles) -> None:
    program = """\
open("out/made", "w").write("new")
os.unlink("out/file")
os.rename("out/made", "out/renamed")
for name in ("bundle/file", "page/file", "bundle/new", "usr/new", "new", "/tmp/new"):
    try:
        open(name, "a")
        print(name)
    except PermissionError:
        pass
"""
    assert inside(contents, program) == ""
    assert (contents.out / "renamed").read_text() == "new"
    assert [path.name for path in contents.out.iterdir()] == ["renamed"]


def test_the_exit_status_is_the_kernels(contents: GuestFiles) -> None:
    with open_stage(contents) as stage:
        for code, status in (("os._exit(7)", 7), ("os.kill(os.getpid(), 9)", 137)):
            assert run(stage, *PYTHON, f"import os; {code}").returncode == status


@pytest.mark.parametrize("namespaces", ["namespaces", "none"])
def test_it_ends_with_its_parent(contents: GuestFiles, namespaces: str, tmp_path: Path) -> None:
    mark = f"mark-{os.getpid()}-{namespaces}"
    paths = (contents.kernel, contents.bundle, contents.page, contents.out)
    argv = (sys.executable, "-c", PARENT, mark, namespaces, *map(str, paths))
    env = {**os.environ, "TMPDIR": str(tmp_path)}  # a killed parent leaves its stage
    before = set(SHARED_MEMORY.iterdir())
    with proc.started(argv, cwd=ROOT, env=env) as parent:
        await_that(lambda: len(list_named(mark)) >= 5)  # the parent, the jail, three generations
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait(DEADLINE_S)
        # Not by the group: the jail leads one of its own.
        await_that(lambda: not list_named(mark))
    for folder in set(SHARED_MEMORY.iterdir()) - before:
        shutil.rmtree(folder)


def test_it_ends_with_its_outermost_process(contents: GuestFiles, tmp_path: Path) -> None:
    mark = f"mark-{os.getpid()}-outermost"
    with (
        open_stage(contents) as stage,
        (tmp_path / "said").open("wb") as output,
        jailed(stage, (*PYTHON, "import time; time.sleep(600)", mark), output) as child,
    ):
        await_that(lambda: len(list_named(mark)) >= 2)
        os.kill(child.pid, signal.SIGKILL)
        await_that(lambda: not list_named(mark))


def test_the_stage_is_removed(contents: GuestFiles) -> None:
    with pytest.raises(KeyError), open_stage(contents) as stage:
        (number,) = (word for word in stage.prefix if word.startswith("stage="))
        folder = Path(f"/proc/self/fd/{number.removeprefix('stage=')}").readlink()
        uml = (folder / "uml").resolve()
        (uml / "guest" / "left").write_text("x")
        raise KeyError
    assert not folder.exists()
    assert not uml.exists()
    assert (contents.out / "file").read_text() == "out\n"


def test_root_gives_each_slot_an_id_that_nobody_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("testbed.kernel.run.jail.may_become_another", lambda _status: True)
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


@pytest.mark.parametrize(
    ("capabilities", "may"),
    # Docker's; without that to kill; none.
    [("00000000a80425fb", True), ("00000000a80425db", False), ("0", False)],
)
def test_root_needs_capabilities_to_give_another_id(capabilities: str, may: bool) -> None:
    assert may_become_another(f"CapPrm:\t1ffffffffff\nCapEff:\t{capabilities}\n") == may


@pytest.mark.parametrize(
    ("id_map", "mapped"),
    [("         0          0 4294967295\n", True), ("         0       1000          1\n", False),
     ("         0       1000          1\n         1     100000      65536\n", True)],
)  # fmt: skip
def test_an_id_must_be_in_the_user_namespace(id_map: str, mapped: bool) -> None:
    assert has_id(id_map, FIRST_ID) == mapped


@pytest.mark.usefixtures("jail")
def test_a_jail_has_no_more_than_its_caller(contents: GuestFiles) -> None:
    program = "import resource; print(resource.getrlimit(resource.RLIMIT_FSIZE)[0])"
    with open_stage(contents) as stage:
        assert run(stage, *PYTHON, program).stdout == f"{2 << 30}\n"
        argv = ("prlimit", f"--fsize={1 << 20}", *stage.prefix, *PYTHON, program)
        done = proc.run(argv, env=stage.environment, pass_fds=stage.descriptors)
        assert done.stdout == f"{1 << 20}\n"


def test_nothing_begins_in_a_jail_whose_harness_is_gone(contents: GuestFiles) -> None:
    with open_stage(contents) as stage:
        reader, writer = os.pipe()
        (named,) = (word for word in stage.prefix if word.startswith("harness="))
        prefix = tuple(f"harness={reader}" if word == named else word for word in stage.prefix)
        other = replace(stage, prefix=prefix, descriptors=(*stage.descriptors, reader))
        words = (*PYTHON, "print('begun')")
        assert run(other, *words).stdout == "begun\n"
        os.close(writer)
        done = run(other, *words)
        os.close(reader)
    assert (done.returncode, done.stdout) == (ORPHANED, "")


def native(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put ``script`` in place of the jail's program."""
    fake = folder / "jail"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setattr(jail, "program_file", lambda: folder / "jail")


def test_a_machine_without_landlock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    native(tmp_path, "echo 'jail: Landlock, which is not there' >&2; exit 125", monkeypatch)
    with pytest.raises(MissingError, match="Landlock, which is not there"):
        read_hold()


def test_a_machine_whose_jail_does_not_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A filter that lets calls seem to succeed leaves it waiting for what never comes."""
    native(tmp_path, "exec sleep 600", monkeypatch)
    monkeypatch.setattr("testbed.kernel.run.jail.PROBE_S", 0.1)
    with pytest.raises(MissingError, match=r"^the jail did not end within 0\.1 s$"):
        read_hold()


@pytest.mark.usefixtures("jail")
def test_what_holds_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    hold = read_hold()
    assert hold.landlock >= 1
    assert read_hold(landlock=1) == replace(hold, landlock=1)
    assert read_hold(landlock=0) == replace(hold, landlock=0)


@pytest.mark.parametrize(
    ("hold", "signals"),
    [(Hold(1, namespaces=True, shares_user=True), True),
     (Hold(6, namespaces=False, shares_user=True), True),
     (Hold(5, namespaces=False, shares_user=True), False),
     (Hold(1, namespaces=False, shares_user=False), True)],
)  # fmt: skip
def test_what_holds_signals(hold: Hold, signals: bool) -> None:
    assert hold.signals == signals
    assert ("it can signal" in hold.describe()) == (not signals)
    assert f"Landlock {hold.landlock}" in hold.describe()


def test_guests_of_two_runs_share_neither_core_nor_id() -> None:
    with _claimed("test", iter((4, 5))) as first, _claimed("test", iter((4, 5))) as second:
        assert (first, second) == (4, 5)
        with _claimed("test", iter((4, 5))) as third:
            assert third == 4  # more guests than numbers: as before
    with _claimed("test", iter((4, 5))) as again:
        assert again == 4
