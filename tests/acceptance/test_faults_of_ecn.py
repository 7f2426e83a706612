"""ECN in real loads, negotiated, marked and told as asked; and faults that may not pass as proven.

Most faults are in the capture of a real load, which is judged again; beside them, first flights on
a lossy link.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.base.errors import EXIT_OK
from testbed.model import Proof
from tests.acceptance.altered import Done, Frames, given
from tests.acceptance.house import House, Plant, assert_bad, assert_ok, assert_refused

pytestmark = pytest.mark.guest

PAGE, FILE = "wikipedia", "file-60k"
KNOBS: dict[str, Any] = {"page": PAGE, "client": "graph", "rtt_ms": 20}
ECN, OF_SERVER, OF_CLIENT = (f"tcp.sysctl.{end}tcp_ecn" for end in ("", "server.", "client."))
ALGORITHM = "net.ipv4.tcp_congestion_control"
RED = "red limit 131072 min 6000 max 40000 avpkt 1000 burst 10 ecn"
CLASS_AT, PROTOCOL_AT, SOURCE_AT, FLAGS_AT = 15, 23, 26, 46
"""Of a frame: class, protocol and source in its IPv4 header, and the flags of TCP, with AE."""
TCP, CE, ECT_0 = 6, 3, 2
SYN, ACK, ECE, CWR, AE = 0x2, 0x10, 0x40, 0x80, 0x100
LONG = 250
"""A frame of so many bytes has data."""
MODES: dict[str, dict[str, Any]] = {
    "off": {ECN: 0}, "classic": {ECN: 1}, "accurate": {ECN: 3},
    "marked": {ECN: 1, "link.qdisc": RED}, "accurate, marked": {ECN: 3, "link.qdisc": RED},
    "off at the server": {OF_CLIENT: 1, OF_SERVER: 0},
    "off at the client": {OF_CLIENT: 2, OF_SERVER: 1}, "DCTCP": {"tcp.congestion_control": "dctcp"},
}  # fmt: skip


@pytest.fixture(scope="module")
def loads(house: House) -> dict[str, Done]:
    house.take(PAGE)
    done = {}
    for name, knobs in MODES.items():
        ran = house.run(**KNOBS | knobs)
        (record,) = ran.records
        assert_ok(record)
        done[name] = Done(record, ran.folder, house.archive(PAGE).digest)
    return done


def counted(done: Done) -> dict[str, int]:
    """What the proof of a load counts of ECN."""
    assert isinstance(done.record.proof, Proof)
    return done.record.proof.ecn


def test_ecn_is_negotiated_marked_and_told_as_asked(loads: dict[str, Done]) -> None:
    ecn = {name: counted(done) for name, done in loads.items()}
    assert ecn["off"] == ecn["off at the server"] == ecn["off at the client"] == {}
    for name, mode in (("classic", "classic"), ("accurate", "accurate"), ("DCTCP", "classic")):
        connections = loads[name].record.proof
        assert connections is not None and ecn[name][mode] == connections.connections
        assert ecn[name].keys() == {mode, "down.data", "down.ect0", "up.data", "up.ect0"}
    marked = ecn["marked"]
    assert marked["down.ce"] > 0 and marked["up.ece"] >= marked["down.ce"]
    assert marked["down.cwr"] > 0 and "up.ace" not in marked
    accurate = ecn["accurate, marked"]
    assert accurate["up.ace"] == accurate["down.ce"] > 0 and "up.ece" not in accurate


def _segments(frames: list[bytearray], *, down: bool, flags: int = 0) -> Iterator[bytearray]:
    """TCP frames of a direction that have ``flags``; the servers' addresses begin with 10.10."""
    for frame in frames:
        of_way = frame[PROTOCOL_AT] == TCP and (frame[SOURCE_AT + 1] == 10) == down
        if of_way and _flags(frame) & flags == flags:
            yield frame


def _flags(frame: bytearray) -> int:
    return int.from_bytes(frame[FLAGS_AT : FLAGS_AT + 2], "big")


