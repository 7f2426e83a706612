"""Guests of the virtual kernel: their command line, and the ways in which they end."""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from testbed.base import proc
from testbed.base.seeding import system_call_ns
from testbed.kernel.run import sandbox
from testbed.kernel.run.interface import InterruptedTrial
from testbed.kernel.run.jail import JAIL, NONE
from testbed.kernel.run.sandbox import CONSOLE_FILE
from testbed.kernel.run.virtual import VirtualKernel, boot_once, command_line
from testbed.model import Condition, Trial
from tests.kernel.guests import Guests

LEAVE = "leave(seen=1)"
GONE_S = 60.0


def test_the_command_line_depends_on_seed_and_options_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = command_line(3, ("seccomp=on",))
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CACHE_HOME", "PATH"):
        monkeypatch.setenv(name, "/elsewhere")
    assert command_line(3, ("seccomp=on",)) == first
    assert command_line(4, ("seccomp=on",)) != first
    assert "seccomp=on" in first
    assert "seccomp=on" not in command_line(3, ())


def test_no_path_of_the_host_is_on_the_command_line() -> None:
    words = command_line(0, ())
    assert not [word for word in words if " " in word]
    paths = [word.partition("=")[2] for word in words if "=/" in word]
    assert paths == ["/dev/root", "/proc/self/cwd/bundle/native", "/proc/self/cwd/uml/", "/init"]


def test_every_seed_is_one_of_the_kernels() -> None:
    # 0 would mean no seed at all.
    assert "tt-seed=1" in command_line(0, ())
    assert "tt-seed=20" in command_line(19, ())


def test_a_system_call_costs_what_the_seed_draws() -> None:
    assert not [word for word in command_line(3, ()) if "tt-syscall-ns" in word]
    words = command_line(3, (), "computing")
    assert f"tt-syscall-ns={system_call_ns(3)}" in words


def test_identity_is_that_of_the_build_and_the_command_line() -> None:
    build, boot = {"source": "x"}, ("seccomp=on",)
    kernel = VirtualKernel("7.3", Path("/a"), build, boot, Path("/b"), Path("/r"), JAIL)
    other = VirtualKernel("7.3", Path("/c"), build, boot, Path("/d"), Path("/s"), NONE)
    line = " ".join(command_line(0, ("seccomp=on",), "computing"))
    assert kernel.identity() == other.identity() == {"source": "x", "command_line": line}


@pytest.mark.guest
def test_the_console_shows_warnings_of_which_nothing_depends(guests: Guests) -> None:
    """They are of a level that ``quiet`` hides, and the word that shows it is no identity."""
    raw, out = guests.run("open('/dev/kmsg', 'w').write('<4>WARNING: planted'); " + LEAVE)
    assert raw.status == "ended", raw
    lines = (out / CONSOLE_FILE).read_text().splitlines()
    assert [line.partition("] ")[2] for line in lines if "planted" in line] == ["WARNING: planted"]


@pytest.mark.guest
@pytest.mark.parametrize("confinement", [JAIL, NONE])
def test_a_guest_that_ends(guests: Guests, confinement: str) -> None:
    raw, out = guests.run(LEAVE, confinement=confinement)
    assert (raw.status, raw.message, raw.console_tail) == ("ended", "", ""), raw
    assert raw.observation == out / "observation.json"
    assert json.loads(raw.observation.read_text()) == {"virtual_s": 1.5, "seen": 1}
    assert raw.cost is not None
    assert raw.cost.virtual_s == 1.5
    assert 0 < raw.cost.cpu_s < 20
    assert raw.cost.wall_s > 0
    assert still_running(guests.binary) == []


@pytest.mark.guest
def test_what_a_guest_sees_is_the_same_jailed_or_not(guests: Guests, tmp_path: Path) -> None:
    program = """\
    import os, platform, time
    commands = Path("/proc/cmdline").read_text()
    leave(
        root=sorted(os.listdir("/")), ff=sorted(os.listdir("/ff")), etc=sorted(os.listdir("/etc")),
        environment=dict(os.environ), commands=commands, now=time.time_ns(), pid=os.getpid(),
        random=os.urandom(16).hex(), memory=Path("/proc/meminfo").read_text().split()[1],
    )
    """
    seen = []
    for number, confinement in enumerate((JAIL, NONE, JAIL)):
        each = replace(guests, folder=tmp_path / str(number))
        each.folder.mkdir()
        seen.append(each.observe(program, confinement=confinement))
    assert seen[0] == seen[1] == seen[2]
    assert seen[0]["ff"] == ["bundle", "out", "page"]
    assert "HOME" in seen[0]["environment"]
    assert "home" not in seen[0]["root"]


