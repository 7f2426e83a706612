"""Faults in tickets, early data, key shares and QUIC: none of them may pass as proven.

What is left of one real load of two visits over HTTP/2, and of one over HTTP/3, is altered and
judged again; the others are in what the lab, the server and the client are made to do.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.base.errors import EXIT_OK
from testbed.capture.packets import Packet, is_quic, read_capture
from testbed.model import CAPTURE_FILE, KEYS_FILE
from testbed.model.record import Record
from tests.acceptance.altered import Alter, Done, Seen, given
from tests.acceptance.house import House, Plant, assert_bad, assert_ok
from tests.capture.packets import write_frames

pytestmark = pytest.mark.guest

TABLE, PAGE = "wikipedia", "wikipedia-h2"
KNOBS = {
    "page": PAGE, "client": "chromium", "rtt_ms": 20, "web_server": "nginx-quic",
    "tls_resumption": True, "early_data": True, "visits": 2, "idle_s": 600,
}  # fmt: skip
Left = Callable[[Path], object]
"""Changes a folder of what a load left."""


@pytest.fixture(scope="module", autouse=True)
def page(house: House) -> None:
    house.take(TABLE, PAGE)


@pytest.fixture(scope="module")
def loads(house: House, page: None) -> dict[str, Done]:
    ran = house.run(**KNOBS, protocol=["h2", "h3"])
    assert ran.code == EXIT_OK, ran.said
    digest = house.archive(PAGE).digest
    return {name: Done(ran.one(protocol=name), ran.folder, digest) for name in ("h2", "h3")}


def judge(done: Done, tmp_path: Path, alter: Alter, left: Left = lambda _: None) -> Record:
    """The record, had the load left and observed something else."""
    folder = shutil.copytree(done.folder, tmp_path / "results")
    left(folder / "trials" / done.record.trial_id)
    return Done(done.record, folder, done.archive).judge(alter, tmp_path)


def served(number: int, **fields: object) -> Alter:
    """The server's log has something else of a connection."""
    return lambda seen: seen["connections"][number].update(fields)


def resumed(to: bool) -> Alter:
    """The server's log says of a connection the contrary of what it says."""

    def alter(seen: Seen) -> None:
        next(each for each in seen["connections"] if each["resumed"] != to)["resumed"] = to

    return alter


def early(more: int) -> Alter:
    """The server's log has another number of early requests."""

    def alter(seen: Seen) -> None:
        next(each for each in seen["connections"] if each["early"])["early"] += more

    return alter


def early_of_none(seen: Seen) -> None:
    """The server's log has early data of a connection that sent none."""
    next(each for each in seen["connections"] if not each["early"])["early"] = 1


def protocols(old: str, new: str) -> Alter:
    """The server's log has one origin's requests over another protocol."""

    def alter(seen: Seen) -> None:
        told = seen["replay"]["protocols"]
        name = next(iter(told))
        told[name.replace(old, new)] = told.pop(name)

    return alter


def swapped(seen: Seen) -> None:
    """The visits' beginnings are each other's."""
    load, (first,) = seen["load"], seen["load"]["earlier"]
    load["began_ns"], first["began_ns"] = first["began_ns"], load["began_ns"]


def packets(*wanted: Callable[[Packet], bool], drop: bool = True) -> Left:
    """The capture lacks the first packet that is ``wanted`` in all ways, or has it twice."""

    def left(folder: Path) -> None:
        kept = list(read_capture(folder / CAPTURE_FILE).packets)
        at = next(n for n, packet in enumerate(kept) if all(is_so(packet) for is_so in wanted))
        kept[at : at + 1] = [] if drop else [kept[at]] * 2
        write_frames(folder / CAPTURE_FILE, [(packet.at_ns, packet.frame) for packet in kept])

    return left


def of_type(number: int) -> Callable[[Packet], bool]:
    """Whether a datagram begins with a long header of a type."""
    return lambda packet: is_quic(packet) and packet.payload[0] & 0xB0 == 0x80 | number << 4


def is_short(packet: Packet) -> bool:
    """Whether a datagram of a server has data of responses."""
    return is_quic(packet) and packet.source_port == 443 and packet.payload_bytes > 1000


