"""Disks that are full: small file systems of the test's own, mounted in a namespace of its own."""

from __future__ import annotations

import errno
import os
import shlex
import sys
from pathlib import Path

import click
import pytest

from firstflight.cli.exits import run_command
from testbed.base import proc
from testbed.base.errors import EXIT_INCOMPLETE
from testbed.base.places import CONFIGS, ROOT

PROGRAM = f"{shlex.quote(sys.executable)} -P -m firstflight run"
RUN = (
    f"{PROGRAM} {shlex.quote(str(CONFIGS / 'quick.toml'))} --client graph --jobs 1 "
    """--set 'page="file-1m"'"""
)


def on_small_disk(folder: Path, size: str, script: str) -> str:
    """What a script says that has ``size`` bytes in ``folder``; ``room`` gives it more."""
    mount = f"mount -t tmpfs -o size={size} none {folder}"
    more = f"room() {{ mount -o remount,size=60M {folder}; }}"
    shell = ("sh", "-c", f"exec 2>&1; {mount}; {more}; {script}")
    done = proc.run(
        ("unshare", "--mount", "--propagation", "private", *shell),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout_s=900,
    )
    return done.stdout


@pytest.mark.root
@pytest.mark.guest
def test_no_room_for_the_manifest_leaves_no_folder(tmp_path: Path) -> None:
    script = f"{RUN} -o {tmp_path}/r; echo $?; ls -A {tmp_path}"
    _, told, code = on_small_disk(tmp_path, "4k", script).splitlines()
    assert told.startswith(f"error: cannot write {tmp_path}/r/manifest.json: No space left on dev")
    assert code == "4"  # and nothing is listed behind it


@pytest.mark.root
@pytest.mark.guest
@pytest.mark.slow
def test_a_disk_that_a_guest_fills_is_no_failed_load(tmp_path: Path) -> None:
    # Room for the capture of one trial, but not of both.
    again = f"room; {PROGRAM} --resume {tmp_path}/r"
    script = f"{RUN} -o {tmp_path}/r; echo $?; ls -A {tmp_path}/r/trials; {again}"
    told = on_small_disk(tmp_path, "450k", script)
    before, _, after = told.partition("\n4\n")
    *_, first, error = before.splitlines()
    assert first.startswith("[1/2] ok ")
    assert "No space left on device; the records so far are intact; free space" in error
    assert error.endswith(f"--resume {tmp_path}/r")
    trial, _, said, *_ = after.splitlines()
    assert trial not in error  # what is there is the trial that ended
    assert said == "1 trial to run, 1 already done"
    assert f"2 ok; results in {tmp_path}/r" in after


def test_a_full_disk_anywhere_is_told_as_that(capsys: pytest.CaptureFixture[str]) -> None:
    @click.command()
    def fill() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/some/file")

    assert run_command(fill, args=[]) == EXIT_INCOMPLETE
    told = "error: /some/file: No space left on device; free space, then try again\n"
    assert capsys.readouterr().err == told