def _with_data(frames: list[bytearray]) -> bytearray:
    """A packet with data from the middle of the load, down."""
    data = [f for f in _segments(frames, down=True) if len(f) >= LONG and not _flags(f) & SYN]
    return data[len(data) // 2]


def _set_class(value: int) -> Frames:
    def change(frames: list[bytearray]) -> None:
        _with_data(frames)[CLASS_AT] = value

    return change


def _set_flags(*, down: bool, of: int, on: int = 0, off: int = 0, place: int = 0) -> Frames:
    """Change flags of one TCP packet in a direction that has those ``of``."""

    def change(frames: list[bytearray]) -> None:
        frame = list(_segments(frames, down=down, flags=of))[place]
        frame[FLAGS_AT : FLAGS_AT + 2] = (_flags(frame) & ~off | on).to_bytes(2, "big")

    return change


def _bleached(frames: list[bytearray]) -> None:
    for frame in _segments(frames, down=True):
        frame[CLASS_AT] = 0


def _never_told(frames: list[bytearray]) -> None:
    for frame in _segments(frames, down=False):
        if not _flags(frame) & SYN:
            frame[FLAGS_AT + 1] &= 0xFF ^ ECE


IN_CAPTURES: dict[str, tuple[str, Frames, str]] = {
    "ECT cleared": ("classic", _set_class(0), "1 packets with new data are not ECT"),
    "ECT cleared, AccECN": ("accurate", _set_class(0), "1 packets with new data are not ECT"),
    "all ECT cleared": ("DCTCP", _bleached, "packets with new data are not ECT"),
    "CE planted": ("classic", _set_class(CE), "1 packets came down marked CE, the queue marked 0"),
    "CE planted, no ECN": ("off", _set_class(CE), "1 packets are of ECN, on connections that"),
    "ECT planted": ("off", _set_class(ECT_0), "1 packets are of ECN, on connections that"),
    "CE and not told": ("classic", _set_class(CE), "none of the CE marks of 1 connections"),
    "marks never told": ("marked", _never_told, "the client reported none of the CE marks of "),
    "told without a mark": ("classic", _set_flags(down=False, of=ACK, on=ECE, place=5),
                            "the client reported CE marks on 1 connections without any"),
    "told by the server": (
        "classic", _set_flags(down=True, of=ACK, on=ECE, place=5),
        "the server reported CE marks, and no queue on the way up marked a packet",
    ),
    "a SYN that does not ask": ("classic", _set_flags(down=False, of=SYN, off=ECE | CWR),
                                "SYNs ask for no ECN, as asked of the client they ask for classic"),
    "a SYN that asks for less": (
        "accurate", _set_flags(down=False, of=SYN, off=AE),
        "SYNs ask for classic ECN, as asked of the client they ask for accurate",
    ),
    "a SYN-ACK that does not grant": (
        "classic", _set_flags(down=True, of=SYN, off=ECE),
        "connections negotiated none ECN, as asked of both ends it is classic",
    ),
    "a SYN that asks unasked": ("off", _set_flags(down=False, of=SYN, on=ECE | CWR),
                                "SYNs ask for classic ECN, as asked of the client they ask for no"),
}  # fmt: skip


@pytest.mark.parametrize(("mode", "frames", "says"), IN_CAPTURES.values(), ids=IN_CAPTURES)
def test_faults_in_a_capture(
    loads: dict[str, Done], mode: str, frames: Frames, says: str, tmp_path: Path
) -> None:
    assert_bad(loads[mode].judge(lambda _: None, tmp_path, frames=frames), says, "unproven")


@pytest.mark.parametrize(
    ("asked", "performed", "says"),
    [("classic", "off at the server", "negotiated none ECN, as asked of both ends it is "),
     ("classic", "off at the client", "SYNs ask for no ECN, as asked of the client they ask "),
     ("accurate", "classic", "SYNs ask for classic ECN, as asked of the client they ask for "),
     ("DCTCP", "off", "SYNs ask for no ECN, as asked of the client they ask for classic")],
)  # fmt: skip
def test_a_load_of_another_mode(
    loads: dict[str, Done], asked: str, performed: str, says: str, tmp_path: Path
) -> None:
    """Another algorithm, or ECN off at an end, while all that was read back says as asked."""
    record = loads[asked].judge(lambda _: None, tmp_path, capture_of=loads[performed])
    assert_bad(record, says, "unproven")


@pytest.mark.parametrize(
    ("mode", "knob", "value"),
    [("classic", "server.net.ipv4.tcp_ecn", "0"), ("accurate", "client.net.ipv4.tcp_ecn", "1"),
     ("DCTCP", f"server.{ALGORITHM}", "cubic"), ("DCTCP", f"client.{ALGORITHM}", "reno")],
)  # fmt: skip
def test_another_value_read_back(
    loads: dict[str, Done], mode: str, knob: str, value: str, tmp_path: Path
) -> None:
    record = loads[mode].judge(given("lab", "knobs", knob, to=value), tmp_path)
    assert_bad(record, f"{knob} was read back as '{value}'", "lab_mismatch")


@pytest.mark.nightly(but="^3$")
@pytest.mark.parametrize("loss_pct", [0.3, 3])
def test_a_larger_window_on_a_lossy_link(house: House, plant: Plant, loss_pct: float) -> None:
    """The server sends one segment more, and what is read back of it says as asked."""
    knobs = {"page": FILE, "client": "graph", "loss_pct": loss_pct, "rtt_ms": 100}
    house.take(FILE)
    assert house.run(**knobs).code == EXIT_OK
    plant("lab/tcp.py", '{"initcwnd": spec.initcwnd_segments}',
          '{"initcwnd": spec.initcwnd_segments + 1}')  # fmt: skip
    plant("lab/tcp.py", 'str(_read_metrics(state, "server").get("initcwnd"))', '"10"')
    ran = house.run(**knobs)
    assert_refused(ran, "unproven", "have up to 11 segments", "asked was an initial window of 10")
