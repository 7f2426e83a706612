"""All that a jailed process can write, call and see, whoever started it; the list is closed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.base import proc
from testbed.base.sources import PACKAGE
from testbed.kernel.run.jail import FIRST_ID, LAST_ID, TMP_BYTES
from tests.open_folder import open_folder

USER = 1000
PROBE = Path(__file__).with_name("probe.py")
PYTHON = "/usr/bin/python3"
# Stands for the runner; plain Python, because another user may not reach this environment's.
RUNNER = """\
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from testbed.base import proc
from testbed.kernel.run.jail import GuestFiles, open_stage
folders = [Path(sys.argv[1]) / name for name in ("bundle", "page", "out")]
# A user that no guest of a run has: one test here takes all the processes that its user may have.
slot = 100 + os.getpid() % 300
contents = GuestFiles(Path("/usr/bin/env"), *folders, usr=Path("/usr"))
with open_stage(contents, jailed=True, slot=slot) as stage:
    argv = (*stage.prefix, stage.kernel, "/usr/bin/python3", "-I", "-S", *sys.argv[2:])
    done = proc.run(argv, pass_fds=stage.descriptors)
print(done.stdout)
"""
WRITABLE = {
    # Nobody keeps what is written there; bytes for the random pool do not count as entropy.
    "/dev/full", "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom",
    # Terminals of the jail's own, and the one of the process, which has none.
    "/dev/tty", "/dev/pts/ptmx",
    # Bounded, in memory, and gone with the jail.
    "/tmp", "/stage/uml",
    # The trial's own folder.
    "/stage/out",
}  # fmt: skip
NO_SUCH_CALL = "ENOSYS"
NARROWED = {
    *(f"clone {kind}" for kind in ("mount", "cgroup", "uts", "ipc", "user", "pid", "net")),
    "TIOCSTI", "TIOCLINUX", "TIOCSCTTY", "SIOCGIFCONF", "personality", "prlimit64 of another",
    "AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK",
}  # fmt: skip
Enter = Callable[..., dict[str, Any]]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user can reach, with the code that makes a jail and three folders."""
    with open_folder() as folder:
        # The rooms of the house that are imported.
        for name in (
            "__init__.py",
            "base",
            "kernel",
            "model",
        ):
            source, target = PACKAGE / name, folder / "testbed" / name
            target.parent.mkdir(exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copyfile(source, target)
        for name in ("bundle", "page", "out"):
            (folder / name).mkdir()
        shutil.copyfile(PROBE, folder / "bundle" / "probe.py")
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        yield folder


@pytest.fixture(
    params=[
        "this user",
        pytest.param("another user", marks=pytest.mark.root),
        pytest.param("root of a container", marks=pytest.mark.root),
    ],
)
def enter(request: pytest.FixtureRequest, place: Path) -> Enter:
    """Runs a Python program in a jail and returns what it reported; root is one of the callers."""
    prefix: tuple[str, ...] = ()
    if request.param != "this user" and os.geteuid() != 0:
        pytest.skip("only root can start a jail as somebody else")
    if request.param == "root of a container":
        prefix = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    if request.param == "another user":
        os.chown(place / "out", USER, USER)
        prefix = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups")

    def run(*words: str) -> dict[str, Any]:
        argv = (*prefix, PYTHON, "-B", "-c", RUNNER, str(place), *words)
        reported: dict[str, Any] = json.loads(proc.run(argv, cwd=place).stdout)
        return reported

    return run


@pytest.fixture
def seen(enter: Enter, request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the probe tells."""
    return enter("bundle/probe.py") | {"started by": request.node.callspec.params["enter"]}


def test_what_can_be_written(seen: dict[str, Any]) -> None:
    # The folder of an ordinary user's own terminals is that user's.
    assert set(seen["writable"]) - {"/dev/pts"} == WRITABLE


def test_what_can_be_called(seen: dict[str, Any]) -> None:
    calls = seen["calls"]
    assert {name for name, end in calls.items() if end == "EPERM"} == NARROWED
    assert {name: end for name, end in calls.items() if name not in NARROWED} == dict.fromkeys(
        calls.keys() - NARROWED, NO_SUCH_CALL
    )
    for name in ("mount", "keyctl", "bpf", "io_uring_setup", "open_by_handle_at", "unshare"):
        assert name in calls


def test_who_it_is(seen: dict[str, Any]) -> None:
    status = seen["status"]
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        # An ordinary user's bound is that of the user namespace, and of no use without the others.
        assert int(status[name][0], 16) == 0 or name == "CapBnd", name
    assert status["NoNewPrivs"] == ["1"]
    assert status["Seccomp"] == ["2"]
    if seen["started by"] != "root of a container":
        assert 0 not in seen["ids"]
    if seen["started by"] == "this user" and os.geteuid() == 0:
        assert FIRST_ID <= seen["ids"][0] <= LAST_ID
        assert len(set(seen["ids"])) == 1
        assert int(status["CapBnd"][0], 16) == 0


def test_what_it_can_reach(seen: dict[str, Any]) -> None:
    assert len(seen["processes"]) == 2  # the one that waits, and itself
    assert seen["interfaces"] == ["lo"]
    assert seen["sockets"] == []
    assert seen["suid mounts"] == []
    assert set(seen["descriptors"]) == {"0", "1", "2"}
    assert seen["descriptors"]["0"] == "/dev/null"
    assert seen["session"] == seen["processes"][1]


HOG = """
import errno, json, mmap, os, time

def refused(act):
    try:
        act()
    except OSError as error:
        return errno.errorcode[error.errno]
    return ""

def fill(path):
    with open(path, "wb", 0) as file:
        while file.write(bytes(1 << 16)):
            pass

def multiply():
    for _ in range(4096):
        if os.fork() == 0:
            time.sleep(60)

room = os.statvfs("/tmp")
private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
reported = {
    "a large file": refused(lambda: open("out/large", "w").truncate(3 << 30)),
    "files of the kernel": refused(lambda: fill("/stage/uml/large")),
    "private memory": refused(lambda: mmap.mmap(-1, 3 << 30, private)),
    "processes": refused(multiply),
    "shared memory": room.f_blocks * room.f_frsize,
}
print(json.dumps(reported))
"""


def test_how_much_it_can_take(enter: Enter, request: pytest.FixtureRequest) -> None:
    # The kernel bounds no processes of id 0 (fork(2)); a container bounds its own.
    root = request.node.callspec.params["enter"] == "root of a container"
    assert enter("-c", HOG) == {
        "a large file": "EFBIG",
        "files of the kernel": "ENOSPC",
        "private memory": "ENOMEM",
        "processes": "" if root else "EAGAIN",
        "shared memory": TMP_BYTES,
    }