def changed(at: int, to: bytes) -> Left:
    """The first datagram has other bytes somewhere."""

    def left(folder: Path) -> None:
        kept = []
        done = False
        for packet in read_capture(folder / CAPTURE_FILE).packets:
            frame = bytearray(packet.frame)
            if is_quic(packet) and not done:
                start = len(frame) - len(packet.payload) + at
                frame[start : start + len(to)] = to
                done = True
            kept.append((packet.at_ns, bytes(frame)))
        write_frames(folder / CAPTURE_FILE, kept)

    return left


def keys(change: Callable[[list[str]], object]) -> Left:
    """The secrets that the client wrote down are others."""

    def left(folder: Path) -> None:
        lines = (folder / KEYS_FILE).read_text().splitlines()
        change(lines)
        (folder / KEYS_FILE).write_text("\n".join(lines) + "\n")

    return left


def another_secret(label: str) -> Left:
    """One secret is another one."""

    def change(lines: list[str]) -> None:
        at = next(n for n, line in enumerate(lines) if line.startswith(label))
        lines[at] = lines[at][:-4] + ("0000" if lines[at][-4:] != "0000" else "1111")

    return keys(change)


def cut(folder: Path) -> None:
    """The capture keeps the beginning of frames only."""
    kept = read_capture(folder / CAPTURE_FILE).packets
    write_frames(folder / CAPTURE_FILE, [(packet.at_ns, packet.frame) for packet in kept], 256)


def stranger(folder: Path) -> None:
    """The capture has a datagram of QUIC that no load sent."""
    kept = [(packet.at_ns, packet.frame) for packet in read_capture(folder / CAPTURE_FILE).packets]
    frame = bytearray(max((frame for _, frame in kept if frame[23] == UDP), key=len))
    frame[34:38] = b"\x10\x00\x01\xbb"
    write_frames(folder / CAPTURE_FILE, [*kept, (kept[-1][0], bytes(frame))])


def outage(folder: Path) -> None:
    """No datagram came to the client for 200 ms."""
    kept = read_capture(folder / CAPTURE_FILE).packets
    began_ns = next(packet.at_ns for packet in kept if is_short(packet))
    left = [
        (packet.at_ns, packet.frame)
        for packet in kept
        if packet.target_port == 443 or not 0 <= packet.at_ns - began_ns < 200_000_000
    ]
    write_frames(folder / CAPTURE_FILE, left)


UDP = 17
UNOPENED = "cannot be opened by the secrets that the client wrote down"


def nothing(_: Seen) -> None:
    """What was observed stays."""


CLOSED = "do not open the handshake of"
LEFT: list[tuple[str, str, Left, str]] = [
    ("h3", "no secrets", lambda f: (f / KEYS_FILE).unlink(), UNOPENED),
    ("h2", "no secrets", lambda f: (f / KEYS_FILE).unlink(), CLOSED),
    ("h3", "empty secrets", keys(list.clear), UNOPENED),
    ("h2", "empty secrets", keys(list.clear), CLOSED),
    ("h3", "one secret of 1-RTT", another_secret("SERVER_TRAFFIC_SECRET_0"), UNOPENED),
    ("h3", "one secret of 0-RTT", another_secret("CLIENT_EARLY"), UNOPENED),
    ("h3", "one secret of a handshake", another_secret("SERVER_HANDSHAKE"), UNOPENED),
    ("h2", "one secret of a handshake", another_secret("SERVER_HANDSHAKE"), CLOSED),
    ("h2", "one secret of early data", another_secret("CLIENT_EARLY"), "early data"),
    ("h3", "an Initial packet is missing", packets(of_type(0)), "not in the capture"),
    ("h3", "a 0-RTT packet is missing", packets(of_type(1)), "not in the capture"),
    ("h3", "a response's packet is missing", packets(is_short), "not in the capture"),
    ("h3", "another version", changed(1, b"\x6b\x33\x43\xcf"), "version 0x6b3343cf"),
    ("h3", "another connection id", changed(6, bytes(4)), UNOPENED),
    ("h3", "cut frames", cut, UNOPENED),
    ("h2", "cut frames", cut, "was not captured whole"),
    ("h3", "a stranger's datagram", stranger, "QUIC"),
    ("h2", "a stranger's datagram", stranger, "used QUIC"),
    ("h3", "no datagrams for 200 ms", outage, "not in the capture"),
]  # fmt: skip
SAID: list[tuple[str, str, Alter, str]] = [
    ("h2", "not resumed", resumed(False), "whether a session was resumed"),
    ("h3", "resumed", resumed(True), "whether a session was resumed"),
    ("h3", "more early requests", early(1), "how many early requests"),
    ("h3", "fewer early requests", early(-1), "how many early requests"),
    ("h2", "early requests of none", early_of_none, "early data of"),
    ("h3", "early requests of none", early_of_none, "early"),
    ("h2", "another group", served(0, group="X25519MLKEM768"), "the group of"),
    ("h3", "another group", served(0, group="prime256v1"), "the group of"),
    ("h3", "requests over HTTP/2", protocols("HTTP/3.0", "HTTP/2.0"), "protocol = h3, but the"),
    ("h2", "requests over HTTP/1.1", protocols("HTTP/2.0", "HTTP/1.1"), "protocol = h2, but the"),
    ("h3", "another port", served(0, client="10.0.0.2:9"), "the capture does not have"),
    ("h3", "visits swapped", swapped, "visit"),
    ("h3", "load time", given("load", "plt_ms", to=100.0), "the load "),
    ("h3", "datagrams of the client's kernel",
     given("counters", "client", "UdpInDatagrams", to=10**6), "datagrams, the capture shows"),
]  # fmt: skip


