"""Faults in a load time, its requests and its packets: none of them may pass as proven.

What clients say is altered in what one real load of each wrote down, which is judged again; the
others are in guest code, or packets that are written into a capture.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from testbed.base import places
from testbed.base.errors import EXIT_OK
from testbed.model import CAPTURE_FILE, OBSERVATION_FILE
from testbed.pages.build import build_page
from testbed.results.folder import read_records
from testbed.traces.catalogue import read_all
from tests.acceptance.altered import COMMAND, KNOBS, PAGE, Alter, Done, Frames, Seen, given
from tests.acceptance.house import House, Plant, assert_ok, assert_refused
from tests.capture.packets import ACK, CLIENT, SERVER, Capture

pytestmark = pytest.mark.guest

CLIENTS = ("graph", "wget2", "chromium")
ENDED = "the load ended after "
NOT_OF_BYTES = " times that the client tells are not those of bytes in the capture"
TOO_SOON = "the load "
"""Ended sooner than the last byte came, or than a request of the browser."""


@pytest.fixture(scope="module", autouse=True)
def page(house: House) -> None:
    house.take(PAGE)


@pytest.fixture(scope="module")
def loads(house: House, page: None) -> dict[str, Done]:
    """One real load of each client, and a command that loads the page's document."""
    ran = house.run(**KNOBS | {"client": list(CLIENTS)})
    assert ran.code == EXIT_OK, ran.said
    config = house.folder / "own.toml"
    config.write_text(COMMAND)
    folder = house.folder / "results" / "command"
    assert house.command("run", str(config), "-o", str(folder))[0] == EXIT_OK
    digest, built = house.archive(PAGE).digest, build_page(house.pages / PAGE, house.cache)
    done = {name: Done(ran.one(client=name), ran.folder, digest, built=built) for name in CLIENTS}
    (record,) = read_records(folder)
    return done | {"command": Done(record, folder, digest)}


def _requests(seen: Seen) -> list[dict[str, Any]]:
    requests: list[dict[str, Any]] = seen["load"]["requests"]
    return requests


def times(factor: float) -> Alter:
    """The client's clock is faster or slower, for all that it tells."""

    def alter(seen: Seen) -> None:
        load = seen["load"]
        load["plt_ms"] *= factor
        load["ttfb_ms"] = None if load["ttfb_ms"] is None else load["ttfb_ms"] * factor
        for request in load["requests"]:
            request["end_ms"] *= factor

    return alter


def load_time(factor: float) -> Alter:
    """The load time alone is another one."""
    return lambda seen: seen["load"].update(plt_ms=seen["load"]["plt_ms"] * factor)


def last_request(add_ms: float) -> Alter:
    """The request that ended last ended at another time, and with it the load."""

    def alter(seen: Seen) -> None:
        last = max(_requests(seen), key=lambda request: float(request["end_ms"]))
        last["end_ms"] += add_ms
        seen["load"]["plt_ms"] += add_ms

    return alter


def _of_another_visit(seen: Seen) -> None:
    """The server was a round trip further away when this was written down."""
    for request in _requests(seen):
        request["end_ms"] += 20.0
    seen["load"]["plt_ms"] += 20.0


def _one_more(seen: Seen) -> None:
    _requests(seen).append(_requests(seen)[-1])


def _one_less(seen: Seen) -> None:
    _requests(seen).pop(0)


ALTERED: dict[str, tuple[Alter, str]] = {
    "constant": (given("load", "plt_ms", to=1000.0), ENDED),
    "nothing": (given("load", "plt_ms", to=0.5), TOO_SOON),
    "3 % less": (times(0.97), ENDED),
    "1 % more": (times(1.01), ENDED),
    "5 % more": (times(1.05), ENDED),
    "the load time alone 3 % less": (load_time(0.97), TOO_SOON),
    "the load time alone 2 % more": (load_time(1.02), ENDED),
    "the last request sooner": (last_request(-20.0), ENDED),
    "the last request later": (last_request(+20.0), ENDED),
    "another visit": (_of_another_visit, ENDED),
    "a request too many": (_one_more, "answered requests, the server answered "),
    "a request too few": (_one_less, "requests, the client names "),
}
OF_A_COMMAND: dict[str, tuple[Alter, str]] = {
    "constant": (given("executed", "duration_ms", to=20.0), "took 20.000 ms, and its packets "),
    "nothing": (given("executed", "duration_ms", to=0.0), "took 0.000 ms, and its packets "),
    "3 % less": (
        lambda seen: seen["executed"].update(duration_ms=seen["executed"]["duration_ms"] * 0.97),
        " ms, and its packets ",
    ),
}
CASES = [
    *((client, name, *fault) for client in CLIENTS for name, fault in ALTERED.items()),
    *(("command", name, *fault) for name, fault in OF_A_COMMAND.items()),
    ("graph", "0.1 % less", times(0.999), ENDED),
    ("graph", "0.1 % more", times(1.001), ENDED),
    (
        "graph",
        "one request's end",
        lambda seen: _requests(seen)[2].update(end_ms=_requests(seen)[2]["end_ms"] - 5.0),
        NOT_OF_BYTES,
    ),
    ("chromium", "the first byte", given("load", "ttfb_ms", to=5.0), NOT_OF_BYTES),
]


