"""Windows of a prompt on the host's kernel."""

from __future__ import annotations

import os
import pty
import socket
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import pytest

from firstflight.cli import terminal


@pytest.mark.parametrize(
    ("display", "said"), [("", "there is no display"), (":7", "apt-get install xterm")]
)
def test_where_no_window_can_be_opened_the_remedy_is_said_and_its_shell_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    display: str, said: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.setattr("shutil.which", lambda _: None)
    path = tmp_path / "terminal-server-1"
    held, shell = pty.openpty()

    def hand_over() -> None:
        visitor, _ = door.accept()
        socket.send_fds(visitor, [b"\n"], [held])
        os.close(held)
        visitor.close()

    with socket.socket(socket.AF_UNIX) as door, ExitStack() as windows:
        door.bind(str(path))
        door.listen()
        there = Thread(target=hand_over)
        there.start()
        terminal._open_window("server", path, windows)
        there.join()
    assert said in capfd.readouterr().out
    assert os.read(shell, 1) == b""  # hung up
    os.close(shell)
