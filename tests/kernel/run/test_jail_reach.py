"""All that a jailed process can write, call and reach, whoever started it; the list is closed."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from testbed.base import proc
from testbed.base.sources import PACKAGE
from testbed.kernel.run.jail import FIRST_ID, LAST_ID, NEWEST, Hold, program_file
from tests.open_folder import open_folder

USER = 1000
BESIDE = Path(__file__).parent
PYTHON = "/usr/bin/python3"
CAP_KILL = 1 << 5
NO_SUCH_CALL = "ENOSYS"
NARROWED = {
    *(f"clone {kind}" for kind in ("mount", "cgroup", "uts", "ipc", "user", "pid", "net")),
    "TIOCSTI", "TIOCLINUX", "TIOCSCTTY", "SIOCGIFCONF", "personality", "prlimit64 of another",
    "F_SETLEASE", "F_NOTIFY", "pair of SOCK_DGRAM", "pair of SOCK_RAW",
}  # fmt: skip
OUTSIDE = (
    "/", "/dev", "/etc", "/home", "/proc", "/root", "/run", "/tmp", "/var/tmp", "/dev/shm",
    "/etc/passwd", "/etc/hostname", "/proc/version", "/proc/cpuinfo", "/proc/self/status",
    "/proc/self/mem", "/proc/sys/kernel/hostname", "/dev/tty", "/dev/zero", "/dev/ptmx",
)  # fmt: skip


@dataclass(frozen=True)
class Caller:
    """Who starts a jail, and what its machine lets that have."""

    who: str
    namespaces: bool = True
    landlock: int = NEWEST
    prefix: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        spaces = "" if self.namespaces else " without namespaces"
        return f"{self.who}{spaces}{f' Landlock {self.landlock}' if self.landlock < NEWEST else ''}"

    @property
    def is_another(self) -> bool:
        return self.who == "another user"


@dataclass(frozen=True)
class Jailer:
    """Runs Python programs in jails, below ``place``."""

    caller: Caller
    place: Path

    def run(self, *words: str) -> dict[str, Any]:
        prefix: tuple[str, ...] = ()
        if self.caller.who == "root of a container":
            prefix = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
        if self.caller.is_another:
            prefix = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
        named = "namespaces" if self.caller.namespaces else "none"
        argv = (
            *(*prefix, PYTHON, "-B", str(self.place / "inmate.py"), str(self.place)),
            *(str(self.caller.landlock), named, *words),
        )
        env = dict(os.environ)
        reported: dict[str, Any] = json.loads(proc.run(argv, cwd=self.place, env=env).stdout)
        return reported


CALLERS = [
    Caller("this user"), Caller("this user", namespaces=False, landlock=1), Caller("another user"),
    Caller("another user", namespaces=False), Caller("another user", namespaces=False, landlock=5),
    Caller("another user", namespaces=False, landlock=1), Caller("root of a container"),
]  # fmt: skip


@pytest.fixture(scope="module", params=CALLERS, ids=str)
def jailer(request: pytest.FixtureRequest) -> Iterator[Jailer]:
    """A folder that every user can reach, with the code that makes a jail and three folders."""
    caller: Caller = request.param
    if caller.who != "this user" and os.geteuid() != 0:
        pytest.skip("only root can start a jail as somebody else")
    with open_folder() as folder:
        # The rooms of the house that are imported.
        for name in ("__init__.py", "base", "kernel", "model"):
            source, target = PACKAGE / name, folder / "testbed" / name
            target.parent.mkdir(exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copyfile(source, target)
        for name in ("bundle", "page", "out", "native", "home"):
            (folder / name).mkdir()
        shutil.copyfile(BESIDE / "probe.py", folder / "bundle" / "probe.py")
        shutil.copyfile(BESIDE / "inmate.py", folder / "inmate.py")
        for path in (folder / "page" / "owned", folder / "home" / "owned"):
            path.write_text("precious")
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        shutil.copy(program_file(), folder / "native" / "jail")
        for path in (folder, *folder.rglob("*")):
            if caller.is_another:
                os.chown(path, USER, USER)
        yield Jailer(caller, folder)


def list_writable(place: Path) -> list[str]:
    """What anybody may write outside of a jail, where that is asked easily; and what is given."""
    found = ["out", "uml", "uml/guest", ".", "bundle", "bundle/probe.py", "page", "usr"]
    for top in (Path("/dev"), Path("/run"), Path("/proc/self"), place):
        for folder, _, names in os.walk(top):
            if "/task" in folder or "/fd" in folder:
                continue
            found += [folder, *(f"{folder}/{name}" for name in names)]
    return [*found, "/tmp", "/var/tmp", "/proc/sys/kernel/core_pattern", "/usr/bin", "/etc/passwd"]


@dataclass(frozen=True)
class Found:
    """What the probe tells, and what was seen of its processes from outside."""

    caller: Caller
    place: Path
    told: dict[str, Any]
    seen: dict[str, dict[str, str]]
    scratch: str
    outsider: int
    before: dict[str, os.stat_result]


@pytest.fixture(scope="module")
def found(jailer: Jailer) -> Iterator[Found]:
    """The probe's report; a process and a socket of the same user are there to be reached."""
    place, caller = jailer.place, jailer.caller
    owned = [str(place / "page" / "owned"), str(place / "home" / "owned")]
    as_user = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
    sleep = (*(as_user if caller.is_another else ()), "sleep", "600")
    with ExitStack() as undo:
        outsider = undo.enter_context(proc.started(sleep))
        listener = undo.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(place / "socket"))
        listener.listen()
        (place / "socket").chmod(0o777)
        asked = {
            "written": list_writable(place),
            "read": [*OUTSIDE, f"/proc/{outsider.pid}/environ", str(place / "home"), *owned[1:]],
            "owned": owned,
            "processes": [outsider.pid, os.getpid()],
            "socket": str(place / "socket"),
        }
        (place / "bundle" / "asked.json").write_text(json.dumps(asked))
        before = {path: Path(path).stat() for path in owned}
        ran = jailer.run("bundle/probe.py")
        said = ran["said"]
        assert said.startswith("{"), said
        yield Found(
            caller, place, json.loads(said), ran["seen"], ran["scratch"], outsider.pid, before
        )


