"""The lab under Mininet's prompt on the virtual kernel: scripted, and typed."""

from __future__ import annotations

import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from testbed.base import places
from testbed.base.errors import EXIT_CONFIGURATION, EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_OK
from testbed.results.folder import read_records
from tests.acceptance.house import House, assert_ok
from tests.typist import typing

pytestmark = pytest.mark.guest

QUICK = places.ROOT / "configs" / "quick.toml"
SHELL = (sys.executable, "-m", "firstflight", "shell", str(QUICK), "--only", "tfo=true")
SCRIPT = """\
nodes
client curl -s -o /dev/null -w %{http_code} http://en.wikipedia.org.p.test/0.html
client python3 -c "import socket; print(socket.create_connection(('10.0.2.2', 7)))" ; echo $?
server ss -lnt
client echo server
"""
OWN = """\
# What follows is for a day on which all of it is tried.
pingall
pingpair
client ping -c 1 near
server ping -c 2 far
client tcpdump -i c0 -c 2 -w /tmp/x.pcap &
client ping -c 4 server
client tcpdump -nr /tmp/x.pcap icmp
source /nowhere
net
links
x nobody xclock
iperf client server
py server.pexec("cat /sys/class/net/s0/address")
exit
client echo never
"""


@pytest.fixture
def wikipedia(house: House) -> None:
    house.take("wikipedia")


def perform(house: House, folder: Path, script: str, *words: str) -> tuple[int, str]:
    """Exit code and output of a session of these lines; its results are in ``folder``."""
    (folder / "script").write_text(script)
    told = ("--script", str(folder / "script"), "-o", str(folder / "results"))
    return house.command("shell", str(QUICK), "--only", "tfo=true", *words, *told)


@pytest.mark.usefixtures("wikipedia")
def test_a_script_in_virtual_time(house: House, tmp_path: Path) -> None:
    code, said = perform(house, tmp_path, SCRIPT)
    assert code == EXIT_OK, said
    assert "lab> nodes\navailable nodes are: \nclient far near server\n" in said
    assert "\n200" in said  # the page, by its name, from its server
    assert "Connection refused" in said  # of the server's own address
    assert "10.10.0.1:80" in said
    assert "lab> client echo server\n10.0.2.2\n" in said  # as Mininet does
    (record,) = read_records(tmp_path / "results")
    assert_ok(record)
    assert record.proof is not None and record.proof.connections == 2


@pytest.mark.usefixtures("wikipedia")
def test_mininets_own_commands_work(house: House, tmp_path: Path) -> None:
    code, said = perform(house, tmp_path, OWN)
    assert code == EXIT_OK, said
    assert "0% dropped (12/12 received)" in said
    # As much as the link carries, beside headers: 256 kbit/s up.
    assert re.search(r"Results: \['24\d Kbits/sec', '\d+ Kbits/sec'\]", said), said
    assert "('02:00:00:00:02:02\\n', '', 0)" in said
    assert "length 64\n" in said.partition("tcpdump -nr")[2]
    assert "source: cannot read '/nowhere'" in said
    assert "\nclient c0:n0\nnear n0:c0 n1:f0\nfar f0:n1 f1:s0\nserver s0:f1\n" in said
    assert "\nc0<->n0 (OK OK) \nn1<->f0 (OK OK) \nf1<->s0 (OK OK) \n" in said
    assert "*** KeyError: 'nobody'" in said
    assert "day" in said and "Unknown command" not in said
    assert said.rstrip().endswith("lab> exit")


@pytest.mark.usefixtures("wikipedia")
def test_a_script_finds_files_of_ones_own(house: House, tmp_path: Path) -> None:
    own = tmp_path / "own"
    (own / "below").mkdir(parents=True)
    (own / "script").write_text("a file of this name, too\n")
    (own / "below" / "tool").write_text("#!/bin/sh\necho a tool of mine\n")
    (own / "below" / "tool").chmod(0o755)
    (own / "more").write_text("client {folder}/below/tool\n")
    lines = "client cat {folder}/script\nsource {folder}/more\nclient echo %{folder}\n"
    code, said = perform(house, tmp_path, lines, "--set", f"command_folder={own}")
    assert code == EXIT_OK, said
    assert "lab> client cat {folder}/script\na file of this name, too\n" in said
    assert "lab> client {folder}/below/tool\na tool of mine\n" in said
    assert said.endswith("\n%{folder}\n")
    (record,) = read_records(tmp_path / "results")
    assert_ok(record)


@pytest.mark.usefixtures("wikipedia")
def test_a_folder_of_ones_own_that_is_not_there_is_told(
    house: House, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        perform(house, tmp_path, "nodes\n", "--set", "command_folder=nowhere")[0]
        == EXIT_CONFIGURATION
    )
    assert "command_folder: no folder " in capsys.readouterr().err


