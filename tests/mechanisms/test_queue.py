"""Queueing before the line by both ends' captures: waits, drops and marks, and what contradicts."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from testbed.capture.packets import read_capture
from testbed.capture.recorder import MOST, RECORDED_BYTES, recorded
from testbed.capture.transits import Transits, describe_queueing, read_transits
from testbed.lab.path import read_devices
from testbed.mechanisms.queue.proof import check_queueing
from testbed.model import LinkSpec, PageLoad, Queueing
from testbed.proof.visits import split_visits
from tests.capture.packets import ACK, CLIENT, SERVER, START_NS, SYN, Capture, write_frames
from tests.evidence import found
from tests.lab.wires import RIGHT_ADDRESS, joined

LINK = LinkSpec(rtt_ms=20, down_kbit=12_000, up_kbit=12_000)
"""A packet of 1500 bytes takes 1 ms on its line."""
SIZE = 1500 - 40
_CLASS_AT = 15
DOWN, UP = ((SERVER, 80), (CLIENT, 2000)), ((CLIENT, 2000), (SERVER, 80))


@dataclass
class Link:
    """Packets of 1500 bytes, each sent at one end, and received at the other if it came."""

    client: Capture = field(default_factory=Capture)
    server: Capture = field(default_factory=Capture)
    number: int = 0
    load: PageLoad | None = None

    def cross(
        self, sent_ms: float, waited_ms: float | None, *, up: bool = False, marked: bool = False
    ) -> None:
        """One packet that waited so long; ``None``: it did not come."""
        self.number += 1
        ends, seq = UP if up else DOWN, 5000 + self.number
        sender, receiver = (self.client, self.server) if up else (self.server, self.client)
        sender.add(*ends, ACK, seq, 1, bytes(SIZE), b"", at_ms=sent_ms)
        if waited_ms is None:
            return
        receiver.add(*ends, ACK, seq, 1, bytes(SIZE), b"", at_ms=sent_ms + waited_ms + 11)
        at_ns, frame = receiver.packets[-1]
        mark = bytes([3 if marked else 0])
        receiver.packets[-1] = at_ns, frame[:_CLASS_AT] + mark + frame[_CLASS_AT + 1 :]

    def transits(self, folder: Path) -> Transits:
        for capture, name in ((self.client, "client"), (self.server, "server")):
            write_frames(folder / f"{name}.pcap", sorted(capture.packets), snap=256)
        client, server = (read_capture(folder / f"{end}.pcap") for end in ("client", "server"))
        return read_transits(client, server, [socket.inet_aton(CLIENT)])

    def queueing(self, folder: Path) -> dict[str, Queueing]:
        return describe_queueing(self.transits(folder), LINK)

    def said(self, folder: Path, link: LinkSpec = LINK, **traffic: int) -> list[str]:
        counted = {name.replace("_", "."): count for name, count in traffic.items()}
        visits = () if self.load is None else split_visits(self.load)
        return found(
            check_queueing, link, transits=self.transits(folder), counted=counted, visits=visits
        )


def test_waits_of_a_fifo(tmp_path: Path) -> None:
    link = Link()
    for place in range(4):
        link.cross(0, place)
    link.cross(100, 0, up=True)
    link.cross(128, 0)
    assert link.said(tmp_path) == []
    down, up = (link.queueing(tmp_path)[way] for way in ("down", "up"))
    assert (down.packets, down.dropped, down.marked, down.hit_bytes) == (5, 0, 0, None)
    assert (down.median_ms, down.p95_ms, down.peak_ms) == pytest.approx((1, 3, 3), abs=1e-6)
    assert down.slice_ms == pytest.approx(2, abs=1e-3)
    # Each slice has the longest wait of what was sent in it.
    assert down.peaks_us == (3000, *[0] * 63)
    assert up.packets == 1
    assert up.peak_ms == pytest.approx(0, abs=1e-6)


def test_what_waits_otherwise_than_in_a_fifo(tmp_path: Path) -> None:
    link = Link()
    for waited_ms in (0, 1, 2, 1.5):
        link.cross(0, waited_ms)
    assert link.said(tmp_path) == ["down: 1 packets waited otherwise than in a FIFO"]
    assert link.said(tmp_path, LinkSpec(20, 12_000, 12_000, qdisc_down="sfq")) == []
    # A queue of one direction says nothing of the other.
    assert link.said(tmp_path, LinkSpec(20, 12_000, 12_000, qdisc_up="sfq")) != []
    assert link.said(tmp_path, LinkSpec(20, 12_000, 12_000, loss_pct=1)) == []


def test_between_two_visits_no_time_is_held_against_the_link(tmp_path: Path) -> None:
    """It may then sleep, and come late; what it loses is counted all the same."""
    first, last = (a_visit(100 * number) for number in range(2))
    load = replace(last, earlier=(first,))
    for sent_ms, otherwise in ((5, True), (20, True), (50, False), (105, True)):
        link = Link(load=load)
        link.cross(sent_ms, 3)
        said = link.said(tmp_path)
        assert said == ["down: 1 packets waited otherwise than in a FIFO"] * otherwise
        link.cross(50, None)
        (gone,) = set(link.said(tmp_path)) - set(said)
        assert gone == "down: 1 packets did not come through, the link counts 0"


def a_visit(began_ms: float) -> PageLoad:
    return PageLoad("chromium", "1", 20.0, (), began_ns=START_NS + round(began_ms * 1e6))


@pytest.mark.parametrize(("late_ms", "otherwise"), [(0.1, False), (0.3, True)])
def test_what_leaves_a_last_hop_may_come_late_to_the_line(
    tmp_path: Path, late_ms: float, otherwise: bool
) -> None:
    link = Link()
    link.cross(0, late_ms, up=True)
    plain = ["up: 1 packets waited otherwise than in a FIFO"]
    assert link.said(tmp_path) == plain
    assert link.said(tmp_path, replace(LINK, hop_up="x")) == (plain if otherwise else [])


def test_packets_wait_for_a_last_hop_behind_the_line(tmp_path: Path) -> None:
    link = Link()
    link.cross(0, 5)
    assert link.said(tmp_path, replace(LINK, hop_down="x")) == []
    link.cross(50, -1)
    (sooner,) = link.said(tmp_path, replace(LINK, hop_down="x"))
    assert "down: 1 packets came up to 1000.0 us sooner than they can" in sooner


def test_what_comes_sooner_than_it_can(tmp_path: Path) -> None:
    link = Link()
    link.cross(0, -0.5, up=True)
    faster = LinkSpec(20, 12_000, 12_000, qdisc="sfq")
    (said,) = link.said(tmp_path, faster)
    assert said == "up: 1 packets came up to 500.0 us sooner than they can"


def dropping() -> Link:
    """Of five packets down one is dropped behind two others, and one is marked; up none."""
    link = Link()
    for waited_ms in (0, 1, None, 2):
        link.cross(0, waited_ms)
    link.cross(0.5, 2.5, marked=True)
    link.cross(1, 0, up=True)
    return link


def test_drops_and_marks_and_the_bytes_before_them(tmp_path: Path) -> None:
    down = dropping().queueing(tmp_path)["down"]
    assert (down.packets, down.dropped, down.marked) == (4, 1, 1)
    # 3000 bytes before the one that was dropped, 4500 before the one that was marked.
    assert down.hit_bytes == 4500


def test_what_damage_and_copies_let_through(tmp_path: Path) -> None:
    link = Link()
    for place in range(3):
        link.cross(10 * place, 0, up=True)
    link.cross(50, 0)
    at_ns, frame = link.server.packets[0]
    # One bit of the client's address: that it came from the server is no explanation.
    link.server.packets[0] = at_ns, frame[:29] + bytes([frame[29] ^ 0x40]) + frame[30:]
    gone = "up: 1 packets did not come through, the link counts"
    assert link.said(tmp_path, up_corrupted=1) == []
    assert link.said(tmp_path, up_corrupted=3) == []  # in the others it is where nobody looks
    assert link.said(tmp_path, up_lost=2, up_duplicated=1) == []
    assert link.said(tmp_path) == [f"{gone} 0"]
    assert link.said(tmp_path, up_lost=2) == [f"{gone} 2"]
    assert link.said(tmp_path, up_lost=3, up_duplicated=1) == [f"{gone} 3"]


AQM = LinkSpec(20, 12_000, 12_000, qdisc="fq_codel")


@pytest.mark.parametrize(
    ("traffic", "said"),
    [
        ({"down_dropped": 1, "down_marked": 1}, []),
        ({"down_lost": 1, "down_marked": 2}, []),  # by two rules
        ({"down_marked": 1, "waiting": 1}, []),
        ({"down_marked": 1}, ["down: 1 packets did not come through, the link counts 0"]),
        ({"down_dropped": 1}, ["down: 1 packets got a congestion mark, the queue counts 0"]),
        # Those of the other direction.
        ({"up_dropped": 1, "up_marked": 1},
         ["down: 1 packets did not come through, the link counts 0",
          "down: 1 packets got a congestion mark, the queue counts 0",
          "up: 0 packets did not come through, the link counts 1",
          "up: 0 packets got a congestion mark, the queue counts 1"]),
    ],
)  # fmt: skip
def test_statistics_of_another_queue(
    tmp_path: Path, traffic: dict[str, int], said: list[str]
) -> None:
    assert dropping().said(tmp_path, AQM, **traffic) == said


@pytest.mark.parametrize(("passed", "said"), [(900, True), (MOST + 1, False)])
def test_nothing_is_recorded_only_where_there_was_too_much(
    tmp_path: Path, passed: int, said: bool
) -> None:
    link = dropping()
    link.server = Capture()
    link.client.packets = link.client.packets[:-1]
    assert link.transits(tmp_path) == {}
    told = f"the server's end recorded none of {passed} packets"
    assert link.said(tmp_path, down_delivered=passed) == ([told] if said else [])


def test_a_packet_that_is_sent_again_is_another(tmp_path: Path) -> None:
    """A SYN-ACK has no number of its own in its IP header: its timestamp tells."""
    link = Link()
    for stamp, at_ms in ((1, 0), (301, 300)):
        options = (
            b"\x02\x04\x05\xb4\x04\x02\x08\x0a" + bytes([0, 0, *divmod(stamp, 256)]) + bytes(4)
        )
        link.server.add(*DOWN, ACK | SYN, 5000, 1, b"", options, at_ms=at_ms)
    link.client.packets.append((START_NS + 311 * 1_000_000, link.server.packets[1][1]))
    down = link.queueing(tmp_path)["down"]
    assert (down.packets, down.dropped) == (1, 1)
    assert down.peak_ms < 1


@pytest.mark.root
def test_the_recorder_has_every_packet_and_its_headers(tmp_path: Path) -> None:
    with joined("q") as (left, right), recorded(right, "s0", tmp_path / "server.pcap"):
        with left.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for size in (20, 900):
                sender.sendto(bytes([size % 256]) * size, (RIGHT_ADDRESS, 9))
        deadline = time.monotonic() + 10
        while read_devices(right)["s0"].received < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    packets = [p for p in read_capture(tmp_path / "server.pcap").packets if p.protocol == "UDP"]
    came = [p for p in packets if p.target == socket.inet_aton(RIGHT_ADDRESS)]
    assert [p.payload_bytes for p in came] == [20, 900]
    assert [len(p.frame) for p in came] == [62, RECORDED_BYTES]


@pytest.mark.parametrize("counted", [0, 1, 2])
def test_each_mark_is_one_that_the_queue_counts(tmp_path: Path, counted: int) -> None:
    link = Link()
    for place in range(2):
        link.cross(10 * place, 0, marked=True)
    said = [f"down: 2 packets got a congestion mark, the queue counts {counted}"]
    assert link.said(tmp_path, down_marked=counted) == (said if counted < 2 else [])


@pytest.mark.parametrize(("off_ms", "wrong"), [(0.0, 0), (0.009, 0), (0.013, 1), (-0.013, 1)])
def test_each_wait_of_a_fifo_to_its_slack(tmp_path: Path, off_ms: float, wrong: int) -> None:
    """Ten microseconds, and one for each packet that is waited for."""
    link = Link()
    for began_ms in (0, 10):  # one alone may be a late timer's
        for sent_ms, waited_ms in ((0, 0), (0, 1), (1.5, 0.5 + off_ms), (4, 0)):
            link.cross(began_ms + sent_ms, waited_ms)
    assert len(link.said(tmp_path)) == wrong
    jitter = replace(LINK, delay_jitter_ms=1.0)  # which leaves nothing to hold a time against
    assert link.said(tmp_path, jitter) == []
