"""The host kernel: how its trials end, and that none of them leaves a trace on the host."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from testbed.base import proc
from testbed.base.errors import MissingError
from testbed.base.places import ROOT
from testbed.kernel.run import host
from testbed.kernel.run.enclosure import OWN_SYSCTLS, SEALED, EnclosureFiles, enclosure_argv
from testbed.kernel.run.host import HostKernel, named_browser, open_host, probe_host, tag_of
from testbed.kernel.run.interface import InterruptedTrial, RawResult
from testbed.model import Condition, Trial
from testbed.root.cache import Root
from testbed.setup.clean import find_leftovers
from tests.kernel.host_state import await_that, read_holders, read_host_state

TRIAL = Trial(Condition("p", "graph"), 0, 0, "host", os.uname().release)
RUNNER = """\
import sys, threading
from pathlib import Path
from testbed.kernel.run import host
from tests.kernel.run.test_host import TRIAL
host.await_idle = lambda cancel: True
bundle, page, out, usr = map(Path, sys.argv[1:])
host.HostKernel("1", bundle, usr, {}).run(TRIAL, page, out, 0, threading.Event())
"""

pytestmark = [
    pytest.mark.machine,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="the host kernel needs root"),
]


class Room:
    """A bundle whose trial does what it is ordered to, a page, and folders to leave things in."""

    def __init__(self, folder: Path, usr: Path) -> None:
        self.usr = usr
        self.folder, self.bundle, self.page = folder, folder / "bundle", folder / "page"
        (self.bundle / "etc" / "fonts").mkdir(parents=True)
        self.page.mkdir()
        self.program = self.bundle / "testbed" / "runner" / "host_entry.py"
        self.program.parent.mkdir(parents=True)
        shutil.copy(Path(__file__).with_name("hosted.py"), self.program)
        self.kernel = HostKernel("1", self.bundle, usr, {"build": "b"})

    def out(self, name: str = "out") -> Path:
        """An empty folder for a trial."""
        made = self.folder / name
        made.mkdir()
        return made

    def run(
        self, orders: str, out: Path, slot: int = 0, cancel: threading.Event | None = None
    ) -> RawResult:
        """Run the trial."""
        (self.bundle / "orders").write_text(orders)
        try:
            return self.kernel.run(TRIAL, self.page, out, slot, cancel or threading.Event())
        finally:
            self.ended_s = now_s()


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Root) -> Room:
    monkeypatch.setattr(host, "await_idle", lambda cancel: not cancel.is_set())
    return Room(tmp_path, root.usr)


def seen(out: Path) -> dict[str, Any]:
    """What the trial saw and made, as soon as it has made all."""
    await_that((out / "seen.json").exists)
    found: dict[str, Any] = json.loads((out / "seen.json").read_text())
    return found


def now_s() -> float:
    """The clock that the starts of processes are told by."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def is_gone(out: Path, ended_s: float) -> bool:
    """Whether nobody is left in the namespaces of a trial that had ended by then."""
    made = seen(out)
    assert not Path("/tmp", f"{made['tag']}scratch").exists()
    # By their own pid namespace, which no process can change: those of other tests come and go in
    # network namespaces, whose numbers are used again.
    return not read_holders(made["spaces"]["pid"], "pid", ended_s)


def test_a_trial_that_ends_well(room: Room) -> None:
    out, before = room.out(), read_host_state()
    raw = room.run("", out, slot=3)
    assert (raw.status, raw.console_tail) == ("ended", "")
    assert raw.observation == out / "observation.json"
    assert raw.cost is not None
    assert raw.cost.virtual_s == 1.5
    assert 0 < raw.cost.cpu_s < 60
    assert seen(out)["tag"] == tag_of(os.getpid(), 3)
    assert not (out / "link").is_symlink()
    assert read_host_state() == before
    assert is_gone(out, room.ended_s)


