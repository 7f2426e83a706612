"""Machines that ssh reaches, all of them this one: each with a port and a home folder of its own.

Configuration and keys, the servers' and the client's, are in one private folder: nobody's ~/.ssh is
read or written.  Who has ``environment`` finds the machines by their names, as users do.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess  # noqa: TID251 - only the type of what proc returns

from testbed.base import places, proc
from tests.many.enclosure import enclosed_argv, with_home
from tests.many.stores import answers
from tests.native.load import LOOPBACK, free_port

SSHD = "/usr/sbin/sshd"
SSH_S = 500
_CLIENTS = ("ssh", "scp", "sftp")


@dataclass(frozen=True)
class Hosts:
    """Machines by name; root may log in to each, and finds the tree in ~/firstflight."""

    folder: Path
    names: tuple[str, ...]

    @property
    def config(self) -> Path:
        """What ``ssh -F`` reads."""
        return self.folder / "ssh_config"

    @property
    def environment(self) -> dict[str, str]:
        """What a script needs whose ssh, scp, sftp or parallel is to find them."""
        return {
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "PARALLEL_HOME": str(self.folder / "parallel"),
        }

    def home(self, name: str) -> Path:
        """The home folder that root has on the machine ``name``."""
        return self.folder / name

    def ask(self, *argv: str, stdin: str | None = None) -> CompletedProcess[str]:
        """Run a command that finds these machines."""
        environment = os.environ | self.environment
        return proc.run(argv, env=environment, stdin=stdin, check=False, timeout_s=SSH_S)


@contextmanager
def serving_hosts(folder: Path, count: int = 2) -> Iterator[Hosts]:
    """Serve ``count`` machines, worker1 and so on, from ``folder``; root's only.

    Each sees a /run of its own, where sshd wants a folder of root's.
    """
    hosts = Hosts(folder, tuple(f"worker{number}" for number in range(1, count + 1)))
    for key in ("host", "user"):
        proc.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)))
    ports = {name: free_port() for name in hosts.names}
    _write_clients(hosts, ports)
    with ExitStack() as stack:
        for name, port in ports.items():
            hosts.home(name).mkdir()
            config = folder / f"sshd-{name}.conf"
            config.write_text(_server(folder, name, port))
            log_file = folder / f"sshd-{name}.log"
            log = stack.enter_context(log_file.open("wb"))
            own = ("--perms", "0755", "--tmpfs", "/run", "--perms", "0755", "--dir", "/run/sshd")
            argv = enclosed_argv(
                *(SSHD, "-D", "-e", "-f", str(config)), options=(*own, *with_home(hosts.home(name)))
            )
            child = stack.enter_context(proc.started(argv, stdout=log, stderr=log))
            assert proc.becomes_ready(child, answers(port)), log_file.read_text()
        yield hosts


def _server(folder: Path, name: str, port: int) -> str:
    """sshd_config(5) of a machine: by our key only, and nothing of PAM's."""
    environment = f"XDG_CACHE_HOME={places.cache().parent} FIRSTFLIGHT_STORE=none WORKER={name}"
    return (
        f"ListenAddress {LOOPBACK}:{port}\nHostKey {folder}/host\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/user.pub\nStrictModes no\nUsePAM no\nUseDNS no\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        "PermitRootLogin prohibit-password\nMaxStartups 100\nPrintMotd no\nPrintLastLog no\n"
        f"SetEnv {environment}\nSubsystem sftp internal-sftp\n"
    )


def _write_clients(hosts: Hosts, ports: dict[str, int]) -> None:
    """Write ssh_config(5), and programs of ssh's names that read no other."""
    folder = hosts.folder
    public = (folder / "host.pub").read_text()
    known = [f"[{LOOPBACK}]:{port} {public}" for port in ports.values()]
    (folder / "known_hosts").write_text("".join(known))
    entries = [f"Host {name}\n  Port {port}\n" for name, port in ports.items()]
    hosts.config.write_text(
        "".join(entries) + f"Host *\n  HostName {LOOPBACK}\n  User root\n  BatchMode yes\n"
        f"  IdentityFile {folder}/user\n  IdentitiesOnly yes\n  IdentityAgent none\n"
        f"  UserKnownHostsFile {folder}/known_hosts\n  GlobalKnownHostsFile none\n"
        "  StrictHostKeyChecking yes\n"
    )
    for below in ("bin", "parallel"):
        (folder / below).mkdir()
    for client in _CLIENTS:
        program = folder / "bin" / client
        program.write_text(f'#!/bin/sh\nexec /usr/bin/{client} -F {hosts.config} "$@"\n')
        program.chmod(0o755)