@pytest.mark.parametrize("client", [*CLIENTS, "command"])
def test_without_a_fault_it_is_proven(loads: dict[str, Done], client: str, tmp_path: Path) -> None:
    assert_ok(loads[client].judge(lambda _: None, tmp_path))


@pytest.mark.parametrize(
    ("client", "alter", "says"),
    [pytest.param(c, alter, says, id=f"{c}: {name}") for c, name, alter, says in CASES],
)
def test_what_a_client_says(
    loads: dict[str, Done], client: str, alter: Alter, says: str, tmp_path: Path
) -> None:
    record = loads[client].judge(alter, tmp_path)
    assert record.outcome == "unproven"
    assert record.reason is not None and says in record.reason, record.reason


SHOWN = ("fcp_ms", "ttfb_ms", "plt_ms", "lcp_ms", "fp_ms", "cls", "dcl_ms", "settled_ms")
OF_REQUESTS = (
    *("start_ms", "end_ms", "dns_ms", "connect_ms", "queued_ms", "blocked_ms", "tls_ms"),
    *("transfer_bytes", "status"),
)
SMALL = 0.05
"""Below that a tenth of it is below the grain of a browser's clock."""


def of_request(place: int, name: str, factor: float) -> Alter:
    """A number of one request is larger or smaller."""

    def alter(seen: Seen) -> None:
        value = _requests(seen)[place][name]
        _requests(seen)[place][name] = type(value)(value * factor)

    return alter


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_each_number_that_a_browser_tells(
    loads: dict[str, Done], factor: float, tmp_path: Path
) -> None:
    """All of a load's, and those of each kind of the first and of the last request."""
    done = loads["chromium"]
    told = json.loads(
        (done.folder / "trials" / done.record.trial_id / OBSERVATION_FILE).read_text()
    )["load"]
    for name in SHOWN:
        value = told[name]
        if value is not None and value > SMALL:
            record = done.judge(given("load", name, to=value * factor), tmp_path / name)
            assert record.outcome == "unproven", name
    for place in (0, len(told["requests"]) - 1):
        for name in OF_REQUESTS:
            value = told["requests"][place][name]
            if value is None or value <= SMALL:
                continue
            record = done.judge(of_request(place, name, factor), tmp_path / f"{name}-{place}")
            assert record.outcome == "unproven", (name, place)


def _earlier_than_bytes(seen: Seen) -> None:
    """graph asks for what a document names before that has come."""
    _requests(seen)[1]["start_ms"] -= 5.0


def test_a_gap_of_graph(loads: dict[str, Done], tmp_path: Path) -> None:
    record = loads["graph"].judge(_earlier_than_bytes, tmp_path)
    assert record.outcome == "unproven"
    assert record.reason is not None and "of graph's rules" in record.reason, record.reason


def _another_mss(frames: list[bytearray]) -> None:
    for frame in frames:
        at = frame.find(b"\x02\x04\x05\xb4", 54)  # an MSS of 1460, of a SYN or a SYN-ACK
        if at > 0:
            frame[at + 2 : at + 4] = (700).to_bytes(2, "big")


def _a_strange_packet(frames: list[bytearray]) -> None:
    stranger = next(frame for frame in reversed(frames) if frame[47] & 0x08)  # it has data
    stranger[34:36] = (9999).to_bytes(2, "big")


