"""Parts of the cache: built once and whole, or not at all; damaged, copied, of another user."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.errors import EXIT_MISSING
from tests.open_folder import open_folder
from tests.small_machine import SmallMachine, make_small_machine


@pytest.fixture
def machine(tmp_path: Path) -> SmallMachine:
    return make_small_machine(tmp_path)


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.01)


BUILD = """\
#!/bin/sh
echo built >>"$1/count"
: >"$2/half"
: >"$1/started"
while [ ! -e "$1/go" ]; do sleep 0.01; done
: >"$2/whole"
"""


def start_build(machine: SmallMachine) -> list[str]:
    script = machine.home / "build"
    script.write_text(BUILD)
    script.chmod(0o755)
    body = f"open_cache; find_part demo key; ensure_part Demo 1 {script} {machine.home}"
    return ["bash", "-c", f"set -euo pipefail; source {machine.tree}/bootstrap/main.sh; {body}"]


def test_a_kill_in_the_middle_leaves_no_half_part(machine: SmallMachine) -> None:
    argv = start_build(machine)
    with proc.started(argv, env=machine.environment) as child:
        wait_for(machine.home / "started")
        child.send_signal(signal.SIGKILL)  # the script; its builder goes with it
    assert [path.name[:5] for path in (machine.cache / "demo").iterdir()] == [".new-"]
    (machine.home / "go").touch()
    assert machine.run(*argv).returncode == 0
    (part,) = (machine.cache / "demo").iterdir()
    assert (part / "whole").exists()


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.usefixtures("not_below_nohup")
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_the_work_and_leaves_nothing(
    machine: SmallMachine, number: signal.Signals
) -> None:
    log = machine.home / "log"
    with (
        log.open("wb") as stderr,
        proc.started(start_build(machine), env=machine.environment, stderr=stderr) as child,
    ):
        wait_for(machine.home / "started")
        child.send_signal(number)
        assert child.wait(30) == 130
    assert log.read_text().splitlines()[1:] == ["firstflight: interrupted"]
    assert list((machine.cache / "demo").iterdir()) == []
    (machine.home / "go").touch()  # nobody is left to see it
    assert machine.run(*start_build(machine)).returncode == 0
    assert (machine.home / "count").read_text() == "built\nbuilt\n"


def test_what_takes_long_is_told_again_and_again(machine: SmallMachine) -> None:
    messages = machine.tree / "bootstrap" / "messages.sh"
    messages.write_text(messages.read_text().replace("TELL_EVERY_S=15", "TELL_EVERY_S=1"))
    log = machine.home / "log"
    with (
        log.open("wb") as stderr,
        proc.started(start_build(machine), env=machine.environment, stderr=stderr) as child,
    ):
        deadline = time.monotonic() + 60
        while log.read_text().count(" so far, usually 1 s in all; log: ") < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        (machine.home / "go").touch()
        assert child.wait(30) == 0
    first, *_ = log.read_text().splitlines()
    kept = machine.cache / "logs" / "demo.log"
    assert first == f"firstflight: Demo: building, about 1 s; log: {kept}"
    assert str(kept) in log.read_text().splitlines()[1]


def damage_start(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def damage_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def damage_rights(path: Path) -> None:
    path.chmod(0o400)


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        (damage_start, "venv/*/pyvenv.cfg"),
        (damage_middle, "venv/*/pyvenv.cfg"),
        (damage_rights, "venv/*/pyvenv.cfg"),
        (Path.unlink, "venv/*/pyvenv.cfg"),
    ],
)
def test_a_damaged_part_is_built_again_and_that_is_said(
    machine: SmallMachine, damage: Callable[[Path], None], name: str
) -> None:
    machine.shell("bootstrap kernel")
    (path,) = machine.cache.glob(name)
    before = (path.read_bytes(), path.stat().st_mode)
    damage(path)
    done = machine.shell("bootstrap kernel")
    assert done.returncode == 0
    said = [line for line in done.stderr.splitlines() if "building" in line]
    assert said[0].startswith(
        f"firstflight: Python environment: building again: {path.name} is damaged or gone, about "
    )
    assert len(said) == 1
    assert (path.read_bytes(), path.stat().st_mode) == before
    assert machine.shell("bootstrap kernel").stderr == ""


def test_a_link_that_leads_elsewhere_is_damage(machine: SmallMachine) -> None:
    machine.shell("bootstrap python")
    (link,) = machine.cache.glob("venv/*/bin/python")
    link.unlink()
    link.symlink_to("/usr/bin/false")
    assert "again: bin/python is damaged or gone" in machine.shell("bootstrap python").stderr
    assert link.readlink() == Path("/usr/bin/python3")


def test_a_copied_cache_and_an_added_file_are_no_damage(machine: SmallMachine) -> None:
    machine.shell("bootstrap kernel")
    for path in machine.cache.rglob("*"):
        if path.is_file() and not path.is_symlink() and ".contents" not in path.parts:
            os.utime(path, (1, 1))
    (part,) = machine.cache.glob("venv/*")
    (part / "extra").touch()
    (machine.cache / "venv" / "extra").mkdir()
    done = machine.shell("bootstrap kernel")
    assert [line for line in done.stderr.splitlines() if "building" in line] == []
    listing = (part / ".contents" / "listing").read_text()
    assert "./extra" in listing  # what is there now is what the next start looks for
    assert machine.shell("bootstrap kernel").stderr == ""


def test_what_is_looked_for_does_not_depend_on_the_order_of_a_folder(machine: SmallMachine) -> None:
    machine.shell("bootstrap kernel")
    (part,) = machine.cache.glob("venv/*")
    lines = (part / ".contents" / "listing").read_text().splitlines()
    assert len(lines) > 1 and lines == sorted(lines)


@pytest.fixture
def open_machine() -> Iterator[SmallMachine]:
    """A machine whose files every user can read."""
    with open_folder() as home:
        yield make_small_machine(home)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="another user takes root")
def test_parts_of_another_user_are_used_and_what_they_lack_is_said(
    open_machine: SmallMachine,
) -> None:
    machine = open_machine
    machine.shell("bootstrap kernel")
    logs = machine.cache / "logs"
    for folder in (machine.cache, logs, machine.cache / "venv"):
        folder.chmod(0o777)
    listing = next(machine.cache.glob("venv/*")) / ".contents" / "listing"
    listing.write_text("of a copy that has other times\n")
    stranger = "setpriv --reuid=1000 --regid=1000 --clear-groups bash -c"
    script = f"set -euo pipefail; source {machine.tree}/bootstrap/main.sh; bootstrap"
    done = machine.run(*stranger.split(), f"{script} programs")
    assert (done.returncode, done.stderr) == (0, "")
    (listing.parent / "sha256").unlink()
    done = machine.run(*stranger.split(), f"{script} programs")
    assert done.returncode == EXIT_MISSING
    assert f"cannot write {machine.cache}/bootstrap.lock, which is another user's" in done.stderr
    (machine.cache / "bootstrap.lock").unlink()
    done = machine.run(*stranger.split(), f"{script} programs")
    assert done.returncode == EXIT_MISSING
    assert f"cannot write {logs}/venv.log, which is another user's" in done.stderr


@pytest.mark.parametrize("text", ["", "/gone", "/usr/bin/true\n"])
def test_a_damaged_note_of_the_kernel_is_written_anew(machine: SmallMachine, text: str) -> None:
    machine.shell("bootstrap kernel")
    (note,) = (machine.cache / "kernels").glob("found-*")
    whole = note.read_text()
    note.write_text(text)
    done = machine.shell("bootstrap kernel")
    assert (done.returncode, done.stderr, note.read_text()) == (0, "", whole)


def test_a_kernel_that_changed_is_built_again(machine: SmallMachine) -> None:
    machine.shell("bootstrap kernel")
    (kernel,) = machine.home.glob("built/linux")
    before = kernel.read_bytes()
    damage_start(kernel)
    assert "virtual kernel: ready" in machine.shell("bootstrap kernel").stderr
    assert kernel.read_bytes() == before


def test_two_bootstraps_at_once_build_once(machine: SmallMachine) -> None:
    argv = start_build(machine)
    log = machine.home / "second"
    with proc.started(argv, env=machine.environment) as first:
        wait_for(machine.home / "started")
        with (
            log.open("wb") as stderr,
            proc.started(argv, env=machine.environment, stderr=stderr) as second,
        ):
            deadline = time.monotonic() + 120
            while "waiting for another bootstrap" not in log.read_text():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            (machine.home / "go").touch()
            assert (first.wait(120), second.wait(120)) == (0, 0)
    assert (machine.home / "count").read_text() == "built\n"


def test_every_part_is_built_under_the_lock(machine: SmallMachine) -> None:
    for name in ("build-venv.sh", "build-js.sh"):
        path = machine.tree / "bootstrap" / name
        note = f"flock -n {machine.cache}/bootstrap.lock true || echo {name} >> {machine.home}/held"
        path.write_text(path.read_text().replace("\n", f"\n{note}\n", 1))
    machine.shell("bootstrap kernel requirements-dev")
    held = (machine.home / "held").read_text().split()
    environments = ["build-venv.sh"] * 2  # that of the tests, and that of the artifact's papers
    assert sorted(held) == ["build-js.sh", *environments]
