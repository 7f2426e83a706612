"""What the load generator and the event server send, as a capture in their namespaces shows it."""

from __future__ import annotations

import socket
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.namespace import Namespace
from testbed.capture.packets import ACK, FIN, RST, SYN, Packet, read_capture
from testbed.capture.tcpdump import capture
from tests.capture.test_capture import await_all_read
from tests.lab.wires import LEFT_ADDRESS, RIGHT_ADDRESS, Ends
from tests.native.load import Load, Programs, Serving

pytestmark = pytest.mark.root

FEW = ("--rate", "50", "--connections", "10")
PORT = 8080
TARGET = f"{RIGHT_ADDRESS}:{PORT}"
SERVER = socket.inet_aton(RIGHT_ADDRESS)
FAST_OPEN = "net.ipv4.tcp_fastopen"
PORTS = "net.ipv4.ip_local_port_range"


class Seen:
    """The TCP packets of a capture by connection: the client's address and port."""

    def __init__(self) -> None:
        self.connections: dict[str, list[Packet]] = defaultdict(list)

    def read(self, pcap: Path) -> None:
        for packet in read_capture(pcap).packets:
            if packet.protocol == "TCP":
                client = packet.sender if packet.target == SERVER else packet.receiver
                self.connections[client].append(packet)

    @property
    def packets(self) -> list[Packet]:
        return [packet for each in self.connections.values() for packet in each]

    @property
    def syns(self) -> list[Packet]:
        return [packet for packet in self.packets if packet.opens]


@dataclass(frozen=True)
class Wire:
    """A client's and a server's namespace, and what runs and listens in them."""

    client: Namespace
    server: Namespace
    programs: Programs
    folder: Path

    def serving(self, *options: str) -> AbstractContextManager[Serving]:
        return self.programs.serving(
            self.folder, *options, address=RIGHT_ADDRESS, prefix=self.server.prefix
        )

    def generate(self, target: str, *options: str) -> Load:
        return self.programs.generate(target, *options, prefix=self.client.prefix)

    @contextmanager
    def seeing(self) -> Iterator[Seen]:
        """Capture while the block runs; afterwards what was seen is read."""
        seen, pcap = Seen(), self.folder / "client.pcap"
        log = self.folder / "tcpdump.log"
        with capture(self.client, "c0", pcap, log):
            yield seen
            await_all_read(self.client, log)
        seen.read(pcap)

    @contextmanager
    def listening(self, backlog: int) -> Iterator[None]:
        """A server that never accepts."""
        with self.server.entered():
            listener = socket.create_server((RIGHT_ADDRESS, PORT), backlog=backlog)
        with listener:
            yield

    @contextmanager
    def sysctl(self, name: str, value: str) -> Iterator[None]:
        """Another value at both ends."""
        ends = (self.client, self.server)
        before = [end.read_sysctl(name) for end in ends]
        try:
            for end in ends:
                end.write_sysctls({name: value})
            yield
        finally:
            for end, old in zip(ends, before, strict=True):
                end.write_sysctls({name: old})

    def add_sources(self, *last_bytes: int) -> str:
        """More addresses of the client, in a row; returns the first and the last."""
        made = [f"10.99.0.{number}" for number in last_bytes]
        for address in made:
            argv = ("ip", "-n", self.client.name, "address", "add", f"{address}/24", "dev", "c0")
            proc.run(argv)
        return f"{made[0]}-{made[-1]}"


@pytest.fixture
def wire(ends: Ends, programs: Programs, tmp_path: Path) -> Wire:
    return Wire(*ends, programs, tmp_path)


def sent(packets: list[Packet], flag: int) -> list[str]:
    """Who sent packets with this flag, in their order."""
    return [
        "client" if each.target == SERVER else "server" for each in packets if each.flags & flag
    ]


@pytest.mark.parametrize("end", ["client", "server"])
def test_an_ordinary_close_is_by_fins(wire: Wire, end: str) -> None:
    with wire.seeing() as seen, wire.serving() as serving:
        load = wire.generate(serving.target, *FEW, "--end", end)
    assert load.outcomes == {"completed": 10}
    assert len(seen.connections) == 10
    other = "server" if end == "client" else "client"
    for packets in seen.connections.values():
        assert sent(packets, FIN) == [end, other]
        assert sent(packets, RST) == []


def test_an_abortive_close_is_a_rst(wire: Wire) -> None:
    with wire.seeing() as seen, wire.serving() as serving:
        load = wire.generate(serving.target, *FEW, "--close", "rst")
    assert load.outcomes == {"completed": 10}
    assert serving.total("resets") == 10
    for packets in seen.connections.values():
        assert sent(packets, RST) == ["client"]
        assert sent(packets, FIN) == []


def test_a_time_out_is_an_abortive_close_too(wire: Wire) -> None:
    with wire.seeing() as seen, wire.listening(64):
        load = wire.generate(TARGET, *FEW, "--close", "rst", "--timeout-ms", "400")
    assert load.outcomes == {"timed_out": 10}
    assert all(sent(packets, RST) == ["client"] for packets in seen.connections.values())