@pytest.mark.parametrize("what", ["command", "graph"])
@pytest.mark.parametrize(
    ("frames", "says"),
    [
        pytest.param(_another_mss, " with an MSS of 700, the MTU is 1500", id="another MSS on all"),
        pytest.param(_a_strange_packet, " not of the load", id="a strange packet"),
    ],
)
def test_a_command_and_a_load_are_held_against_the_same_checks(
    loads: dict[str, Done], what: str, frames: Frames, says: str, tmp_path: Path
) -> None:
    record = loads[what].judge(lambda _: None, tmp_path, frames=frames)
    assert record.outcome == "unproven"
    assert record.reason is not None and says in record.reason, record.reason


TRACED = '\n[link]\ntrace_down = "lte-drive-down"\n'


@pytest.mark.nightly(but="37")
@pytest.mark.parametrize("asked", [f'page = "{PAGE}"\nclient = "graph"', COMMAND], ids=len)
def test_a_trace_at_another_time(house: House, asked: str, tmp_path: Path) -> None:
    """By the lab's own word its trace began a second later than packets show."""
    config = tmp_path / "traced.toml"
    config.write_text(asked + TRACED)
    folder = tmp_path / "results"
    code, said = house.command("run", str(config), "-o", str(folder))
    assert code == EXIT_OK, said
    (record,) = read_records(folder)
    traces = read_all(["lte-drive-down"], None, places.TRACES)
    done = Done(record, folder, house.archive(PAGE).digest, traces)
    assert_ok(done.judge(lambda _: None, tmp_path / "as-it-was"))

    def later(seen: Seen) -> None:
        knobs = seen["lab"]["knobs"]
        knobs["down.trace_origin_ns"] = str(int(knobs["down.trace_origin_ns"]) + 1_000_000_000)

    reason = done.judge(later, tmp_path / "later").reason
    assert reason is not None and " lte-drive-down" in reason, reason


def test_packets_of_others(loads: dict[str, Done], tmp_path: Path) -> None:
    done = loads["graph"]
    folder = shutil.copytree(done.folder, tmp_path / "results")
    pcap = folder / "trials" / done.record.trial_id / CAPTURE_FILE
    others = Capture()
    for number in range(20):
        others.add((CLIENT, 5000), (SERVER, 6000), ACK, number, 0, b"stranger")
    file = tmp_path / "others.pcap"
    others.write(file)
    pcap.write_bytes(pcap.read_bytes() + file.read_bytes()[24:])
    record = Done(done.record, folder, done.archive).judge(lambda _: None, tmp_path)
    assert record.outcome == "unproven"
    assert record.reason is not None and "not of the load" in record.reason, record.reason


TCP = "self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)"
ONE = "number == 1 and self.socket.setsockopt("
STOPPED = """\
        import subprocess, time
        wait_s = order.wait_until_ns / 1e9 - time.time() + 1.1  # the guest forgets for a second
        words = (
            f"sleep {wait_s}; n=$(grep -l nginx /proc/[0-9]*/comm | cut -d/ -f3); "
            "kill -STOP $n; sleep 0.5; kill -CONT $n"
        )
        subprocess.Popen(words, shell=True)
        self.feed.begin("""


@pytest.mark.nightly(but="^(MSS|server that thinks)")
@pytest.mark.parametrize(
    ("module", "old", "new", "says"),
    [
        pytest.param(
            "client/graph_process/connection.py",
            TCP,
            f"{TCP}; {ONE}socket.IPPROTO_TCP, socket.TCP_MAXSEG, 700)",
            "opened by the client with other TCP options",
            id="MSS of one connection",
        ),
        pytest.param(
            "client/graph_process/connection.py",
            TCP,
            f"{TCP}; {ONE}socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)",
            "opened by the client with other TCP options or another window",
            id="receive buffer of one connection",
        ),
        pytest.param(
            "server/think.py",
            "    if not (condition.server_think_ms",
            "    condition = replace(condition, server_think_ms=3.0)\n"
            "    if not (condition.server_think_ms",
            "servers were silent ",
            id="server that thinks for 3 ms",
        ),
        pytest.param(
            "client/graph.py",
            "        self.feed.begin(",
            STOPPED,
            "servers were silent ",
            id="server stopped for 0.5 s",
        ),
    ],
)
def test_a_fault_in_guest_code(
    house: House, plant: Plant, module: str, old: str, new: str, says: str
) -> None:
    plant(module, old, new)
    assert_refused(house.run(**KNOBS), "unproven", says)
