"""Bootstrap: what it installs and builds, what it refuses, and what a kill leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base import proc
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
    builder = machine.tree / "bootstrap" / "build-venv.sh"
    builder.write_text("#!/bin/sh\necho no module pip >&2\nexit 1\n")
    done = machine.shell("bootstrap kernel")
    assert done.returncode == 4
    assert "no module pip" in done.stderr
    assert str(machine.cache / "logs" / "venv.log") in done.stderr
    assert list((machine.cache / "venv").iterdir()) == []


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