def test_what_can_be_written(found: Found) -> None:
    out = str(found.place / "out")
    # What is given, by its path or by the stage; nobody keeps what comes into /dev/null.
    null = "/dev/null"
    written = {null if os.path.realpath(one) == null else one for one in found.told["writable"]}
    assert written == {"/dev/null", "out", out, "uml", "uml/guest"}
    assert sorted(path.name for path in (found.place / "out").iterdir()) == ["ready", "seen"]


def test_what_can_be_read(found: Found) -> None:
    assert found.told["readable"] == []
    assert found.told["executable"] == "EACCES"


def test_what_cannot_be_changed(found: Found) -> None:
    for path, before in found.before.items():
        after = Path(path).stat()
        assert Path(path).read_text() == "precious"
        for name in ("st_mode", "st_uid", "st_gid", "st_mtime_ns", "st_nlink", "st_ino"):
            assert getattr(after, name) == getattr(before, name), (path, name)
        ends = found.told["changes"][path]
        for name in ("chmod", "chown", "utime", "mkdir", "rmdir"):
            assert ends.pop(name) == ""  # it says that it was done
        assert not Path(f"{path}-folder").exists()
        assert "" not in ends.values(), ends


def test_what_can_be_called(found: Found) -> None:
    calls = found.told["calls"]
    assert {name for name, end in calls.items() if end == "EPERM"} == NARROWED
    assert {name: end for name, end in calls.items() if name not in NARROWED} == dict.fromkeys(
        calls.keys() - NARROWED, NO_SUCH_CALL
    )
    for name in ("mount", "keyctl", "bpf", "io_uring_setup", "open_by_handle_at", "socket"):
        assert name in calls