@pytest.mark.usefixtures("wikipedia")
def test_a_line_that_does_not_end_is_named(
    house: House, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "client echo first\nclient cat\nclient echo last\n"
    code, said = perform(house, tmp_path, script, "--set", "timeout_s=600")
    assert code == EXIT_INCOMPLETE
    assert said.endswith("lab> client cat\n")
    assert "`client cat` did not end: a session has 600 s" in capsys.readouterr().err


def descendants(pid: int) -> Iterator[tuple[int, str]]:
    """Processes that ``pid`` started, and those that they started, with their states (ps(1))."""
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            for child in listed.read_text().split():
                state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
                yield int(child), state
                yield from descendants(int(child))


def wait_until_stopped(pid: int, timeout_s: float = 60.0) -> None:
    """Until all inside of the jail that ``pid`` started is stopped, or has ended."""
    deadline = time.monotonic() + timeout_s
    while True:
        everyone = list(descendants(pid))
        states = [state for _, state in everyone[1:]]  # the jail itself waits
        if len(states) > 1 and not set(states) - {"T", "Z"}:
            return
        assert time.monotonic() < deadline, states
        time.sleep(0.05)


def test_typed_in_virtual_time_the_clock_stands_still_at_the_prompt(tmp_path: Path) -> None:
    results = tmp_path / "results"
    with typing((*SHELL, "-o", str(results))) as typist:
        assert "lab> " in typist.read_until("lab> ")
        first = typist.perform("client date +%s%N", "lab> ")
        wait_until_stopped(typist.child.pid)
        time.sleep(1.0)
        wait_until_stopped(typist.child.pid, 0.0)  # no processor has been taken
        second = typist.perform("client date +%s%N", "lab> ")
        assert 0 < int(second) - int(first) < 50_000_000  # ns: a start of `date`, no second
        assert "on the host's kernel" in typist.perform("xterm client", "lab> ")
        typist.resize(132, 50)
        assert typist.perform("sh stty size", "lab> ") == "50 132"
        second = typist.perform("client date +%s%N", "lab> ")
        # What has its own time takes that, whatever it takes here.
        assert "time 99" in typist.perform("client ping -c 100 server", "lab> ")
        third = typist.perform("client date +%s%N", "lab> ")
        assert 99e9 < int(third) - int(second) < 100e9
        typist.type("client ping serv\x7f\x7f\x7f\x7fserver\r")  # edited; it has no end
        typist.read_until("icmp_seq=30")
        typist.type("\x03")
        assert "packets transmitted" in typist.read_until("lab> ")
        typist.type(
            "client echo one-$((1 + 0))\rnodes\rclient echo ünï-$((40 + 2))\rclient "
        )  # pasted
        said = typist.read_until("client ", after="ünï-42")
        assert said.index("one-1") < said.index("available nodes") < said.index("ünï-42")
        assert typist.perform("echo begun-$((40 + 2))", "lab> ") == "begun-42"
        typist.type("client cat\r")
        typist.read_until("client cat\r\n")
        typist.type("to the program\r")
        assert "to the program" in typist.read_until("to the program", after="to the program\r\n")
        typist.type("\x03")
        typist.read_until("lab> ")
        typist.type("\x04")  # Ctrl-D ends the session
        typist.read_until("output and capture")
        assert typist.child.wait() == EXIT_OK
    (record,) = read_records(results)
    assert_ok(record)
    assert record.proof is not None and not record.proof.problems
    typed = results / "trials" / record.trial_id / "terminal.in"
    assert typed.read_bytes().endswith(b"to the program\r\x03\x04")


@pytest.mark.parametrize("key", ["\x1c", None], ids=["given up", "killed"])
def test_a_typed_session_that_does_not_end_leaves_nobody(tmp_path: Path, key: str | None) -> None:
    with typing((*SHELL, "-o", str(tmp_path / "results"))) as typist:
        assert "lab> " in typist.read_until("lab> ")
        there = [pid for pid, _ in descendants(typist.child.pid)]
        assert there
        if key is None:
            typist.child.kill()
        else:
            typist.type("client python3 -c 'while True: pass'\r")  # takes no virtual time, ever
            time.sleep(1.0)
            typist.type(key)
            assert "interrupted" in typist.read_until("what there is of it")
        status = typist.child.wait()
        assert status == (-signal.SIGKILL if key is None else EXIT_INTERRUPTED)
        deadline = time.monotonic() + 30.0
        while any(Path(f"/proc/{pid}/exe").exists() for pid in there):
            assert time.monotonic() < deadline
            time.sleep(0.05)
