"""Disks that are full: small file systems of the test's own, mounted in a namespace of its own."""

from __future__ import annotations

import errno
import gzip
import os
import shlex
import sys
from pathlib import Path

import click
import pytest

from firstflight.cli.exits import run_command
from testbed.base import proc
from testbed.base.debian import MIRROR_VARIABLE
from testbed.base.errors import EXIT_INCOMPLETE
from testbed.base.places import CONFIGS, ROOT
from testbed.root.lock import Lock, format_lock
from tests.root.debs import locked, pack, serving

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
    told = on_small_disk(tmp_path, "560k", script)
    before, _, after = told.partition("\n4\n")
    *_, first, error = before.splitlines()
    assert first.startswith("[1/2] ok ")
    assert "No space left on device; the records so far are intact; free space" in error
    assert error.endswith(f"--resume {tmp_path}/r")
    trial, _, said, *_ = after.splitlines()
    assert trial not in error  # what is there is the trial that ended
    assert said == "1 trial to run, 1 already done"
    assert f"2 ok; results in {tmp_path}/r" in after


ASSEMBLE = """
import sys
from pathlib import Path
from testbed.base.errors import TestbedError
from testbed.root.cache import ensure_root
from testbed.root.spec import read_spec

folder = Path(sys.argv[1])
try:
    root = ensure_root(read_spec("small", folder), folder / "disk", lambda said: None)
    print("assembled", (root.usr / "noise").stat().st_size)
except TestbedError as error:
    print(error.exit_code, error)
"""


@pytest.mark.root
@pytest.mark.parametrize(
    ("size", "left"), [("2m", ".part"), ("5m", ".deb")], ids=["downloading", "unpacking"]
)
def test_a_root_that_a_disk_has_no_room_for_is_not_there_by_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str, left: str
) -> None:
    data = pack({"usr/noise": os.urandom(3 << 20)}, gzip.compress)
    folder = tmp_path / "small"
    for place in (folder, tmp_path / "disk"):
        place.mkdir()
    wanted = (
        "title = 'A root'",
        "clients = false",
        "[suites]",
        "[packages]",
        "[without]",
        "[left_out]",
    )
    (folder / "root.toml").write_text("\n".join(wanted))
    (folder / "lock.toml").write_text(format_lock(Lock("20261124T120000Z", (locked("a", data),))))
    (tmp_path / "assemble.py").write_text(ASSEMBLE)
    again = f"{shlex.quote(sys.executable)} -P {tmp_path}/assemble.py {tmp_path}"
    script = f"{again}; find {tmp_path}/disk -type f -size +0 -o -name '.new-*'; room; {again}"
    with serving() as mirror:
        mirror.add((locked("a", data), data))
        monkeypatch.setenv(MIRROR_VARIABLE, f"{mirror.address}/debian")
        error, kept, done = on_small_disk(tmp_path / "disk", size, script).splitlines()
    assert error.startswith(f"{EXIT_INCOMPLETE} cannot assemble the root small: ")
    assert error.endswith("No space left on device; make room, and try again")
    assert kept.endswith(left)
    assert done == f"assembled {3 << 20}"
    ranges = [wanted for _, wanted in mirror.asked]
    assert len(ranges) == (2 if left == ".part" else 1)
    assert ranges[0] is None
    assert all(ranges[1:])  # it has gone on where the disk was full


def test_a_full_disk_anywhere_is_told_as_that(capsys: pytest.CaptureFixture[str]) -> None:
    @click.command()
    def fill() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/some/file")

    assert run_command(fill, args=[]) == EXIT_INCOMPLETE
    told = "error: /some/file: No space left on device; free space, then try again\n"
    assert capsys.readouterr().err == told
