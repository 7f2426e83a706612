"""Debian packages installed as root: apt asked in the right way, no service left behind."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.base import places, proc

INSTALLER = places.ROOT / "bootstrap" / "install-packages.sh"
POLICY = "/usr/sbin/policy-rc.d"


@dataclass(frozen=True)
class SmallMachine:
    """A folder with a copy of the installer, and programs that come before the system's."""

    home: Path

    def fake(self, name: str, script: str) -> None:
        """Put a shell script before the system's program of that name."""
        path = self.home / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path) -> SmallMachine:
    """A machine whose installer keeps its policy file, and npm, below the test's folder."""
    machine = SmallMachine(tmp_path)
    (tmp_path / "bin").mkdir()
    text = INSTALLER.read_text()
    assert text.count(POLICY) == 1
    assert text.count("/usr/bin/npm") == 1
    text = text.replace(POLICY, str(tmp_path / "policy")).replace(
        "/usr/bin/npm", str(tmp_path / "npm")
    )
    installer = tmp_path / INSTALLER.name
    installer.write_text(text)
    installer.chmod(0o755)
    machine.fake("update-rc.d", f'echo "update-rc.d $*" >>{tmp_path}/log')
    apt(machine, "")
    machine.fake(
        "dpkg-query", f'for name; do :; done; [ ! -e "{tmp_path}/$name" ] || echo installed'
    )
    return machine


def apt(machine: SmallMachine, more: str) -> None:
    home = machine.home
    machine.fake(
        "apt-get",
        f'echo "apt-get $DEBIAN_FRONTEND $*" >>{home}/log\n'
        f"cat {home}/policy >{home}/policy-during 2>/dev/null\n"
        f'for word; do case "$word" in nginx|openssh-server) : >"{home}/$word" ;; esac; done\n'
        f"{more}",
    )


def install(machine: SmallMachine, *names: str) -> int:
    argv = (str(machine.home / INSTALLER.name), *names)
    env = {"PATH": f"{machine.home / 'bin'}:{os.defpath}"}
    return proc.run(argv, env=env, check=False, timeout_s=120).returncode


def test_apt_asks_nothing_waits_for_its_lock_and_starts_no_service(machine: SmallMachine) -> None:
    assert install(machine, "nginx", "wget2") == 0
    update, download, command, disable = (machine.home / "log").read_text().splitlines()
    assert update.endswith(" update")
    assert command.startswith("apt-get noninteractive ")
    assert "-y" in command.split()
    assert "DPkg::Lock::Timeout=300" in command
    assert download == command.replace("nginx wget2", "--download-only nginx wget2")
    assert command.endswith(" install --no-install-recommends nginx wget2")
    assert (machine.home / "policy-during").read_text().endswith("\nexit 101\n")
    assert not (machine.home / "policy").exists()
    assert disable == "update-rc.d nginx disable"


HELD = "Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)"


def test_it_waits_while_another_apt_holds_a_lock(machine: SmallMachine) -> None:
    """apt gives up at once where the lock of its lists or of its downloads is another's."""
    for name in ("update", "--download-only"):
        (machine.home / f"{name}-held").touch()
    machine.fake("sleep", f'echo "sleep $*" >>{machine.home}/log')
    apt(
        machine,
        "for name in update --download-only; do\n"
        f'  case "$*" in *$name*) if rm {machine.home}/$name-held 2>/dev/null; then\n'
        f'    echo "E: {HELD}" >&2; exit 100; fi ;; esac\n'
        "done",
    )
    assert install(machine, "wget2") == 0
    steps = [
        line.removesuffix(" wget2").rpartition(" ")[2]
        for line in (machine.home / "log").read_text().splitlines()
    ]
    waited = ["update", "3", "update", "--download-only", "3", "--download-only"]
    assert steps == [*waited, "--no-install-recommends"]