@pytest.mark.guest
def test_what_a_guest_sees_is_the_same_in_used_memory(guests: Guests, tmp_path: Path) -> None:
    program = """\
    import os, time
    Path("/tmp/filled").write_bytes(b"x" * (32 << 20))
    leave(
        random=os.urandom(16).hex(), now=time.time_ns(), mine=id(object()),
        memory=Path("/proc/meminfo").read_text().splitlines()[:2],
    )
    """
    kernel, trial = guests.kernel(program), Trial(Condition("p", "c"), 0, 0, "virtual", "7.3", 60.0)
    (tmp_path / "page").mkdir()
    seen = []
    for number in range(2):
        out = tmp_path / f"out-{number}"
        out.mkdir()
        raw = kernel.run(trial, tmp_path / "page", out, 0, threading.Event())
        assert raw.observation is not None, raw
        seen.append(json.loads(raw.observation.read_text()))
    assert seen[0] == seen[1]
    memory = kernel.memories.lend()
    assert os.fstat(memory.descriptor).st_blocks * 512 > 32 << 20


@pytest.mark.guest
def test_where_addresses_are_random_a_guest_has_memory_of_its_own(
    guests: Guests, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = guests.kernel("leave()")
    monkeypatch.setattr("testbed.kernel.run.virtual.has_fixed_addresses", lambda: False)
    (guests.folder / "page").mkdir()
    (guests.folder / "out").mkdir()
    trial = Trial(Condition("p", "c"), 0, 0, "virtual", "7.3", 60.0)
    raw = kept.run(trial, guests.folder / "page", guests.folder / "out", 0, threading.Event())
    assert raw.status == "ended", raw
    assert os.fstat(kept.memories.lend().descriptor).st_blocks == 0  # was lent to nobody


@pytest.mark.guest
def test_only_out_can_be_written(guests: Guests) -> None:
    program = """\
    said = {}
    for place in ("/usr", "/ff/bundle", "/ff/page", "/etc/fonts", "/ff/out", "/tmp"):
        try:
            Path(place, "new").write_text("x")
            said[place] = "written"
        except OSError as error:
            said[place] = error.strerror
    leave(said=said)
    """
    said = guests.observe(program)["said"]
    closed = ("/usr", "/ff/bundle", "/ff/page", "/etc/fonts")
    read_only = dict.fromkeys(closed, "Read-only file system")
    assert said == {**read_only, "/ff/out": "written", "/tmp": "written"}
    assert (guests.folder / "out" / "new").read_text() == "x"
    assert not Path("/usr/new").exists()


@pytest.mark.guest
def test_idle_time_is_skipped(guests: Guests) -> None:
    program = """\
    import time
    before = time.monotonic_ns()
    time.sleep(3600)
    leave(slept_ns=time.monotonic_ns() - before)
    """
    assert abs(guests.observe(program)["slept_ns"] - 3600 * 10**9) < 1_000_000


@pytest.mark.nightly(but="jail")
@pytest.mark.guest
@pytest.mark.parametrize("confinement", [JAIL, NONE])
def test_a_busy_loop_is_a_timeout(guests: Guests, confinement: str) -> None:
    for timeout_s in (3, 30, 300):  # a busy machine may not have it up within the first
        folder = guests.folder / str(timeout_s)
        folder.mkdir()
        raw, _ = replace(guests, folder=folder).run(
            "print('before', flush=True)\nwhile True: pass",
            timeout_s=timeout_s,
            confinement=confinement,
        )
        assert raw.message == f"the guest did not end within {timeout_s} s"
        if "before" in raw.console_tail:
            break
    assert raw.status == "timeout"
    assert raw.console_tail.splitlines()[-1] == "before"
    assert (raw.cost, raw.observation) == (None, None)
    assert still_running(guests.binary) == []


@pytest.mark.guest
@pytest.mark.parametrize("confinement", [JAIL, NONE])
def test_a_panicking_guest(guests: Guests, confinement: str) -> None:
    program = """\
    leave(seen=1)
    Path("/proc/sys/vm/panic_on_oom").write_text("2")
    hoard = []
    while True:
        hoard.append(b"x" * (64 << 20))
    """
    raw, _ = guests.run(program, confinement=confinement)
    assert (raw.status, raw.message) == ("panicked", "the guest's kernel panicked")
    assert "Kernel panic" in raw.console_tail
    assert raw.observation is None
    assert still_running(guests.binary) == []


@pytest.mark.guest
def test_a_guest_that_fails(guests: Guests) -> None:
    raw, _ = guests.run("raise KeyError('what went wrong')")
    assert raw.status == "failed"
    assert raw.message.startswith("the guest left no observation")
    assert "KeyError: 'what went wrong'" in raw.console_tail
    assert "the program ended with status 1" in raw.console_tail


@pytest.mark.guest
@pytest.mark.parametrize("confinement", [JAIL, NONE])
def test_a_cancelled_guest(guests: Guests, confinement: str) -> None:
    kernel = guests.kernel("while True: pass", confinement=confinement)
    page, out, cancel = guests.folder / "page", guests.folder / "out", threading.Event()
    page.mkdir()
    out.mkdir()
    trial = Trial(Condition("p", "c"), 0, 0, "virtual", "7.3", 600.0)
    timer = threading.Timer(1.0, cancel.set)
    timer.start()
    with pytest.raises(InterruptedTrial, match=trial.id):
        kernel.run(trial, page, out, 0, cancel)
    assert still_running(guests.binary) == []


@pytest.mark.guest
@pytest.mark.parametrize("confinement", [JAIL, NONE])
def test_what_a_hostile_guest_leaves_is_plain_files_of_the_caller(
    guests: Guests, confinement: str
) -> None:
    program = """\
    import os, shutil, socket
    shutil.copyfile("/usr/bin/env", "/ff/out/program")
    os.chmod("/ff/out/program", 0o6755)
    os.close(os.open("/ff/out/setuid", os.O_WRONLY | os.O_CREAT, 0o6755))
    print("said", flush=True)
    os.unlink("/ff/out/console.log")
    def link(name):
        os.symlink("/etc/passwd", name)
    for make in (link, os.mkfifo, os.mkdir, socket.socket(socket.AF_UNIX).bind):
        for name in ("/ff/out/console.log", f"/ff/out/{make.__name__}"):
            try:
                make(name)
            except OSError:
                pass
    raise SystemExit("no observation")
    """
    raw, out = guests.run(program, confinement=confinement)
    assert raw.status == "failed"
    assert "said" in raw.console_tail
    assert "root:" not in raw.console_tail
    assert sorted(path.name for path in out.iterdir()) == ["program", "setuid", "trial.json"]
    for path in (out, *out.iterdir()):
        found = path.lstat()
        assert (found.st_uid, found.st_gid) == (os.geteuid(), os.getegid())
        assert found.st_mode & 0o7777 == (0o755 if path == out else 0o644)


@pytest.mark.guest
def test_a_guest_that_fills_the_disk_is_ended(
    guests: Guests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "MOST_BYTES", 1 << 20)
    program = """\
    with open("/ff/out/large", "wb") as file:
        while True:
            file.write(bytes(1 << 20))
            os.fsync(file.fileno())
    """
    raw, _ = guests.run("import os\n" + dedent(program))
    assert (raw.status, raw.message) == ("failed", "the guest left more than 1.0 MiB")
    assert still_running(guests.binary) == []


def still_running(binary: Path) -> list[str]:
    """Processes that run ``binary`` a moment later (what is killed needs one to be gone)."""
    deadline = time.monotonic() + GONE_S
    while found := running(binary):
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    return found


def running(binary: Path) -> list[str]:
    """Processes that run ``binary``, in a jail or not."""
    found = []
    for path in Path("/proc").glob("[0-9]*/exe"):
        try:
            if os.path.samestat(path.stat(), binary.stat()):
                found.append(path.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.guest
def test_a_built_kernel_boots(guests: Guests) -> None:
    boot = guests.boot_options
    found = boot_once("7.3", guests.binary, boot, guests.init, guests.usr, confinement=JAIL)
    assert found.problem is None
    assert found.sysctls["net.ipv4.tcp_sack"] == "1"
    assert found.other_defaults() == {}


def test_a_kernel_that_dies_is_reported_with_its_console(tmp_path: Path) -> None:
    init = tmp_path / "init"
    init.touch()
    binary, source = tmp_path / "linux", tmp_path / "linux.c"
    source.write_text(
        "#include <stdio.h>\n"
        'int main(void) { puts("ptrace set fp regs failed, errno = 14"); return 1; }\n'
    )
    proc.run(("gcc", "-static", "-o", str(binary), str(source)))
    reported = boot_once("6.1", binary, (), init, tmp_path, confinement=JAIL).problem
    assert reported is not None
    assert "does not boot" in reported
    assert "ptrace set fp regs failed, errno = 14" in reported