def test_a_server_that_closes_with_a_rst(wire: Wire) -> None:
    with wire.seeing() as seen, wire.serving("--close", "rst") as serving:
        load = wire.generate(serving.target, *FEW, "--end", "server")
    assert load.outcomes == {"completed": 10}
    assert serving.total("closed") == 10
    for packets in seen.connections.values():
        assert sent(packets, RST) == ["server"]
        assert sent(packets, FIN) == []


@pytest.mark.parametrize("fast_open", ["0", "1"])
def test_a_request_in_the_syn(wire: Wire, fast_open: str) -> None:
    with wire.seeing() as seen, wire.serving("--fast-open", "64") as serving:
        load = wire.generate(serving.target, *FEW, "--fast-open", fast_open)
    assert load.outcomes == {"completed": 10}
    assert load.report["requests"] == serving.total("requests") == 10
    assert load.report["syns_with_data"] == 10 * int(fast_open)
    request = f"GET / HTTP/1.1\r\nHost: {serving.target}\r\n\r\n".encode()
    assert [syn.payload for syn in seen.syns] == [request if fast_open == "1" else b""] * 10


def test_a_cookie_is_asked_for_first(wire: Wire) -> None:
    asked = ("--clients", "1", "--connections", "5", "--fast-open", "1")
    with (
        wire.sysctl(FAST_OPEN, "3"),
        wire.seeing() as seen,
        wire.serving("--fast-open", "64") as serving,
    ):
        load = wire.generate(serving.target, *asked)
    assert load.outcomes == {"completed": 5}
    assert [bool(syn.payload) for syn in seen.syns] == [False, True, True, True, True]
    assert load.report["syns_with_data"] == 4


def test_fast_open_that_the_client_may_not_use(wire: Wire) -> None:
    with wire.sysctl(FAST_OPEN, "0"):
        load = wire.generate(TARGET, *FEW, "--fast-open", "1")
    assert load.status == 1
    assert FAST_OPEN in load.complaint


@pytest.mark.parametrize("fast_open", ["0", "1"])
def test_a_refusal_is_tried_again_twice(wire: Wire, fast_open: str) -> None:
    with wire.seeing() as seen:
        load = wire.generate(TARGET, *FEW, "--retry-refused", "2", "--fast-open", fast_open)
    assert load.outcomes == {"refused": 10}
    assert (load.report["retries"], len(seen.syns)) == (20, 30)
    for packets in seen.connections.values():
        assert [packet.flags & (SYN | RST) for packet in packets] == [SYN, RST]


def test_syns_that_are_sent_again(wire: Wire) -> None:
    with wire.listening(0), wire.seeing() as seen:
        load = wire.generate(TARGET, *FEW, "--timeout-ms", "1600")
    # A queue of length 0 holds one connection (listen(2)).
    assert load.outcomes == {"timed_out": 10}
    assert load.report["established"] >= 1
    assert load.report["timed_out_connecting"] == 10 - load.report["established"] > 0
    assert load.report["syn_retransmissions"] > 0
    assert len(seen.syns) == 10 + load.report["syn_retransmissions"]


def test_each_syn_ack_is_an_establishment(wire: Wire) -> None:
    with wire.seeing() as seen, wire.serving() as serving:
        load = wire.generate(serving.target, *FEW)
    answers = [packet for packet in seen.packets if packet.flags & (SYN | ACK) == SYN | ACK]
    assert load.report["established"] == len(answers) == 10


def test_sources_are_used_in_turn(wire: Wire) -> None:
    sources = wire.add_sources(11, 12, 13)
    with wire.seeing() as seen, wire.serving() as serving:
        asked = ("--rate", "100", "--connections", "30", "--source", sources)
        load = wire.generate(serving.target, *asked)
    assert load.outcomes == {"completed": 30}
    used = Counter(socket.inet_ntoa(syn.source) for syn in seen.syns)
    assert used == {"10.99.0.11": 10, "10.99.0.12": 10, "10.99.0.13": 10}


def test_no_ports_are_its_own_failure(wire: Wire) -> None:
    given = ("--rate", "1000", "--connections", "12", "--timeout-ms", "3000", "--source")
    with wire.sysctl(PORTS, "40000 40007"), wire.listening(64):
        load = wire.generate(TARGET, *given, LEFT_ADDRESS)
    assert load.outcomes == {"timed_out": 8, "unopened": 4}
    assert (load.status, load.report["own_limits"]) == (3, ["ports"])
    assert load.report["errors"] == {"EADDRNOTAVAIL": 4}


def test_more_sources_have_more_ports(wire: Wire) -> None:
    given = ("--rate", "1000", "--connections", "12", "--timeout-ms", "3000", "--source")
    sources = wire.add_sources(31, 32)
    with wire.sysctl(PORTS, "41000 41007"), wire.listening(64):
        load = wire.generate(TARGET, *given, sources)
    assert (load.status, load.outcomes) == (0, {"timed_out": 12})
