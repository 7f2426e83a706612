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

BUILDING = ("debian-archive-keyring", "xz-utils")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture
def machine(tmp_path: Path) -> SmallMachine:
    return make_small_machine(tmp_path)


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def lose_packages(machine: SmallMachine) -> None:
    """Nothing that fetches a source is installed any more, and nobody may install it."""
    machine.install(*BUILDING)
    machine.fake("id", "echo 1000")
    machine.fake("sudo", "exit 1")


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


def test_where_the_kernel_is_built_no_package_is_needed(machine: SmallMachine) -> None:
    before = machine.shell('bootstrap kernel; echo "$FIRSTFLIGHT_NATIVE"').stdout
    machine.install("xz-utils")
    done = machine.shell('bootstrap kernel; echo "$FIRSTFLIGHT_NATIVE"')
    assert (done.returncode, done.stderr, done.stdout) == (0, "", before)


def test_a_kernel_that_is_to_be_built_asks_for_packages_or_a_pack(machine: SmallMachine) -> None:
    machine.shell("bootstrap kernel")
    lose_packages(machine)
    (machine.home / "built" / "linux").unlink()
    done = machine.shell("bootstrap kernel")
    assert done.returncode == 3
    assert f"missing Debian packages: {' '.join(BUILDING)}\n" in done.stderr
    assert f"takes none of {' '.join(BUILDING)}:\n  ./run.sh kernel import FILE\n" in done.stderr


def test_development_always_needs_the_packages(machine: SmallMachine) -> None:
    machine.shell("bootstrap kernel")
    lose_packages(machine)
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
    machine.install("xz-utils", "tcpdump")
    query = (home / "bin" / "dpkg-query").read_text()
    machine.fake(
        "dpkg-query",
        f"{query}\n"
        f"for p in xz-utils tcpdump; do [ ! -e {home}/has-$p ] || echo $p installed 9; done",
    )
    machine.fake("id", "echo 0")
    installer = machine.tree / "bootstrap" / "install-packages.sh"
    installer.write_text(
        f'#!/bin/bash\necho "$@" >>{home}/installed; for p; do : >{home}/has-$p; done\n'
        f"[[ $1 == xz-utils ]] || until [[ -e {home}/kernel.pid ]]; do sleep 0.01; done\n"
    )
    done = machine.shell("bootstrap kernel")
    assert done.returncode == 0, done.stderr
    assert (home / "installed").read_text() == "xz-utils\ntcpdump\n"
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
    (machine.home / "wrong-native").touch()
    with bootstrapping(machine) as (child, _):
        assert child.wait(120) == 4
        assert not kernel_builder_runs(machine)


@pytest.mark.usefixtures("not_below_nohup")
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("beside", [True, False])
def test_a_signal_ends_both(machine: SmallMachine, number: signal.Signals, beside: bool) -> None:
    if beside:
        (machine.home / "slow-native").touch()
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
    assert log.read_text().endswith("firstflight: interrupted\n")
