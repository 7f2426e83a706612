"""Bootstrap: what it installs and builds, what it refuses, and what a kill leaves behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.errors import EXIT_MISSING
from testbed.client import CLIENTS
from testbed.setup.programs import package_names, programs_of
from tests.small_machine import ROOT, SmallMachine, make_small_machine

UBUNTU = 'PRETTY_NAME="Ubuntu 24.04.1 LTS"\nID=ubuntu\nVERSION_ID="24.04"\n'
DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_ID="12"\n'


# What is missing of a run's packages is installed.
INSTALL = (
    'read_packages "$bootstrap/packages-debian-12.txt" "${RUN_PROGRAMS[@]}"; find_missing; '
    "become_root; open_cache; install_missing 1"
)


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
    for part in ("Python environment", "C programs", "virtual kernel"):
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
    machine.shell("bootstrap kernel")
    (machine.tree / "bootstrap" / "requirements.txt").write_text("# something else\n")
    machine.shell("bootstrap kernel")
    assert len(list((machine.cache / "venv").iterdir())) == 2
    assert len(list((machine.cache / "native").iterdir())) == 1


def test_keys_do_not_depend_on_where_the_clone_is(machine: SmallMachine) -> None:
    machine.shell("bootstrap kernel")
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
    done = machine.shell(INSTALL)
    assert done.returncode == 0, done.stderr
    assert log.read_text() == f"{wrapped}tcpdump\n"


def test_bootstrap_knows_every_package_that_is_declared(machine: SmallMachine) -> None:
    """It reads them from the source, before there is anything to import."""
    programs = programs_of(tuple(CLIENTS))
    asked = machine.shell('read_packages "${RUN_PROGRAMS[@]}"; echo ${packages[*]}')
    names = {name for program in programs for name in package_names(program)}
    assert sorted(asked.stdout.split()) == sorted(names)


def test_a_package_that_is_too_old_is_missing(machine: SmallMachine) -> None:
    machine.fake("dpkg-query", 'for p in "$@"; do echo "$p installed 16.20"; done')
    (machine.home / "list").write_text("old >= 18  # reason\nnew >= 16\nany\n")
    done = machine.shell('read_packages "$HOME/list"; find_missing; echo "${missing[@]}"')
    assert done.stdout == "old\n"


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
    for version in ("12", "13"):
        file.write_text(DEBIAN.replace("12", version))
        assert machine.shell(f'check_machine {file} x86_64; echo "[$untried]"').stdout == "[]\n"


def test_a_cache_that_cannot_be_written_is_named(machine: SmallMachine) -> None:
    machine.environment["XDG_CACHE_HOME"] = "/dev/null/cache"
    done = machine.run(str(machine.tree / "run.sh"))
    assert done.returncode == 3
    assert "/dev/null/cache/firstflight" in done.stderr
    assert "XDG_CACHE_HOME" in done.stderr


@pytest.mark.parametrize("name", ["two words", "a:b", "a\tb"])
def test_a_cache_that_no_kernel_could_be_built_in_is_refused_first(
    machine: SmallMachine, name: str
) -> None:
    machine.environment["XDG_CACHE_HOME"] = str(machine.tree / name)
    done = machine.run(str(machine.tree / "run.sh"))
    assert done.returncode == 3
    assert f"{name}/firstflight' holds a space or a colon" in done.stderr
    assert "set XDG_CACHE_HOME" in done.stderr
    assert not (machine.tree / name).exists()


def test_a_failed_build_shows_its_end_and_leaves_no_part(machine: SmallMachine) -> None:
    (machine.tree / "testbed" / "native" / "tfo.c").write_text("int unused(int a) { int b; }\n")
    done = machine.shell("bootstrap kernel")
    assert done.returncode == 4
    assert "-Werror" in done.stderr
    assert str(machine.cache / "logs" / "native.log") in done.stderr
    assert list((machine.cache / "native").iterdir()) == []


def test_c_files_become_static_programs_and_shared_objects(machine: SmallMachine) -> None:
    machine.shell("bootstrap kernel")
    (native,) = (machine.cache / "native").iterdir()
    assert sorted(path.name for path in native.iterdir()) == [".contents", "init", "tfo.so"]
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
        (damage_start, "native/*/init"),
        (damage_middle, "native/*/init"),
        (damage_rights, "native/*/init"),
        (Path.unlink, "native/*/init"),
        (damage_start, "venv/*/pyvenv.cfg"),
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
    title = {"native": "C programs", "venv": "Python environment"}[name.partition("/")[0]]
    assert done.returncode == 0
    said = [line for line in done.stderr.splitlines() if "building" in line]
    assert said[0].startswith(
        f"firstflight: {title}: building again: {path.name} is damaged or gone, about "
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
    (machine.cache / "venv" / "extra").mkdir()
    (part,) = (path for path in (machine.cache / "native").iterdir())
    (part / "extra").touch()
    done = machine.shell("bootstrap kernel")
    assert [line for line in done.stderr.splitlines() if "building" in line] == []
    listing = (part / ".contents" / "listing").read_text()
    assert "./extra" in listing  # what is there now is what the next start looks for
    assert machine.shell("bootstrap kernel").stderr == ""


def test_what_is_looked_for_does_not_depend_on_the_order_of_a_folder(machine: SmallMachine) -> None:
    machine.shell("bootstrap kernel")
    (part,) = machine.cache.glob("native/*")
    lines = (part / ".contents" / "listing").read_text().splitlines()
    assert len(lines) > 1 and lines == sorted(lines)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="another user takes root")
def test_parts_of_another_user_are_used_and_what_they_lack_is_said(machine: SmallMachine) -> None:
    machine.shell("bootstrap kernel")
    for folder in (machine.home, *machine.home.parents):
        if folder.stat().st_uid == os.geteuid() and folder.is_relative_to("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o055)
    logs = machine.cache / "logs"
    for folder in (machine.cache, logs, machine.cache / "native"):
        folder.chmod(0o777)
    listing = next(machine.cache.glob("native/*")) / ".contents" / "listing"
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
    assert f"cannot write {logs}/native.log, which is another user's" in done.stderr


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


@pytest.mark.parametrize(
    ("words", "built"),
    [
        (("--help",), ()),
        (("run", "x", "-h"), ()),
        (("--version",), ()),
        (("rnu",), ()),
        (("run", "--hepl"), ()),
        (("pages",), ()),
        (("compare", "nowhere", "nowhere2"), ("venv",)),
        (("report", "nowhere"), ("venv",)),
        (("history", "list"), ("venv",)),
        (("plan",), ("venv",)),
        (("clean",), ("venv",)),
        (("pages", "record"), ("venv", "native")),
        (("serve", "amazon"), ("venv", "native")),
        (("run", "--dry-run"), ("venv", "native", "kernels")),
        ((), ("venv", "native", "kernels")),
    ],
)
def test_a_verb_sets_up_what_it_needs_and_no_more(
    machine: SmallMachine, words: tuple[str, ...], built: tuple[str, ...]
) -> None:
    asked = machine.home / "asked"
    installed = machine.home / "installed"
    query = (machine.home / "bin" / "dpkg-query").read_text()
    machine.fake("dpkg-query", f'echo "$*" >>{asked}\n[ -e {installed} ] || exit 1\n{query}')
    installer = machine.tree / "bootstrap" / "install-packages.sh"
    installer.write_text(f"#!/bin/sh\n: >{installed}\n")
    machine.fake("id", "echo 0")
    if built == ("venv",):
        # Of the packages it needs these two, and it installs none.
        refused = machine.run(str(machine.tree / "run.sh"), *words)
        assert refused.returncode == 3
        assert "missing Debian packages: ca-certificates python3-venv\n" in refused.stderr
        assert not installed.exists()
        installed.touch()
    done = machine.run(str(machine.tree / "run.sh"), *words)
    found = {path.name for path in machine.cache.glob("*")} - {"logs", "bootstrap.lock"}
    assert found == set(built)
    assert installed.exists() == bool(built)
    assert asked.exists() == bool(built)
    if built:
        assert done.returncode == 7  # the program itself was run
    else:
        assert done.returncode in (0, 2)
        assert not machine.cache.exists()


def test_typing_errors_get_a_word_of_help(machine: SmallMachine) -> None:
    done = machine.run(str(machine.tree / "run.sh"), "rnu")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "error: no such verb: rnu (did you mean 'run'?); `./run.sh --help` names all\n"
    )


def test_without_any_python_run_goes_on_and_the_others_say_what_is_missing(
    machine: SmallMachine,
) -> None:
    main = machine.tree / "bootstrap" / "main.sh"
    nowhere = machine.home / "nowhere" / "python3"
    main.write_text(main.read_text().replace("-x /usr/bin/python3", f"-x {nowhere}"))
    done = machine.run(str(machine.tree / "run.sh"), "--help")
    assert done.returncode == 3
    assert "apt-get install python3-venv" in done.stderr
    assert machine.run(str(machine.tree / "run.sh"), "run").returncode == 7


@pytest.mark.parametrize("path", ["/usr/bin:/bin", "/bin", "/usr/local/bin:/usr/bin"])
def test_programs_are_found_whatever_the_callers_path(machine: SmallMachine, path: str) -> None:
    program = "import os, shutil\nprint(shutil.which('nginx'), shutil.which('node'))\n"
    (machine.tree / "firstflight" / "__main__.py").write_text(program)
    other = machine.home / "other"
    other.mkdir()
    (other / "node").symlink_to("/usr/bin/false")
    machine.environment["PATH"] = f"{other}:{path}"
    done = machine.run(str(machine.tree / "run.sh"))
    assert done.stdout == "/usr/sbin/nginx /usr/bin/node\n"


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
    machine.shell("bootstrap kernel requirements-dev")
    held = (machine.home / "held").read_text().split()
    environments = ["build-venv.sh"] * 2  # that of the tests, and that of the artifact's papers
    assert sorted(held) == ["build-js.sh", "build-native.sh", *environments]
