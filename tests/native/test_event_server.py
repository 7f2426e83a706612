"""The event server: its queue, its workers, how it answers and ends, and what its costs cost."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from testbed.base import proc
from tests.native.load import LOOPBACK, Programs, few_descriptors, free_port

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
OLD_REQUEST = b"GET / HTTP/1.0\r\n\r\n"


def connect(target: str) -> socket.socket:
    address, port = target.split(":")
    return socket.create_connection((address, int(port)), timeout=30)


def exchange(target: str, *pieces: bytes, until_the_end: bool = False) -> bytes:
    """What comes back for ``pieces``; the server may have to end the connection."""
    with connect(target) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            connection.sendall(piece)
        answer = connection.recv(1 << 20)
        while until_the_end and (part := connection.recv(1 << 20)):
            answer += part
    return answer


@pytest.mark.parametrize(
    ("request_", "ends"),
    [(REQUEST, False), (REQUEST.replace(b"a\r\n\r\n", b"a\r\nConnection: close\r\n\r\n"), True),
     (OLD_REQUEST, True),
     (OLD_REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: keep-alive\r\n\r\n"), False)],
)  # fmt: skip
def test_it_ends_what_the_request_ends(
    programs: Programs, tmp_path: Path, request_: bytes, ends: bool
) -> None:
    with programs.serving(tmp_path, "--response-bytes", "100") as server:
        answer = exchange(server.target, request_, until_the_end=ends)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n")
    assert body == b"x" * 100
    assert (b"Connection: close" in head) == ends
    assert (server.total("closed"), server.total("client_closed")) == (int(ends), int(not ends))


def test_a_request_in_pieces(programs: Programs, tmp_path: Path) -> None:
    with programs.serving(tmp_path) as server:
        pieces = [REQUEST[i : i + 1] for i in range(len(REQUEST))]
        assert exchange(server.target, *pieces).startswith(b"HTTP/1.1 200 OK")
    assert server.total("requests") == 1


@pytest.mark.parametrize(
    "nonsense", [b"EHLO a\r\n", b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"]
)
def test_what_it_does_not_serve(programs: Programs, tmp_path: Path, nonsense: bytes) -> None:
    with programs.serving(tmp_path) as server:
        assert exchange(server.target, nonsense) == b""
    assert (server.total("invalid"), server.total("responses"), server.status) == (1, 0, 0)


def test_a_response_larger_than_the_sockets_buffers(programs: Programs, tmp_path: Path) -> None:
    with programs.serving(tmp_path, "--response-bytes", str(1 << 24)) as server:
        answer = exchange(server.target, OLD_REQUEST, until_the_end=True)
    assert len(answer.partition(b"\r\n\r\n")[2]) == 1 << 24
    assert server.total("bytes_sent") == len(answer)


def test_the_backlog_is_the_kernels(programs: Programs, tmp_path: Path) -> None:
    with programs.serving(tmp_path, "--backlog", "37") as server:
        port = server.target.split(":")[1]
        shown = proc.run(("ss", "-Hltn", "sport", "=", port)).stdout.split()
    assert shown[2] == "37"


def test_the_longest_queue(programs: Programs, tmp_path: Path) -> None:
    """While it sleeps for the first, five more come; it sees them when it looks again."""
    price = ("--price-accept-ns", "500000000", "--accepts-at-once", "1")
    with programs.serving(tmp_path, *price) as server:
        waiting = [connect(server.target) for _ in range(6)]
        # The first of them has been accepted when its response is here.
        waiting[5].sendall(REQUEST)
        assert waiting[5].recv(100)
        for connection in waiting:
            connection.close()
    assert 1 <= server.total("queue_most") <= 6
    assert server.total("accepted") == 6


def test_a_full_queue_lets_nobody_in(programs: Programs, tmp_path: Path) -> None:
    price = ("--price-accept-ns", "1000000000", "--backlog", "1")
    with programs.serving(tmp_path, *price) as server:
        given = ("--rate", "100", "--connections", "20", "--timeout-ms", "500")
        load = programs.generate(server.target, *given)
    # One was accepted, or none yet, and two wait in a queue of length 1 (listen(2)).
    assert 2 <= load.report["established"] <= 4
    assert load.report["timed_out_connecting"] == 20 - load.report["established"]


def test_workers_share_what_comes(programs: Programs, tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    with programs.serving(tmp_path, "--workers", "2", "--processors", f"{cpu},{cpu}") as server:
        load = programs.generate(server.target, "--rate", "500", "--connections", "200")
    assert load.outcomes == {"completed": 200}
    each = [worker["accepted"] for worker in server.report["workers"]]
    assert sum(each) == server.total("responses") == 200
    assert min(each) > 0


def test_work_is_time_of_the_processor(programs: Programs, tmp_path: Path) -> None:
    with programs.serving(tmp_path, "--work-ns", "5000000") as server:
        programs.generate(server.target, "--clients", "1", "--connections", "20")
    assert server.total("processor_us") > 20 * 5000 / 2  # steps may be faster than when timed


def test_a_price_is_slept(programs: Programs, tmp_path: Path) -> None:
    """Each response is later by it, and the processor is not used for it."""
    with programs.serving(tmp_path, "--price-request-ns", "50000000") as server:
        load = programs.generate(server.target, "--clients", "1", "--connections", "10")
    # The server sleeps by the wall clock, which the machine may slew by up to 500 ppm (adjtime(3)).
    assert load.report["response_us"]["p50"] >= 0.999 * 50_000
    assert server.total("processor_us") < 10 * 50_000


def test_it_ends_with_its_lifetime(programs: Programs) -> None:
    target = f"{LOOPBACK}:{free_port()}"
    argv = (str(programs.folder / "event-server"), "--listen", target, "--lifetime-ms", "50")
    done = proc.run(argv, timeout_s=30)
    first, last = done.stdout.splitlines()
    assert first == f'{{"listening": "{target}", "work_steps": 0}}'
    assert '"accepted": 0' in last


def test_no_descriptors_are_its_own_failure(programs: Programs, tmp_path: Path) -> None:
    """All clients connect before the first has had its replies."""
    with programs.serving(tmp_path, prefix=few_descriptors(12)) as server:
        given = ("--clients", "15", "--connections", "15", "--requests", "50")
        programs.generate(server.target, *given)
    assert server.total("lacked") > 0
    assert server.status == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [((), '--listen: "" is not ADDRESS:PORT of IPv4'), (("--listen", "127.0.0.1:0"), "--listen: "),
     (("--listen", "127.0.0.1:80", "--backlog", "0"), "--backlog: "),
     (("--listen", "127.0.0.1:80", "--close", "both"), '--close: "both" is neither fin nor rst'),
     (("--listen", "127.0.0.1:80", "--workers", "2", "--processors", "0"),
      '--processors: "0" is not one number for each of 2 workers')],
)  # fmt: skip
def test_bad_options_are_named(programs: Programs, options: tuple[str, ...], words: str) -> None:
    done = proc.run((str(programs.folder / "event-server"), *options), check=False)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_port_that_is_taken(programs: Programs) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        target = f"{LOOPBACK}:{taken.getsockname()[1]}"
        done = proc.run((str(programs.folder / "event-server"), "--listen", target), check=False)
    assert done.returncode == 1
    assert f"event-server: {target}: Address already in use" in done.stderr
