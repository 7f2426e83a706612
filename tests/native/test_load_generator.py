"""The load generator against servers that answer, refuse, keep silent or break off."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections import Counter
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from testbed.base import proc
from tests.native.load import (
    LOOPBACK,
    Load,
    Programs,
    Script,
    few_descriptors,
    following,
    free_port,
    read_request,
)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
ABORT = struct.pack("ii", 1, 0)


def answering(*pieces: bytes, abort: bool = False) -> Script:
    """Send ``pieces`` for each request, one segment each; end the connection after the first."""

    def script(connection: socket.socket, _: int) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if read_request(connection):
            for piece in pieces:
                connection.sendall(piece)
            if abort:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)

    return script


def keep_silent(connection: socket.socket, _: int) -> None:
    """Read until the client has gone."""
    while connection.recv(65536):
        pass


def test_a_fixed_rate_is_started_completed_and_timed(programs: Programs, tmp_path: Path) -> None:
    with programs.serving(tmp_path) as server:
        load = programs.generate(server.target, "--rate", "500", "--duration-ms", "1000")
    assert load.status == 0, load.complaint
    assert load.outcomes == {"completed": 500}
    report = load.report
    assert (report["started_per_s"], report["completed_per_s"]) == (500.0, 500.0)
    assert report["established"] == report["requests"] == report["responses"] == 500
    assert (server.status, server.total("accepted"), server.total("responses")) == (0, 500, 500)
    assert report["bytes_received"] == server.total("bytes_sent")
    assert report["bytes_sent"] == server.total("bytes_received")
    for times in ("lateness_us", "establishment_us", "response_us"):
        assert report[times]["count"] == 500
        assert 0 <= report[times]["p50"] <= report[times]["p99"] <= report[times]["max"]
    for kind, count in (("started", 500), ("completed", 500), ("failed", 0)):
        assert sum(second[kind] for second in report["seconds"]) == count
    assert report["own_limits"] == []


def test_poisson_arrivals_of_a_seed(programs: Programs, tmp_path: Path) -> None:
    given = ("--rate", "400", "--arrivals", "poisson", "--duration-ms", "500")
    with programs.serving(tmp_path) as server:
        runs = [programs.generate(server.target, *given, "--seed", seed) for seed in "112"]
    first, again, other = (load.report["connections"] for load in runs)
    assert first == again
    # Five standard deviations of a Poisson number around its mean.
    assert first["started"] == pytest.approx(200, abs=71)
    assert first != other


def test_the_warm_up_is_not_counted(programs: Programs, tmp_path: Path) -> None:
    given = ("--rate", "100", "--warm-up-ms", "300", "--duration-ms", "400")
    with programs.serving(tmp_path) as server:
        load = programs.generate(server.target, *given)
    assert load.report["connections"]["started"] == load.report["response_us"]["count"] == 40
    assert server.total("accepted") == 70
    assert sum(second["started"] for second in load.report["seconds"]) == 70


def test_a_number_of_connections(programs: Programs, tmp_path: Path) -> None:
    with programs.serving(tmp_path) as server:
        load = programs.generate(server.target, "--rate", "1000", "--connections", "7")
    assert load.outcomes == {"completed": 7}


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("end", ["client", "server"])
def test_several_requests_on_a_connection(
    programs: Programs, tmp_path: Path, version: str, end: str
) -> None:
    given = ("--rate", "100", "--connections", "10", "--requests", "3")
    with programs.serving(tmp_path) as server:
        load = programs.generate(server.target, *given, "--http", version, "--end", end)
    assert load.outcomes == {"completed": 10}
    assert load.report["requests"] == load.report["responses"] == 30
    assert (server.total("accepted"), server.total("requests")) == (10, 30)
    ended = ("closed", "client_closed") if end == "server" else ("client_closed", "closed")
    assert [server.total(name) for name in ended] == [10, 0]


def test_the_request_is_as_asked(programs: Programs) -> None:
    requests: list[bytes] = []

    def script(connection: socket.socket, _: int) -> None:
        requests.append(read_request(connection))
        connection.sendall(OK)

    given = ("--rate", "10", "--connections", "1", "--path", "/a?b", "--host", "www.a.test")
    with following(script) as server:
        for more in ((), ("--request-bytes", "300"), ("--http", "1.0"), ("--end", "server")):
            programs.generate(server.target, *given, *more)
    shortest, longer, old, ended = requests
    assert shortest == b"GET /a?b HTTP/1.1\r\nHost: www.a.test\r\n\r\n"
    assert len(longer) == 300
    assert old == b"GET /a?b HTTP/1.0\r\nHost: www.a.test\r\nConnection: keep-alive\r\n\r\n"
    assert ended == b"GET /a?b HTTP/1.1\r\nHost: www.a.test\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("script", "outcome"),
    [(answering(*(OK[i : i + 1] for i in range(len(OK)))), "completed"),
     (answering(b"HTTP/1.0 200 OK\r\n\r\n", b"until the end"), "completed"),
     (answering(b"HTTP/1.1 200 OK\ncontent-length:0\n\n"), "completed"),
     (answering(OK[:-1]), "cut_short"), (answering(OK[:20]), "cut_short"),
     (answering(), "cut_short"), (answering(OK[:-1], abort=True), "reset"),
     (answering(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"), "invalid"),
     (answering(b"220 mail.example ESMTP\r\n"), "invalid"),
     (answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "invalid")],
)  # fmt: skip
def test_how_a_response_ends(programs: Programs, script: Script, outcome: str) -> None:
    with following(script) as server:
        load = programs.generate(server.target, "--rate", "100", "--connections", "5")
    assert load.outcomes == {outcome: 5}
    assert load.status == 0


def test_a_server_that_ends_before_all_requests(programs: Programs) -> None:
    with following(answering(OK)) as server:
        given = ("--rate", "100", "--connections", "5", "--requests", "2")
        load = programs.generate(server.target, *given)
    assert sum(load.outcomes.values()) == 5
    assert set(load.outcomes) <= {"cut_short", "reset"}
    assert load.report["responses"] == 5


def test_silence_is_timed_out_from_the_intended_start(programs: Programs) -> None:
    given = ("--rate", "50", "--duration-ms", "200", "--timeout-ms", "3000")
    with following(keep_silent) as server:
        load = programs.generate(server.target, *given)
    assert load.outcomes == {"timed_out": 10}
    assert load.report["established"] == load.report["requests"] == 10
    assert load.report["timed_out_connecting"] == 0
    assert load.report["response_us"] is None
    assert load.report["outstanding_most"] == 10
    assert load.status == 0


def test_syns_without_an_answer_are_sent_again(programs: Programs) -> None:
    with socket.create_server((LOOPBACK, 0), backlog=0) as full:
        port = full.getsockname()[1]
        fillers = [socket.create_connection((LOOPBACK, port))]
        given = ("--rate", "100", "--connections", "4", "--timeout-ms", "2000")
        load = programs.generate(f"{LOOPBACK}:{port}", *given)
        for filler in fillers:
            filler.close()
    assert load.outcomes == {"timed_out": 4}
    assert load.report["timed_out_connecting"] == 4
    assert load.report["established"] == 0
    # The kernel's first time-out is one second (RFC 6298).
    assert load.report["syn_retransmissions"] == 4


@pytest.mark.parametrize("retries", [0, 1, 2])
def test_refused_connections_are_tried_again(programs: Programs, retries: int) -> None:
    given = ("--rate", "100", "--connections", "5", "--retry-refused", str(retries))
    load = programs.generate(f"{LOOPBACK}:{free_port()}", *given)
    assert load.outcomes == {"refused": 5}
    assert load.report["retries"] == 5 * retries
    assert load.report["errors"] == {"ECONNREFUSED": 5 * (retries + 1)}
    assert load.report["established"] == 0


def test_a_reset_of_what_was_established_is_not_tried_again(programs: Programs) -> None:
    def script(connection: socket.socket, _: int) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)

    with following(script) as server:
        given = ("--rate", "100", "--connections", "5", "--retry-refused", "2")
        load = programs.generate(server.target, *given)
    assert load.outcomes == {"reset": 5}
    assert (load.report["retries"], load.report["established"]) == (0, 5)
    assert server.accepted == 5


def test_a_closed_loop_has_one_request_for_each_client(programs: Programs) -> None:
    """Replies are held back until three requests are there: a fourth would be missing later."""
    together = threading.Barrier(3)

    def script(connection: socket.socket, _: int) -> None:
        if read_request(connection):
            together.wait(60)
            connection.sendall(OK)

    with following(script) as server:
        load = programs.generate(server.target, "--clients", "3", "--connections", "60")
    assert load.outcomes == {"completed": 60}
    assert load.report["outstanding_most"] == 3
    assert server.accepted == 60
    assert load.report["lateness_us"] is None


def test_a_closed_loop_waits_for_the_reply(programs: Programs) -> None:
    given = ("--clients", "3", "--duration-ms", "400", "--timeout-ms", "3000")
    with following(keep_silent) as server:
        load = programs.generate(server.target, *given)
    assert load.outcomes == {"timed_out": 3}


def test_a_log_that_the_tools_of_hdrhistogram_read(programs: Programs, tmp_path: Path) -> None:
    log = tmp_path / "times.hlog"
    given = ("--rate", "200", "--duration-ms", "1500", "--histograms", str(log))
    with programs.serving(tmp_path) as server:
        load = programs.generate(server.target, *given)
    sums = {name: HdrHistogram(1, 3_600_000_000_000, 3) for name in ("response", "establishment")}
    reader = HistogramLogReader(str(log), HdrHistogram(1, 3_600_000_000_000, 3))
    intervals: Counter[str] = Counter()
    while interval := reader.get_next_interval_histogram():
        sums[interval.tag].add(interval)
        intervals[interval.tag] += 1
    reader.close()
    assert intervals["response"] >= 2
    for name, whole in sums.items():
        times = load.report[f"{name}_us"]
        assert whole.get_total_count() == times["count"] == 300
        assert whole.get_max_value() == pytest.approx(times["max"] * 1e3, rel=0.001)
        assert whole.get_value_at_percentile(50) == pytest.approx(times["p50"] * 1e3, rel=0.001)


def test_a_rate_that_cannot_be_held_is_its_own_failure(programs: Programs, tmp_path: Path) -> None:
    given = ("--rate", "1000000", "--duration-ms", "300", "--timeout-ms", "3000")
    with programs.serving(tmp_path, "--backlog", "4096") as server:
        load = programs.generate(server.target, *given, late=False)
    assert load.status == 3
    assert "lateness" in load.report["own_limits"]
    assert "load-generator: its own limit, not the server's: lateness" in load.complaint


def test_no_descriptors_are_its_own_failure(programs: Programs) -> None:
    given = ("--rate", "1000", "--connections", "40", "--timeout-ms", "500")
    with following(keep_silent) as server:
        load = programs.generate(server.target, *given, prefix=few_descriptors(16))
    assert load.status == 3
    assert load.report["own_limits"] == ["descriptors"]
    assert load.outcomes["unopened"] == load.report["errors"]["EMFILE"] > 0
    assert sum(load.outcomes.values()) == 40


def test_it_ends_early_with_all_that_it_knows(programs: Programs, tmp_path: Path) -> None:
    program = str(programs.folder / "load-generator")
    output = tmp_path / "report.json"
    with following(keep_silent) as server, output.open("wb") as stream:
        argv = (program, "--target", server.target, "--clients", "2", "--duration-ms", "600000")
        with proc.started(argv, stdout=stream) as child:
            while server.accepted < 2:
                assert child.poll() is None
                threading.Event().wait(0.01)
            child.terminate()
            status = child.wait(30)
    load = Load(status, json.loads(output.read_text()), "")
    assert (load.status, load.outcomes) == (4, {"unfinished": 2})


@pytest.mark.parametrize(
    ("options", "words"),
    [((), "--rate: either --rate (open loop) or --clients (closed loop)"),
     (("--rate", "5", "--clients", "5"), "--clients: either"),
     (("--rate", "0"), '--rate: "0" is not a whole number from 1 to 1000000'),
     (("--rate", "5x"), '--rate: "5x" is not a whole number'),
     (("--rate",), "--rate: needs a value"), (("--speed", "5"), "--speed: there is no such option"),
     (("fast",), "fast: options begin with --"),
     (("--rate=5", "--arrivals=uniform"), '--arrivals: "uniform" is neither fixed nor poisson'),
     (("--rate=5", "--request-bytes=20"), "--request-bytes: 20 is too few: it takes 38"),
     (("--rate=5", "--source=10.0.0.9-10.0.0.1"), "--source: "),
     (("--rate=5", "--target=192.0.2.1:80"), "neither a loopback nor a private address"),
     (("--rate=5", "--target=10.0.0.1"), '--target: "10.0.0.1" is not ADDRESS:PORT of IPv4')],
)  # fmt: skip
def test_bad_options_are_named(programs: Programs, options: tuple[str, ...], words: str) -> None:
    load = programs.generate(f"{LOOPBACK}:80", *options)
    assert load.status == 2
    assert words in load.complaint
    assert load.report == {}
