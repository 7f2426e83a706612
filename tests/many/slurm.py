"""Slurm on this machine: a controller and nodes in one private folder, without accounts or cgroups.

Its configuration and its key (munged(8)) are the folder's own; it listens on loopback only.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess  # noqa: TID251 - only the type of what proc returns

from testbed.base import proc
from tests.many.enclosure import enclosed_argv
from tests.native.load import LOOPBACK, free_port

DAEMONS = "/usr/sbin"
JOB_S = 500
KNOWS_DISABLED = (23, 11)
"""The first that can do without cgroups if told so (cgroup.conf(5)); older ones just can."""


@dataclass(frozen=True)
class Slurm:
    """A cluster, and how its commands find it."""

    folder: Path
    nodes: tuple[str, ...]

    @property
    def environment(self) -> dict[str, str]:
        """What sbatch and its like need."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def ask(self, *argv: str, cwd: Path | None = None) -> CompletedProcess[str]:
        """Run a command that finds this cluster."""
        environment = os.environ | self.environment
        return proc.run(argv, env=environment, cwd=cwd, check=False, timeout_s=JOB_S)

    def is_ready(self) -> bool:
        """Whether every node waits for jobs."""
        asked = self.ask("sinfo", "--noheader", "--Node", "--format=%T")
        return asked.stdout.split() == ["idle"] * len(self.nodes)

    def logs(self) -> str:
        """The last lines of each daemon's log."""
        logs = sorted(self.folder.glob("*.log"))
        tails = (f"{log.name}: {log.read_text('utf-8', 'replace')[-1500:]}" for log in logs)
        return "\n".join(tails)


@contextmanager
def serving_slurm(folder: Path, nodes: int = 2) -> Iterator[Slurm]:
    """Serve a cluster of ``nodes``, whose folder has a short path (unix(7)); root's only."""
    slurm = Slurm(folder, tuple(f"worker{number}" for number in range(1, nodes + 1)))
    (folder / "munge.key").write_bytes(secrets.token_bytes(128))
    (folder / "munge.key").chmod(0o400)
    (folder / "state").mkdir()
    (folder / "slurm.conf").write_text(_configuration(slurm))
    if _version() >= KNOWS_DISABLED:
        (folder / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
    with ExitStack() as stack:

        def start(name: str, *argv: str) -> proc.Process:
            log = stack.enter_context((folder / f"{name}.log").open("wb"))
            environment = os.environ | slurm.environment
            return stack.enter_context(
                proc.started(enclosed_argv(*argv), env=environment, stdout=log, stderr=log)
            )

        own = {"socket": "munge.socket", "key-file": "munge.key", "seed-file": "munge.seed",
               "pid-file": "munge.pid", "log-file": "munge.log"}  # fmt: skip
        files = (f"--{option}={folder / name}" for option, name in own.items())
        keeper = start("munged", f"{DAEMONS}/munged", "--foreground", "--force", *files)
        assert proc.becomes_ready(keeper, (folder / "munge.socket").exists), slurm.logs()
        controller = start("slurmctld", f"{DAEMONS}/slurmctld", "-D")
        for node in slurm.nodes:
            start(f"slurmd-{node}", f"{DAEMONS}/slurmd", "-D", "-N", node)
        assert proc.becomes_ready(controller, slurm.is_ready), slurm.logs()
        yield slurm


def _version() -> tuple[int, ...]:
    """The version of Slurm here, without its third part."""
    said = proc.run((f"{DAEMONS}/slurmd", "-V")).stdout
    return tuple(int(part) for part in said.split()[-1].split(".")[:2])


def _configuration(slurm: Slurm) -> str:
    """slurm.conf(5): every path in the folder, every port on loopback, one job on a node."""
    folder, machine = slurm.folder, socket.gethostname().partition(".")[0]
    lines = [
        "ClusterName=firstflight",
        f"SlurmctldHost={machine}({LOOPBACK})",
        f"SlurmctldPort={free_port()}",
        "CommunicationParameters=NoCtldInAddrAny,NoInAddrAny",
        "SlurmUser=root",
        "SlurmdUser=root",
        "AuthType=auth/munge",
        "CredType=cred/munge",
        f"AuthInfo=socket={folder}/munge.socket",
        f"StateSaveLocation={folder}/state",
        f"SlurmdSpoolDir={folder}/spool-%n",
        f"SlurmctldPidFile={folder}/slurmctld.pid",
        f"SlurmdPidFile={folder}/slurmd-%n.pid",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "MpiDefault=none",
        "MailProg=/bin/true",
        "SelectType=select/linear",
        "SlurmdParameters=config_overrides",
    ]
    for node in slurm.nodes:
        lines.append(
            f"NodeName={node} NodeHostname={machine} NodeAddr={LOOPBACK} Port={free_port()} "
            "CPUs=2 RealMemory=65536"
        )
    lines.append("PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP")
    return "\n".join((*lines, ""))