@pytest.mark.parametrize("protocol", ["h2", "h3"])
def test_without_a_fault_it_is_proven(
    loads: dict[str, Done], protocol: str, tmp_path: Path
) -> None:
    record = judge(loads[protocol], tmp_path, nothing)
    assert_ok(record)
    assert record.proof is not None
    first, second = record.proof.visits
    assert (first.resumed, first.early) == (0, 0)
    assert second.resumed and second.accepted == second.early > 0 < second.early_requests
    assert (second.quic > 0, second.tcp > 0) == (protocol == "h3", protocol == "h2")


@pytest.mark.parametrize(
    ("protocol", "left", "says"),
    [pytest.param(p, left, says, id=f"{p}: {name}") for p, name, left, says in LEFT],
)
def test_what_a_load_left(
    loads: dict[str, Done], protocol: str, left: Left, says: str, tmp_path: Path
) -> None:
    record = judge(loads[protocol], tmp_path, nothing, left)
    assert record.outcome != "ok"
    assert record.reason is not None and says in record.reason, record.reason


@pytest.mark.parametrize(
    ("protocol", "alter", "says"),
    [pytest.param(p, alter, says, id=f"{p}: {name}") for p, name, alter, says in SAID],
)
def test_what_was_observed(
    loads: dict[str, Done], protocol: str, alter: Alter, says: str, tmp_path: Path
) -> None:
    assert_bad(judge(loads[protocol], tmp_path, alter), says, "unproven")


def test_secrets_of_another_load(loads: dict[str, Done], tmp_path: Path) -> None:
    h2 = loads["h2"].folder / "trials" / loads["h2"].record.trial_id

    def left(folder: Path) -> None:
        shutil.copy(h2 / KEYS_FILE, folder / KEYS_FILE)

    record = judge(loads["h3"], tmp_path, nothing, left)
    assert record.reason is not None and UNOPENED in record.reason


