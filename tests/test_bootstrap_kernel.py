"""Bootstrap and the kernel: built beside everything else, and without a compiler if it is there."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed.base import proc
from tests.small_machine import SmallMachine, make_small_machine

BUILDING = ("bc", "bison", "build-essential", "flex", "libelf-dev", "xz-utils")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture
def machine(tmp_path: Path) -> SmallMachine:
    return make_small_machine(tmp_path)


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def lose_compiler(machine: SmallMachine) -> None:
    """Nothing that builds is installed any more, and nobody may install it."""
    machine.install(*BUILDING)
    for name in ("cc", "gcc"):
        machine.fake(name, "exit 127")
    machine.fake("id", "echo 1000")
    machine.fake("sudo", "exit 1")


def change_compiler(machine: SmallMachine) -> None:
    for name in ("cc", "gcc"):
        machine.fake(name, f'[ "$1" = --version ] && echo another || exec /usr/bin/{name} "$@"')


def import_native(machine: SmallMachine) -> Path:
    """The C programs are those of another machine, as an import leaves them."""
    (native,) = (machine.cache / "native").iterdir()
    (native / ".contents" / "listing").unlink()
    return native.rename(native.with_name(f"{native.name.partition('-')[0]}-imported"))


def native_used(machine: SmallMachine) -> str:
    return machine.shell('bootstrap kernel; echo "$FIRSTFLIGHT_NATIVE"').stdout.strip()


@contextmanager
def bootstrapping(machine: SmallMachine) -> Iterator[tuple[proc.Process, Path]]:
    """A ``./run.sh`` whose kernel takes as long as there is a file ``slow``, and what it says."""
    (machine.home / "slow").touch()
    log = machine.home / "log"
    with (
        log.open("wb") as stderr,
        proc.started(
            [str(machine.tree / "run.sh")], env=machine.environment, stderr=stderr
        ) as child,
    ):
        wait_until((machine.home / "kernel.pid").exists)
        yield child, log


def kernel_builder_runs(machine: SmallMachine) -> bool:
    return Path("/proc", (machine.home / "kernel.pid").read_text()).exists()


def test_where_all_is_built_no_compiler_is_needed(machine: SmallMachine) -> None:
    before = native_used(machine)
    lose_compiler(machine)
    done = machine.shell('bootstrap kernel; echo "$FIRSTFLIGHT_NATIVE"')
    assert (done.returncode, done.stderr, done.stdout.strip()) == (0, "", before)


def test_imported_programs_need_no_compiler(machine: SmallMachine) -> None:
    machine.shell("bootstrap kernel")
    imported = import_native(machine)
    lose_compiler(machine)
    assert native_used(machine) == str(imported)
    assert machine.shell("bootstrap kernel").stderr == ""


def test_imported_programs_are_used_whatever_compiler_is_there(machine: SmallMachine) -> None:
    machine.shell("bootstrap kernel")
    imported = import_native(machine)
    change_compiler(machine)
    assert native_used(machine) == str(imported)


def test_another_compiler_builds_its_own_programs(machine: SmallMachine) -> None:
    before = native_used(machine)
    change_compiler(machine)
    assert native_used(machine) not in ("", before)


def test_damaged_imported_programs_are_not_used(machine: SmallMachine) -> None:
    machine.shell("bootstrap kernel")
    imported = import_native(machine)
    (imported / "init").write_bytes(b"short")
    assert native_used(machine) not in ("", str(imported))


@pytest.mark.parametrize("lost", ["native", "kernel"])
def test_what_is_to_be_built_asks_for_a_compiler_or_a_pack(
    machine: SmallMachine, lost: str
) -> None:
    machine.shell("bootstrap kernel")
    lose_compiler(machine)
    if lost == "native":
        (machine.tree / "testbed" / "native" / "tfo.c").write_text("int other;\n")
    else:
        (machine.home / "built" / "linux").unlink()
    done = machine.shell("bootstrap kernel")
    assert done.returncode == 3
    assert f"missing Debian packages: {' '.join(BUILDING)}\n" in done.stderr
    assert f"takes none of {' '.join(BUILDING)}:\n  ./run.sh kernel import FILE\n" in done.stderr


def test_development_always_needs_a_compiler(machine: SmallMachine) -> None:
    machine.shell("bootstrap kernel")
    lose_compiler(machine)
    assert machine.shell("bootstrap programs requirements-dev").returncode == 3


def test_all_else_is_set_up_while_the_kernel_is_built(machine: SmallMachine) -> None:
    with bootstrapping(machine) as (child, log):
        wait_until(lambda: "C programs: ready" in log.read_text())
        assert kernel_builder_runs(machine)
        assert child.poll() is None
        (machine.home / "slow").unlink()
        assert child.wait(120) == 7  # the program itself was run
    assert log.read_text().splitlines()[-1].startswith("firstflight: virtual kernel: ready in ")


def test_the_kernel_is_begun_before_the_packages_that_it_does_not_need(
    machine: SmallMachine,
) -> None:
    home = machine.home
    machine.install("bc", "tcpdump")
    query = (home / "bin" / "dpkg-query").read_text()
    machine.fake(
        "dpkg-query",
        f"{query}\nfor p in bc tcpdump; do [ ! -e {home}/has-$p ] || echo $p installed 9; done",
    )
    machine.fake("id", "echo 0")
    installer = machine.tree / "bootstrap" / "install-packages.sh"
    installer.write_text(
        f'#!/bin/bash\necho "$@" >>{home}/installed; for p; do : >{home}/has-$p; done\n'
        f"[[ $1 == bc ]] || until [[ -e {home}/kernel.pid ]]; do sleep 0.01; done\n"
    )
    done = machine.shell("bootstrap kernel")
    assert done.returncode == 0, done.stderr
    assert (home / "installed").read_text() == "bc\ntcpdump\n"
    assert done.stderr.count("packages installed in") == 2


def test_a_kernel_that_cannot_be_built_fails_when_all_else_is_there(machine: SmallMachine) -> None:
    (machine.home / "wrong").touch()
    with bootstrapping(machine) as (child, log):
        (machine.home / "slow").unlink()
        assert child.wait(120) == 1  # the status of the build
    said = log.read_text()
    assert "kernel 7.3: no source\n" in said
    assert said.endswith("firstflight: virtual kernel: not built; what it lacked is said above\n")
    assert "C programs: ready" in said


def test_a_part_that_fails_ends_the_kernels_build(machine: SmallMachine) -> None:
    (machine.tree / "testbed" / "native" / "tfo.c").write_text("int unused(int a) { int b; }\n")
    with bootstrapping(machine) as (child, log):
        assert child.wait(120) == 4
        assert not kernel_builder_runs(machine)
    assert "C programs: the build failed" in log.read_text()


@pytest.mark.usefixtures("not_below_nohup")
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("beside", [True, False])
def test_a_signal_ends_both(machine: SmallMachine, number: signal.Signals, beside: bool) -> None:
    builder = machine.tree / "bootstrap" / "build-native.sh"
    if beside:
        builder.write_text(
            f"#!/bin/sh\necho $$ >{machine.home}/its.pid\n"
            f"mv {machine.home}/its.pid {machine.home}/native.pid\nexec sleep 600\n"
        )
    with bootstrapping(machine) as (child, log):
        if beside:
            wait_until((machine.home / "native.pid").exists)
        else:
            wait_until(lambda: "C programs: ready" in log.read_text())
        child.send_signal(number)
        assert child.wait(30) == 130
        assert not kernel_builder_runs(machine)
    if beside:
        assert not Path("/proc", (machine.home / "native.pid").read_text().strip()).exists()
        assert list((machine.cache / "native").iterdir()) == []
    assert log.read_text().endswith("firstflight: interrupted\n")
