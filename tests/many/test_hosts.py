"""Machines that ssh, sftp and GNU parallel reach by name, and nobody's configuration is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.many.hosts import Hosts

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="sshd lets root in, as root"),
]


def test_each_has_a_home_and_the_tree(hosts: Hosts) -> None:
    for name in hosts.names:
        done = hosts.ask("ssh", name, "touch here; ls firstflight/run.sh; ls -A; echo $WORKER")
        assert done.returncode == 0, done.stderr
        assert done.stdout.split()[0] == "firstflight/run.sh"
        assert done.stdout.split()[-1] == name
        assert (hosts.home(name) / "here").exists()
        assert ".ssh" not in done.stdout.split()


def test_files_come_by_sftp_and_scp(hosts: Hosts, tmp_path: Path) -> None:
    first, *_ = hosts.names
    (hosts.home(first) / "kept").write_text("kept\n")
    done = hosts.ask("sftp", "-b", "-", first, stdin=f"get kept {tmp_path}/by-sftp\n")
    assert done.returncode == 0, done.stderr
    done = hosts.ask("scp", "-q", f"{first}:kept", f"{tmp_path}/by-scp")
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / name).read_text() for name in ("by-sftp", "by-scp")] == ["kept\n"] * 2


def test_parallel_spreads_jobs(hosts: Hosts) -> None:
    names = ",".join(hosts.names)
    done = hosts.ask("parallel", "--jobs", "1", "--sshlogin", names,
                     "sleep 1; echo part {}/4 on $WORKER", ":::", "1", "2", "3", "4")  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = sorted(line.split(" on ") for line in done.stdout.splitlines())
    assert [part for part, _ in said] == [f"part {number}/4" for number in range(1, 5)]
    assert {name for _, name in said} == set(hosts.names)
