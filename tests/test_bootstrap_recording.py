"""Bootstrap of what only recordings take: by the first of them, or for development in advance."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.places import using_cache
from testbed.setup.programs import package_names
from testbed.setup.recording import RECORDING
from tests.small_machine import SmallMachine, make_small_machine

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture
def machine(tmp_path: Path) -> SmallMachine:
    """A machine with all but nodejs and npm, whose user may not install them."""
    machine = make_small_machine(tmp_path)
    packages = machine.tree / "bootstrap" / "packages.sh"
    text = packages.read_text()
    assert text.count("/usr/bin/npm") == 1
    # Where tests run, NodeSource's nodejs may have brought one.
    packages.write_text(text.replace("/usr/bin/npm", str(tmp_path / "npm")))
    machine.install("nodejs", "npm")
    machine.fake("id", "echo 1000")
    machine.fake("sudo", "exit 1")
    return machine


def recorder(machine: SmallMachine) -> str:
    return str(machine.tree / "bootstrap" / "recorder.sh")


def drivers(machine: SmallMachine) -> list[Path]:
    return list((machine.cache / "js").glob("*"))


def test_bootstrap_knows_the_packages_of_recordings(machine: SmallMachine) -> None:
    """It reads them from the source, before there is anything to import."""
    asked = machine.shell(
        'read_packages "$RECORDING_PROGRAMS"; echo ${packages[*]}; echo ${least[nodejs]}'
    )
    names = [name for program in RECORDING for name in package_names(program)]
    assert asked.stdout.splitlines() == [" ".join(names), "18"]


def test_a_run_asks_for_neither_node_nor_npm_and_builds_no_driver(machine: SmallMachine) -> None:
    machine.environment["FIRSTFLIGHT_JS"] = "/another/tree's"
    program = "import os\nprint(os.environ.get('FIRSTFLIGHT_JS'))\n"
    (machine.tree / "firstflight" / "__main__.py").write_text(program)
    done = machine.run(str(machine.tree / "run.sh"))
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr
    assert drivers(machine) == []


def test_development_has_all_of_it_in_advance(machine: SmallMachine) -> None:
    refused = machine.shell("bootstrap programs requirements-dev")
    assert refused.returncode == 3
    assert "missing Debian packages: nodejs npm\n" in refused.stderr
    machine.install()
    done = machine.shell('bootstrap programs requirements-dev; echo "$FIRSTFLIGHT_JS"')
    assert [done.stdout] == [f"{part}\n" for part in drivers(machine)]


def test_the_first_recording_installs_and_builds_and_the_second_does_nothing(
    machine: SmallMachine,
) -> None:
    log, installed = machine.home / "log", machine.home / "installed"
    machine.fake("id", "echo 0")
    query = (machine.home / "bin" / "dpkg-query").read_text()
    machine.fake(
        "dpkg-query",
        f"{query}\n[ ! -e {installed} ] || for p in nodejs npm; do echo $p installed 18; done",
    )
    installer = machine.tree / "bootstrap" / "install-packages.sh"
    installer.write_text(f'#!/bin/sh\necho "$@" >>{log}\n: >{installed}\n')
    first = machine.run(recorder(machine))
    assert first.returncode == 0, first.stderr
    (part,) = drivers(machine)
    assert first.stdout == f"{part}\n"
    assert (part / "dist").is_dir()
    assert re.search("installing Debian packages, about .* s: nodejs npm; log: ", first.stderr)
    assert "browser driver: ready in " in first.stderr
    second = machine.run(recorder(machine))
    assert (second.returncode, second.stdout, second.stderr) == (0, first.stdout, "")
    assert log.read_text() == "nodejs npm\n"


def test_without_root_the_packages_are_named(machine: SmallMachine) -> None:
    done = machine.run(recorder(machine))
    assert (done.returncode, done.stdout) == (3, "")
    assert "missing Debian packages: nodejs npm\n" in done.stderr
    assert "apt-get install --no-install-recommends nodejs npm\n" in done.stderr
    assert "kernel import" not in done.stderr
    assert not machine.cache.exists()


def test_a_driver_that_cannot_be_built_shows_why(machine: SmallMachine) -> None:
    machine.install()
    (machine.tree / "testbed" / "client" / "chromium" / "package.json").write_text("{")
    done = machine.run(recorder(machine))
    assert (done.returncode, done.stdout) == (4, "")
    assert "browser driver: the build failed" in done.stderr
    assert str(machine.cache / "logs" / "js.log") in done.stderr
    assert drivers(machine) == []


def test_to_find_the_driver_sets_nothing_up(machine: SmallMachine) -> None:
    asked = (recorder(machine), "--find")
    done = machine.run(*asked)
    assert (done.returncode != 0, done.stdout, done.stderr) == (True, "", "")
    assert not machine.cache.exists()
    machine.install()
    built = machine.run(recorder(machine))
    machine.install("nodejs", "npm")
    assert machine.run(*asked).stdout == built.stdout
    (Path(built.stdout.strip()) / "driver.mjs").unlink()
    assert machine.run(*asked).returncode != 0


def test_a_run_that_keeps_the_cache_can_set_it_up(machine: SmallMachine) -> None:
    machine.install()
    with using_cache(machine.cache):
        done = machine.run(recorder(machine), timeout_s=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("not_below_nohup")
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_it_and_leaves_nothing(machine: SmallMachine, number: signal.Signals) -> None:
    machine.install()
    begun, log = machine.home / "begun", machine.home / "log"
    builder = machine.tree / "bootstrap" / "build-js.sh"
    builder.write_text(f"#!/bin/sh\n: >{begun}\nexec sleep 600\n")
    with (
        log.open("wb") as stderr,
        proc.started([recorder(machine)], env=machine.environment, stderr=stderr) as child,
    ):
        deadline = time.monotonic() + 120
        while not begun.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        child.send_signal(number)
        assert child.wait(30) == 130
    assert log.read_text().endswith("firstflight: interrupted\n")
    assert drivers(machine) == []