def test_nothing_of_the_caller_is_seen(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "x")
    out = room.out()
    room.run("", out)
    assert set(seen(out)["environment"]) - {"PWD", "LC_CTYPE"} == set(host.environment_of(None))


def test_a_trial_that_fails(room: Room) -> None:
    out, before = room.out(), read_host_state()
    raw = room.run("fail", out)
    assert (raw.status, raw.observation) == ("failed", None)
    assert raw.message == "the trial left no observation (status 1)"
    assert raw.console_tail == "it went wrong"
    assert read_host_state() == before
    assert is_gone(out, room.ended_s)


def test_a_trial_without_an_end(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "SETUP_S", 1.5 - TRIAL.timeout_s)
    out, before = room.out(), read_host_state()
    wait = proc.wait

    def wait_from_when_it_hangs(*given: Any) -> proc.ProcessExit | None:
        seen(out)
        return wait(*given)

    monkeypatch.setattr(proc, "wait", wait_from_when_it_hangs)
    raw = room.run("hang", out)
    assert (raw.status, raw.cost) == ("timeout", None)
    assert raw.message == "the trial did not end within 1.5 s"
    assert read_host_state() == before
    assert is_gone(out, room.ended_s)


def test_an_interrupt_ends_it(room: Room) -> None:
    out, before, cancel = room.out(), read_host_state(), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(room.run, "hang", out, 0, cancel)
        seen(out)
        cancel.set()
        with pytest.raises(InterruptedTrial):
            running.result()
    assert read_host_state() == before
    assert is_gone(out, room.ended_s)


def test_kill_9_of_the_runner_leaves_nothing_even_to_clean(room: Room, tmp_path: Path) -> None:
    out, before = room.out(), read_host_state()
    (room.bundle / "orders").write_text("hang")
    argv = (sys.executable, "-c", RUNNER, str(room.bundle), str(room.page), str(out), str(room.usr))
    with proc.started(argv, cwd=ROOT) as runner:
        seen(out)
        assert not is_gone(out, now_s())
        os.kill(runner.pid, signal.SIGKILL)
        runner.wait()
        ended_s = now_s()
        await_that(lambda: is_gone(out, ended_s))
    assert read_host_state() == before
    assert find_leftovers(tmp_path / "no-cache", tmp_path) == []


def test_two_at_once_do_not_meet(room: Room) -> None:
    outs, before = [room.out("one"), room.out("two")], read_host_state()
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(room.run, "meet", out, slot) for slot, out in enumerate(outs)]
        both = [seen(out) for out in outs]
        for out in outs:
            (out / "go").touch()
        assert [each.result().status for each in running] == ["ended", "ended"]
    assert both[0]["tag"] != both[1]["tag"]
    for kind in ("net", "pid", "mnt"):
        assert both[0]["spaces"][kind] != both[1]["spaces"][kind]
    assert read_host_state() == before