def test_who_it_is(found: Found) -> None:
    jail, *inside = found.seen.values()
    assert len(inside) == (2 if found.caller.namespaces and not is_contained(found) else 1)
    for status in found.seen.values():
        kept = CAP_KILL if not found.caller.is_another and status is jail else 0
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            assert int(status[name], 16) in {0, kept}, (status["Name"], name)
        # An ordinary user cannot lower the bound, which is of no use without the others.
        assert found.caller.is_another or int(status["CapBnd"], 16) in {0, kept}
        assert status["NoNewPrivs"] == "1"
    ours, ids = inside[-1], set(found.told["ids"])
    assert ours["Seccomp"] == "2"
    assert ours["Groups"] in {"", str(USER)}
    if found.caller.is_another:
        assert ids == {USER}
    elif os.geteuid() == 0:
        assert len(ids) == 1
        assert FIRST_ID <= ids.pop() <= LAST_ID


def is_contained(found: Found) -> bool:
    return found.caller.who == "root of a container"


def test_what_it_can_reach(found: Found) -> None:
    hold = Hold(min(found.caller.landlock, 7), found.caller.namespaces and not is_contained(found),
                found.caller.is_another or os.geteuid() != 0)  # fmt: skip
    for process, ends in found.told["processes"].items():
        signalled = ends.pop("signal") == ""
        # The one hole, and no jail says that it is closed: processes of the same user.
        assert signalled == (not hold.signals and int(process) == found.outsider)
        assert "" not in ends.values(), (process, ends)
    assert found.told["sent by an address"] in {"EISCONN", "EOPNOTSUPP"}


def test_what_it_finds(found: Found) -> None:
    told = found.told
    names = {"0": "/dev/null", "1": str(found.place / "said"), "2": str(found.place / "said")}
    kept = {path for number, path in told["descriptors"].items() if number not in names}
    assert {number: told["descriptors"][number] for number in names} == names
    given = {str(found.place / name) for name in ("bundle", "page", "out")}
    scratch = {found.scratch, f"{found.scratch}/guest"}
    pair = {path for path in kept if path.startswith("socket:")}
    assert kept - pair == {*given, *scratch, "/usr", "/dev/null"}
    assert told["environment"] == ["GLIBC_TUNABLES", "LC_CTYPE", "PROBE_ASKED", "TMPDIR"]
    assert told["session"]
    assert told["affinity"] == 1


def test_nothing_is_left(found: Found) -> None:
    assert not Path(found.scratch).exists()
    assert stat.S_ISDIR((found.place / "out").stat().st_mode)


HOG = """
import errno, json, mmap, os, time

def refused(act):
    try:
        act()
    except OSError as error:
        return errno.errorcode[error.errno]
    return ""

def multiply():
    for _ in range(4096):
        if os.fork() == 0:
            time.sleep(60)

private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
reported = {
    "a large file": refused(lambda: open("out/large", "w").truncate(3 << 30)),
    "private memory": refused(lambda: mmap.mmap(-1, 3 << 30, private)),
    "processes": refused(multiply),
}
print(json.dumps(reported))
"""


@pytest.mark.nightly(but="^(this user|another user) without")
def test_how_much_it_can_take(jailer: Jailer) -> None:
    assert json.loads(jailer.run("-c", HOG)["said"]) == {
        "a large file": "EFBIG", "private memory": "ENOMEM", "processes": "EAGAIN",
    }  # fmt: skip


LEAVE = """
import os, sys, time
for generation in range(8):
    if os.fork() == 0:
        os.setsid()
        for deeper in range(4):
            if os.fork():
                os._exit(0)
            os.setsid()
        while True:
            time.sleep(60)
print("left")
"""


# Chains in which each process starts the next one and ends at once.
FLEE = """
import os, time
for chain in range(20):
    if os.fork() == 0:
        os.setsid()
        while True:
            if os.fork():
                os._exit(0)
time.sleep(0.2)
print("left")
"""


@pytest.mark.parametrize("program", [LEAVE, FLEE], ids=["leave", "flee"])
def test_no_process_is_left(jailer: Jailer, program: str) -> None:
    mark = f"left-by-{os.getpid()}"
    ran = jailer.run("-c", program, mark)
    assert ran["said"] == "left\n"
    assert mark not in " ".join(
        path.read_bytes().decode(errors="replace")
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if path.parent.exists()
    )