WITHOUT: dict[str, object] = {"early_data": False, "tls_resumption": False}
NGINX, BLOCKS = "server/nginx.py", "server/blocks.py"
TICKETS = "    ssl_session_tickets on;", "    ssl_session_tickets off;"
NO_TICKETS = "    ssl_session_tickets off;\n    ssl_conf_command NumTickets 0;"
TIMED = "    ssl_session_timeout 7d;\n"
GIVEN = f"    ssl_session_tickets on;\n{TIMED}    ssl_conf_command NumTickets 2;"
EARLY = "    ssl_early_data on;", "    ssl_early_data off;"
ALWAYS = "EARLY_DATA if handshakes.early_data", "EARLY_DATA if handshakes.tickets"
GROUP = '"browser": "X25519:prime256v1"'
SMALL: dict[str, object] = {"key_share": "x25519"}
UNMODIFIED = 'return seat.opening.key_share == "x25519"', "return False"
FORCED = "--origin-to-force-quic-on=*", "--origin-to-force-quic-on=none.test:443"
ONE_LESS = "    if listener.h3:", '    if listener.h3 and not listener.host.startswith("meta."):'
ASKED = "    if not (condition.server_think_ms"
THINKS = (
    ASKED,
    f"    condition = replace(condition, server_think_ms=3.0)\n{ASKED}",
)
AUTHORITY = "        _require_authority(order)"
DROPPING = (
    AUTHORITY,
    "        import subprocess, time\n"
    "        rule = 'ip -n server rule {} ipproto 17 priority 50 blackhole'\n"
    "        wait_s = order.wait_until_ns / 1e9 - time.time() + 1.2\n"
    "        words = f\"sleep {wait_s}; {rule.format('add')}; sleep .2; {rule.format('delete')}\"\n"
    "        subprocess.Popen(words, shell=True)\n" + AUTHORITY,
)
"""For 200 ms of the first visit the server's datagrams go nowhere."""
PLANTED: list[tuple[str, str, dict[str, object], str, tuple[str, str], str]] = [
    ("h2", "tickets off", {}, NGINX, TICKETS, "did not take the ticket of"),
    ("h3", "tickets off", {}, NGINX, TICKETS, "did not take the ticket of"),
    ("h2", "one ticket", {}, NGINX, ("NumTickets 2", "NumTickets 1"), "other tickets than 2"),
    ("h3", "one ticket", {}, NGINX, ("NumTickets 2", "NumTickets 1"), "other tickets than 2"),
    ("h2", "early data off", {}, NGINX, EARLY, "early_data = true, but "),
    ("h3", "early data off", {}, NGINX, EARLY, "early_data = true, but "),
    ("h2", "tickets unasked", WITHOUT, NGINX, (NO_TICKETS, GIVEN), "tls_resumption = false"),
    ("h3", "tickets unasked", WITHOUT, NGINX, (NO_TICKETS, GIVEN), "tls_resumption = false"),
    ("h3", "early data unasked", {"early_data": False}, NGINX, ALWAYS, "not asked for there"),
    ("h2", "large group", {}, NGINX, (GROUP, '"browser": "X25519MLKEM768"'), "server chose x255"),
    ("h3", "other group", {}, NGINX, (GROUP, '"browser": "prime256v1"'), "another hello"),
    ("h2", "large hello", SMALL, "client/chromium/__init__.py", UNMODIFIED, "has more"),
    ("h3", "large hello", SMALL, "client/chromium/__init__.py", UNMODIFIED, "has more"),
    ("h3", "Retry", {}, BLOCKS, ("quic_retry off", "quic_retry on"), "by Retry"),
    ("h3", "GSO", {}, BLOCKS, ("quic_gso off", "quic_gso on"), "did not come out"),
    ("h3", "QUIC not forced", {}, "client/chromium/flags.py", FORCED, "another protocol"),
    ("h3", "UDP dropped for 200 ms", {}, "client/chromium/__init__.py", DROPPING,
     "server: a rule changed during the load"),
    ("h3", "an origin without", {}, BLOCKS, ONE_LESS, "meta."),
    ("h3", "server that thinks", {}, "server/think.py", THINKS, "servers were silent "),
    ("h2", "HTTP/1.1", {}, BLOCKS, ('" http2" if listener.h2', '"" if listener.h2'), "http/1.1"),
]  # fmt: skip


@pytest.mark.nightly(but="^h3: early data off$")
@pytest.mark.parametrize(
    ("protocol", "knobs", "module", "change", "says"),
    [pytest.param(p, *fault, id=f"{p}: {name}") for p, name, *fault in PLANTED],
)
def test_a_fault_in_guest_code(
    house: House, plant: Plant, protocol: str, knobs: dict[str, object], module: str,
    change: tuple[str, str], says: str,
) -> None:  # fmt: skip
    plant(module, *change)
    (record,) = house.run(**KNOBS | knobs, protocol=protocol).records
    assert_bad(record, says, "unproven", "failed", "lab_mismatch")