def test_its_identity_tells_machines_apart(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(host.BROWSER_VARIABLE, raising=False)
    opened = open_host(os.uname().release, room.bundle, room.usr)
    found = opened.identity()
    assert (found["name"], found["version"]) == ("host", os.uname().release)
    assert (found["build"], found["link"]) == (os.uname().version, "tap")
    assert {"processor", "processors", "mitigations", "clock"} < set(found)


def test_a_version_that_does_not_run(room: Room) -> None:
    with pytest.raises(MissingError, match=f"the host kernel is {os.uname().release}, not 2.4"):
        open_host("2.4", room.bundle, room.usr)


def test_a_kernel_without_a_feature(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = {"problem": "no CONFIG_TUN", "scheduler": "fifo"}
    monkeypatch.setattr(host, "probe_host", lambda _bundle, _usr: problem)
    with pytest.raises(MissingError, match="no CONFIG_TUN"):
        open_host(os.uname().release, room.bundle, room.usr)


def test_a_machine_that_refuses_the_enclosure(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: Creating new namespace failed' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(MissingError, match=r"Creating new namespace failed.*--kernel virtual"):
        probe_host(room.bundle, room.usr)


def test_a_browser_outside_usr_can_be_run_by_the_client(room: Room, tmp_path: Path) -> None:
    folder = tmp_path / "opt" / "chrome"
    folder.mkdir(parents=True)
    browser = folder / "chrome"
    browser.write_text("#!/bin/sh\necho me\n")
    browser.chmod(0o755)
    assert named_browser(str(browser)) == browser
    room.program.write_text(
        "import json, os, subprocess\n"
        f"os.environ['{host.BROWSER_VARIABLE}']\n"
        "user = ['setpriv', '--reuid=1000', '--regid=1000', '--clear-groups']\n"
        f"said = subprocess.run([*user, '{browser}'], capture_output=True, check=True).stdout\n"
        "open('/ff/out/observation.json', 'w').write(json.dumps({'virtual_s': len(said)}))\n"
    )
    room.kernel = HostKernel("1", room.bundle, room.usr, {}, browser)
    raw = room.run("", room.out())
    assert raw.status == "ended", raw.console_tail
    assert raw.cost is not None
    assert raw.cost.virtual_s == 3


def test_a_browser_that_is_not_there() -> None:
    assert named_browser(None) is None
    with pytest.raises(MissingError, match="/no/chrome: no such program"):
        named_browser("/no/chrome")


def test_a_browser_that_the_roots_files_would_hide(tmp_path: Path) -> None:
    link = tmp_path / "chrome"
    link.symlink_to("/usr/bin/true")
    with pytest.raises(MissingError, match=r"true is below /usr.*copy the browser's folder"):
        named_browser(str(link))


CLIENT = ("setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "--no-new-privs")
OWN = {
    # Devices that keep nothing, terminals of the enclosure's own, its /tmp.
    *(f"/dev/{name}" for name in ("full", "null", "random", "tty", "urandom", "zero")),
    *("/dev/pts/ptmx", "/tmp"),
    # What a process may say of itself; ids are mapped in a user namespace of its own only.
    *(f"/proc/N/{task}{name}" for task in ("", "task/N/")
      for name in ("attr/current", "attr/exec", "attr/fscreate", "attr/keycreate",
                   "attr/sockcreate", "clear_refs", "comm", "fd", "gid_map", "loginuid", "mem",
                   "oom_adj", "oom_score_adj", "projid_map", "sched", "setgroups", "uid_map")),
    *(f"/proc/N/{name}" for name in ("autogroup", "coredump_filter", "map_files", "timens_offsets",
                                     "timerslack_ns")),
}  # fmt: skip


def list_writable(room: Room, prefix: tuple[str, ...] = ()) -> set[str]:
    """What a process in an enclosure may write, by access(2); process ids are N."""
    shutil.copy(Path(__file__).with_name("writable.py"), room.bundle)
    for path in (room.folder, *room.bundle.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    given = EnclosureFiles(room.bundle, room.usr, room.page, room.out())
    python = ("/usr/bin/python3", "-I", "-S", "/ff/bundle/writable.py")
    argv = (*enclosure_argv(given, {"PATH": "/usr/bin"}), *prefix, *python)
    return set(json.loads(proc.run(argv).stdout))


def test_what_a_client_can_write(room: Room) -> None:
    found = list_writable(room, CLIENT)
    assert found <= OWN
    assert {"/dev/null", "/proc/N/uid_map"} <= found


def test_root_of_an_enclosure_writes_no_setting_of_the_machine(room: Room) -> None:
    found = list_writable(room)
    settings = {path for path in found if path.startswith("/proc/sys/")}
    assert settings
    assert {path for path in settings if not path.startswith("/proc/sys/net/")} <= {OWN_SYSCTLS}
    sealed = {
        path for path in found for tree in SEALED if path == tree or path.startswith(f"{tree}/")
    }
    assert sealed - settings == set()
    assert "/ff/out" in found
    assert not {path for path in found if path.startswith(("/usr", "/ff/bundle", "/ff/page"))}
