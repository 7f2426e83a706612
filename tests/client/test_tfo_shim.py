"""The shim under a program that does not know of it, over a real link."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.base import proc
from tests.client.conftest import FAST_OPEN_WITHOUT_COOKIES, TwoEnds, compile_shim
from tests.client.replay import Serve
from tests.client.sites import Site

pytestmark = pytest.mark.root

WITH_COOKIES = "3"
SERVER = "10.83.0.11"
# What a client's event loop does, step by step; prints what each step answered.
PROGRAM = r"""
import errno, json, os, select, socket, sys
host, how = sys.argv[1:3]
seen = {}
sock = socket.socket()
sock.setblocking(how == "blocking")
seen["connect"] = errno.errorcode.get(sock.connect_ex((host, 80)), 0)
def peer():
    try:
        return sock.getpeername()[0]
    except OSError as error:
        return errno.errorcode[error.errno]
seen["peer"] = peer()
watch = select.epoll()
watch.register(sock.fileno(), select.EPOLLOUT)
seen["writable"] = bool(watch.poll(30))
if how != "blocking":
    seen["again"] = errno.errorcode.get(sock.connect_ex((host, 80)), 0)
    try:
        sock.recv(1, socket.MSG_PEEK)
    except OSError as error:
        seen["peek"] = errno.errorcode[error.errno]
if how == "flush":
    # Forget the cookie between connect() and the first write.
    os.system("ip tcp_metrics flush all >/dev/null")
request = b"GET / HTTP/1.1\r\nHost: www.page.test\r\nConnection: close\r\n\r\n"
if how == "large":
    request = request[:-2] + b"X: " + b"x" * 1800 + b"\r\n\r\n"
ways = {
    "sendmsg": lambda: sock.sendmsg([request]),
    "write": lambda: os.write(sock.fileno(), request),
    "writev": lambda: os.writev(sock.fileno(), [request]),
}
write = ways.get(how, lambda: sock.send(request))
try:
    seen["write"] = write()
except OSError as error:
    seen["write"] = errno.errorcode[error.errno]
    watch.poll(30)
    seen["later"] = write()
seen["peer after"] = peer()
sock.setblocking(True)
if how == "large":
    sock.sendall(request[seen["write"]:])
seen["answer"] = sock.recv(4096)[9:12].decode()
print(json.dumps(seen))
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shim") / "tfo.so"
    compile_shim(path)
    return path


Speak = Callable[..., tuple[dict[str, Any], list[int]]]


@pytest.fixture
def speak(two_ends: TwoEnds, shim: Path, site: Site, serve: Serve) -> Iterator[Speak]:
    """Run PROGRAM under the shim; gives its answers and the SYNs' payloads."""
    replay = serve(site)

    def once(
        sysctl: str, how: str = "send", host: str = SERVER, log: str = ""
    ) -> tuple[dict[str, Any], list[int]]:
        two_ends.set_fast_open(sysctl)
        replay.syns.payloads.clear()
        environment = {"LD_PRELOAD": str(shim), "TFO_SHIM_LOG": log, "PATH": "/usr/sbin:/usr/bin"}
        argv = ["env", *(f"{name}={value}" for name, value in environment.items())]
        python = (sys.executable, "-I", "-c", PROGRAM, host, how)
        done = proc.run([*two_ends.client.prefix, *argv, *python], timeout_s=60)
        return json.loads(done.stdout), list(replay.syns.payloads)

    yield once
    proc.run(["ip", "-n", two_ends.client.name, "tcp_metrics", "flush", "all"])


REQUEST_BYTES = 58
# An Ethernet segment less its headers and the room that Linux keeps for TCP options.
SYN_BYTES = 1420


@pytest.mark.parametrize("how", ["send", "sendmsg", "write", "writev", "blocking"])
def test_the_syn_carries_the_first_write(how: str, speak: Speak) -> None:
    seen, payloads = speak(FAST_OPEN_WITHOUT_COOKIES, how)
    assert seen["connect"] == 0
    assert seen["peer"] == SERVER
    assert seen["peer after"] == SERVER
    assert seen["writable"]
    assert seen.get("again", "EISCONN") == "EISCONN"
    assert seen.get("peek", "EAGAIN") == "EAGAIN"
    assert seen["write"] == REQUEST_BYTES
    assert seen["answer"] == "200"
    assert payloads == [REQUEST_BYTES]


def test_what_does_not_fit_the_syn_follows_it(speak: Speak) -> None:
    """As a ClientHello with a post-quantum key does."""
    seen, payloads = speak(FAST_OPEN_WITHOUT_COOKIES, "large")
    assert seen["connect"] == 0
    assert seen["answer"] == "200"
    (payload,) = payloads
    assert seen["write"] == payload  # the rest is the caller's to write, as with a full buffer
    assert payload == SYN_BYTES


def test_without_the_client_bit_it_is_a_plain_handshake(speak: Speak) -> None:
    seen, payloads = speak("0")
    assert seen["connect"] == "EINPROGRESS"
    assert seen["peer"] in (SERVER, "ENOTCONN")  # the handshake may have ended meanwhile
    assert seen["writable"]
    assert seen["write"] == REQUEST_BYTES
    assert seen["answer"] == "200"
    assert payloads == [0]


def test_the_first_connection_fetches_a_cookie_and_the_second_uses_it(speak: Speak) -> None:
    first, without = speak(WITH_COOKIES)
    second, with_cookie = speak(WITH_COOKIES)
    assert (first["connect"], without) == ("EINPROGRESS", [0])
    assert (second["connect"], with_cookie) == (0, [REQUEST_BYTES])
    assert first["answer"] == second["answer"] == "200"


def test_a_cookie_lost_before_the_write_looks_like_a_full_buffer(speak: Speak) -> None:
    speak(WITH_COOKIES)
    seen, payloads = speak(WITH_COOKIES, "flush")
    assert seen["connect"] == 0
    assert seen["write"] == "EAGAIN"
    assert seen["later"] == REQUEST_BYTES
    assert seen["answer"] == "200"
    assert payloads == [0]


def test_loopback_is_left_alone(speak: Speak, tmp_path: Path) -> None:
    log = tmp_path / "log"
    speak(FAST_OPEN_WITHOUT_COOKIES, log=str(log))
    assert f"peer={SERVER}:80 option=0 connect=0\n" in log.read_text()
    log.unlink()
    with pytest.raises(proc.CommandError, match=r"Refused|BrokenPipe|EPIPE"):
        speak(FAST_OPEN_WITHOUT_COOKIES, host="127.0.0.1", log=str(log))
    assert not log.exists()
