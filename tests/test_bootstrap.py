"""Bootstrap: what it installs and builds, what it refuses, and what a kill leaves behind."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from testbed import proc
from tests.small_machine import ROOT, SmallMachine, make_small_machine

UBUNTU = 'PRETTY_NAME="Ubuntu 24.04.1 LTS"\nID=ubuntu\nVERSION_ID="24.04"\n'
DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_ID="12"\n'


@pytest.fixture
def machine(tmp_path: Path) -> SmallMachine:
    return make_small_machine(tmp_path)


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.01)


def test_a_second_run_builds_nothing_and_says_nothing(machine: SmallMachine) -> None:
    run = str(machine.tree / "run.sh")
    first = machine.run(run, "doctor", "--json")
    for part in ("Python environment", "browser driver", "C programs", "virtual kernel"):
        assert f"{part}: ready" in first.stderr
    before = {path: path.stat().st_mtime_ns for path in machine.cache.rglob("*")}
    second = machine.run(run, "doctor", "--json")
    assert second.stderr == ""
    assert {path: path.stat().st_mtime_ns for path in machine.cache.rglob("*")} == before


def test_arguments_folder_and_status_pass_through(machine: SmallMachine) -> None:
    elsewhere = machine.home / "else where"
    elsewhere.mkdir()
    done = machine.run(str(machine.tree / "run.sh"), "run", "a b", "", cwd=elsewhere)
    assert done.stdout == f"{elsewhere}|run|a b|\n"
    assert done.returncode == 7


def test_modules_never_come_from_the_working_directory(machine: SmallMachine) -> None:
    (machine.home / "firstflight").mkdir()
    (machine.home / "firstflight" / "__main__.py").write_text("print('wrong')\n")
    done = machine.run(str(machine.tree / "run.sh"))
    assert done.stdout == f"{machine.home}\n"


def test_a_changed_lock_file_makes_another_environment(machine: SmallMachine) -> None:
    machine.shell("bootstrap runtime")
    (machine.tree / "bootstrap" / "requirements.txt").write_text("# something else\n")
    machine.shell("bootstrap runtime")
    assert len(list((machine.cache / "venv").iterdir())) == 2
    assert len(list((machine.cache / "native").iterdir())) == 1


def test_keys_do_not_depend_on_where_the_clone_is(machine: SmallMachine) -> None:
    machine.shell("bootstrap runtime")
    machine.tree.rename(machine.home / "moved")
    done = machine.run(str(machine.home / "moved" / "run.sh"))
    assert done.stderr == ""


def test_scripts_of_the_environment_name_its_final_folder(machine: SmallMachine) -> None:
    build = str(ROOT / "bootstrap" / "build-venv.sh")
    (machine.home / "lock").write_text("# nothing\n")
    final = machine.home / "final"
    done = machine.run(build, f"{machine.home}/lock", f"{machine.home}/.new-1", str(final))
    assert done.returncode == 0, done.stderr
    (machine.home / ".new-1").rename(final)
    assert proc.run([str(final / "bin" / "pip"), "--version"]).stdout.startswith("pip ")
    texts = [path.read_text() for path in (final / "bin").iterdir() if not path.is_symlink()]
    assert [text for text in texts if "/.new-1" in text] == []


def test_without_root_every_missing_package_is_in_one_message(machine: SmallMachine) -> None:
    machine.install("tcpdump", "wget2")
    machine.fake("id", "echo 1000")
    machine.fake("sudo", "exit 1")
    done = machine.run(str(machine.tree / "run.sh"))
    assert done.returncode == 3
    assert "missing Debian packages: tcpdump wget2\n" in done.stderr
    assert "apt-get install --no-install-recommends tcpdump wget2\n" in done.stderr
    assert not machine.cache.exists()


@pytest.mark.parametrize(("user", "wrapped"), [("0", ""), ("1000", "sudo ")])
def test_root_or_sudo_installs_what_is_missing(
    machine: SmallMachine, user: str, wrapped: str
) -> None:
    log = machine.home / "log"
    machine.install("tcpdump")
    machine.fake("id", f"echo {user}")
    machine.fake("sudo", f'shift; [ "$1" = true ] || printf "sudo " >>{log}; exec "$@"')
    installer = machine.tree / "bootstrap" / "install-packages.sh"
    installer.write_text(f'#!/bin/sh\necho "$@" >>{log}\n: >{machine.home}/installed\n')
    query = (machine.home / "bin" / "dpkg-query").read_text()
    machine.fake(
        "dpkg-query",
        f"{query}\nif [ -e {machine.home}/installed ]; then echo tcpdump installed 9; fi",
    )
    done = machine.shell('ensure_packages "$bootstrap/packages-debian-12.txt"')
    assert done.returncode == 0, done.stderr
    assert log.read_text() == f"{wrapped}tcpdump\n"


def test_a_package_that_is_too_old_is_missing(machine: SmallMachine) -> None:
    machine.fake("dpkg-query", 'for p in "$@"; do echo "$p installed 16.20"; done')
    machine.fake("id", "echo 1000")
    machine.fake("sudo", "exit 1")
    done = machine.shell('ensure_packages "$bootstrap/packages-debian-12.txt"')
    assert done.returncode == 3
    assert "missing Debian packages: nodejs\n" in done.stderr


@pytest.mark.parametrize(
    ("release", "architecture", "named"),
    [(UBUNTU, "x86_64", "Ubuntu 24.04.1 LTS"), (DEBIAN, "aarch64", "aarch64")],
)
def test_other_machines_are_refused_by_name(
    machine: SmallMachine, release: str, architecture: str, named: str
) -> None:
    file = machine.home / "os-release"
    file.write_text(release)
    done = machine.shell(f"check_machine {file} {architecture}")
    assert done.returncode == 3
    assert named in done.stderr


def test_an_untried_system_can_be_asked_for(machine: SmallMachine) -> None:
    file = machine.home / "os-release"
    file.write_text(UBUNTU)
    machine.environment["FIRSTFLIGHT_UNTRIED"] = "1"
    assert machine.shell(f'check_machine {file} x86_64; echo "[$untried]"').stdout == "[1]\n"
    file.write_text(DEBIAN)
    assert machine.shell(f'check_machine {file} x86_64; echo "[$untried]"').stdout == "[]\n"


def test_a_cache_that_cannot_be_written_is_named(machine: SmallMachine) -> None:
    machine.environment["XDG_CACHE_HOME"] = "/dev/null/cache"
    done = machine.run(str(machine.tree / "run.sh"))
    assert done.returncode == 3
    assert "/dev/null/cache/firstflight" in done.stderr
    assert "XDG_CACHE_HOME" in done.stderr


def test_a_failed_build_shows_its_end_and_leaves_no_part(machine: SmallMachine) -> None:
    (machine.tree / "testbed" / "native" / "tfo.c").write_text("int unused(int a) { int b; }\n")
    done = machine.shell("bootstrap runtime")
    assert done.returncode == 4
    assert "-Werror" in done.stderr
    assert str(machine.cache / "logs" / "native.log") in done.stderr
    assert list((machine.cache / "native").iterdir()) == []


def test_c_files_become_static_programs_and_shared_objects(machine: SmallMachine) -> None:
    machine.shell("bootstrap runtime")
    (native,) = (machine.cache / "native").iterdir()
    assert sorted(path.name for path in native.iterdir()) == ["init", "tfo.so"]
    headers = proc.run(["readelf", "--program-headers", str(native / "init")]).stdout
    assert "INTERP" not in headers
    assert proc.run(["readelf", "--file-header", str(native / "tfo.so")]).stdout.count("DYN") == 1


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
    body = f"open_cache; ensure_part demo key Demo {script} {machine.home}"
    return ["bash", "-c", f"set -euo pipefail; source {machine.tree}/bootstrap/main.sh; {body}"]


def test_a_kill_in_the_middle_leaves_no_half_part(machine: SmallMachine) -> None:
    argv = start_build(machine)
    with proc.started(argv, env=machine.environment) as child:
        wait_for(machine.home / "started")
        child.send_signal(signal.SIGKILL)  # the script; its builder goes with the group below
    assert not (machine.cache / "demo" / "key").exists()
    (machine.home / "go").touch()
    assert machine.run(*argv).returncode == 0
    assert [path.name for path in (machine.cache / "demo").iterdir()] == ["key"]
    assert (machine.cache / "demo" / "key" / "whole").exists()


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
    for name in ("build-venv.sh", "build-js.sh", "build-native.sh"):
        path = machine.tree / "bootstrap" / name
        note = f"flock -n {machine.cache}/bootstrap.lock true || echo {name} >> {machine.home}/held"
        path.write_text(path.read_text().replace("\n", f"\n{note}\n", 1))
    machine.shell("bootstrap runtime")
    held = (machine.home / "held").read_text().split()
    assert sorted(held) == ["build-js.sh", "build-native.sh", "build-venv.sh"]
