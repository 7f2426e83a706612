"""Setting up of what recordings take, with scripts in place of bootstrap's own."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.errors import EXIT_INCOMPLETE, EXIT_MISSING, MissingError, TestbedError
from testbed.base.interrupt import SIGNALS
from testbed.base.places import ROOT
from testbed.setup import recording
from testbed.setup.recording import find_driver, set_up_recording

COMMAND = """\
import sys
from pathlib import Path
import click
from firstflight.cli.exits import run_command
from testbed.setup import recording
recording.SCRIPT = Path(sys.argv[1])
@click.command()
def record():
    print("recording with", recording.set_up_recording())
sys.exit(run_command(record, args=[]))
"""


@pytest.fixture(autouse=True)
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script that is run; nobody has set anything up."""
    monkeypatch.delenv("FIRSTFLIGHT_JS", raising=False)
    monkeypatch.setattr(recording, "SCRIPT", tmp_path / "recorder.sh")
    write(tmp_path / "recorder.sh", "exit 0")
    return tmp_path / "recorder.sh"


def write(script: Path, text: str) -> None:
    script.write_text(f"#!/bin/bash\n{text}\n")
    script.chmod(0o755)


def command(script: Path) -> tuple[str, ...]:
    return (sys.executable, "-P", "-c", COMMAND, str(script))


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def test_it_is_set_up_once_for_all_recordings(script: Path, tmp_path: Path) -> None:
    write(script, f'echo x >>{tmp_path}/count; echo "/a folder"')
    assert [set_up_recording(), set_up_recording()] == [Path("/a folder")] * 2
    assert (tmp_path / "count").read_text() == "x\n"


def test_what_development_has_set_up_is_taken(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(script, "exit 1")
    monkeypatch.setenv("FIRSTFLIGHT_JS", str(tmp_path))
    assert set_up_recording() == tmp_path
    assert find_driver() == tmp_path
    monkeypatch.setenv("FIRSTFLIGHT_JS", str(tmp_path / "gone"))
    assert find_driver() is None


def test_finding_asks_for_no_more(script: Path) -> None:
    write(script, '[[ $* == --find ]] && echo "/a folder"')
    assert find_driver() == Path("/a folder")
    write(script, "exit 3")
    assert find_driver() is None


@pytest.mark.parametrize("status", [EXIT_MISSING, EXIT_INCOMPLETE, 1])
def test_a_failure_says_what_it_was_for_and_to_look_above(
    script: Path, capfd: pytest.CaptureFixture[str], status: int
) -> None:
    write(script, f"echo missing: nodejs >&2; exit {status}")
    with pytest.raises(TestbedError, match=r"takes node .* the lines above say") as raised:
        set_up_recording()
    missing = status == EXIT_MISSING
    assert isinstance(raised.value, MissingError) == missing
    assert raised.value.exit_code == (EXIT_MISSING if missing else EXIT_INCOMPLETE)
    assert capfd.readouterr().err == "missing: nodejs\n"


def test_a_script_that_was_interrupted_interrupts(script: Path) -> None:
    write(script, "exit 130")
    with pytest.raises(KeyboardInterrupt):
        set_up_recording()


@pytest.mark.usefixtures("not_below_nohup")
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_the_script_and_waits_for_it(
    script: Path, tmp_path: Path, number: int
) -> None:
    """What must come to its end does, however often it is asked to stop."""
    begun, told, go, ended = (tmp_path / name for name in ("begun", "told", "go", "ended"))
    write(
        script,
        f"trap ': >{told}' TERM; : >{begun}; "
        f"until [[ -e {go} ]]; do sleep 0.01; done; : >{ended}; exit 130",
    )
    log = tmp_path / "log"
    with (
        log.open("wb") as stderr,
        proc.started(command(script), env=environment(), stderr=stderr) as child,
    ):
        for path in (begun, told):
            deadline = time.monotonic() + 60
            while not path.exists():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            child.send_signal(number)
        assert child.poll() is None
        go.touch()
        assert child.wait(60) == 130
    assert ended.exists()
    assert log.read_text().strip() == "error: interrupted"


def test_it_may_ask_on_the_terminal(script: Path, tmp_path: Path) -> None:
    write(script, '[[ -t 0 && -t 2 ]] && read -r -p "password: " it </dev/tty && echo "/got $it"')
    terminal = ("script", "--quiet", "--return", "--command", shlex.join(command(script)))
    done = proc.run((*terminal, "/dev/null"), env=environment(), stdin="secret\n", check=False)
    assert "recording with /got secret" in done.stdout
    assert done.returncode == 0