def test_two_at_once_take_turns(machine: SmallMachine) -> None:
    """The first to end would otherwise let the services start that the other one installs."""
    busy, log = machine.home / "busy", machine.home / "log"
    apt(
        machine,
        f'case "$*" in *update) mkdir {busy} || echo collision >>{log} ;;\n'
        f"*--download-only*) sleep 0.3 ;;\n*) rmdir {busy} ;; esac",
    )
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda name: install(machine, name), ["wget2", "nginx"])) == [0, 0]
    assert "collision" not in log.read_text()


def test_another_failure_of_apt_is_not_waited_for(machine: SmallMachine) -> None:
    machine.fake("sleep", f'echo "sleep $*" >>{machine.home}/log')
    apt(machine, 'echo "E: Unable to fetch some archives" >&2; exit 100')
    assert install(machine, "wget2") == 100
    assert len((machine.home / "log").read_text().splitlines()) == 1


def test_the_policy_goes_when_apt_fails(machine: SmallMachine) -> None:
    apt(machine, "exit 100")
    assert install(machine, "nginx") == 100
    assert (machine.home / "policy-during").read_text().endswith("\nexit 101\n")
    assert not (machine.home / "policy").exists()


def test_the_machines_own_policy_stays(machine: SmallMachine) -> None:
    (machine.home / "policy").write_text("#!/bin/sh\nexit 0\n")
    assert install(machine, "nginx") == 0
    assert (machine.home / "policy").read_text() == "#!/bin/sh\nexit 0\n"
    assert (machine.home / "policy-during").read_text() == "#!/bin/sh\nexit 0\n"


def test_a_policy_left_by_a_killed_run_is_removed(machine: SmallMachine) -> None:
    assert install(machine, "wget2") == 0
    left = (machine.home / "policy-during").read_text()
    (machine.home / "policy").write_text(left)
    assert install(machine, "wget2") == 0
    assert not (machine.home / "policy").exists()


def test_a_server_that_tests_take_does_not_come_up_with_the_machine(machine: SmallMachine) -> None:
    assert install(machine, "openssh-server", "wget2") == 0
    done = [line for line in (machine.home / "log").read_text().splitlines() if "rc.d" in line]
    assert done == ["update-rc.d ssh disable"]


def test_an_nginx_that_was_there_stays_enabled(machine: SmallMachine) -> None:
    (machine.home / "nginx").touch()
    assert install(machine, "wget2") == 0
    assert "update-rc.d" not in (machine.home / "log").read_text()


@pytest.mark.parametrize("brought", [False, True])
def test_npm_is_asked_for_only_when_nodejs_did_not_bring_it(
    machine: SmallMachine, brought: bool
) -> None:
    if brought:
        npm = machine.home / "npm"
        apt(machine, f'case "$*" in *install*nodejs*) : >{npm}; chmod +x {npm} ;; esac')
    assert install(machine, "nodejs", "npm") == 0
    commands = (machine.home / "log").read_text().splitlines()
    installs = [
        line.partition("recommends ")[2]
        for line in commands
        if " install " in line and "--download-only" not in line
    ]
    assert installs == (["nodejs"] if brought else ["nodejs", "npm"])


def test_all_that_is_downloaded_is_there_before_it_is_installed_and_npm_comes_last(
    machine: SmallMachine,
) -> None:
    """A signal may end a download, also npm's: what came before it is complete by then."""
    assert install(machine, "npm", "nginx") == 0
    commands = (machine.home / "log").read_text().splitlines()
    steps = [line.partition("recommends ")[2] or line for line in commands[1:]]
    npm = ["--download-only npm", "npm"]
    assert steps == ["--download-only nginx", "nginx", "update-rc.d nginx disable", *npm]


def test_npm_alone_installs_nothing_else(machine: SmallMachine) -> None:
    assert install(machine, "npm") == 0
    commands = (machine.home / "log").read_text().splitlines()
    assert [line.split()[-1] for line in commands] == ["update", "npm", "npm"]
