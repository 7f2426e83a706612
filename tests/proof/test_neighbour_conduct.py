"""Conduct of neighbours' TCP: pace, class, buffers and openings that nobody asked for are found."""

from __future__ import annotations

import struct

import pytest

from testbed.capture.packets import ACK, SYN, Packet, read_frame
from testbed.capture.segments import make_segment
from testbed.model import LinkSpec
from testbed.model.traffic import parse_traffic
from testbed.proof.neighbours.conduct import HELD_UP, PACED_LEAST, check_class, check_conduct
from testbed.proof.neighbours.flow import SeenFlow

NEAR, FAR = (bytes((10, 0, 3, 2)), 5001), (bytes((10, 0, 4, 2)), 5001)
MSS, SIZE, ROUND_MS = 1460, 1448, 20.0
LINK = LinkSpec(rtt_ms=20, down_kbit=8000, up_kbit=1000)


def segment(
    at_ms: float, flags: int, *, out: bool, seq: int = 0, ack: int = 0, size: int = 0,
    window: int = 40_000, mss: int = MSS, shift: int = 7, traffic_class: int = 0,
) -> Packet:  # fmt: skip
    options = ((2, struct.pack("!H", mss)), (4, b""), (8, bytes(8)), (3, bytes((shift,))))
    ends = (NEAR, FAR) if out else (FAR, NEAR)
    made = make_segment(
        *ends, flags, seq=seq, ack=ack, window=window, payload=bytes(size),
        options=options if flags & SYN else (),
    )  # fmt: skip
    frame = b"\2" * 12 + b"\x08\x00" + made
    packet = read_frame(round(at_ms * 1e6), frame, len(frame))
    return packet._replace(traffic_class=traffic_class)


def upload(late_ms: float = 0.0, rounds: int = 200, room: int = 40_000, **opening: int) -> SeenFlow:
    """Two segments a round trip, sent so long after their acknowledgement, seen at the near end."""
    syn = segment(0, SYN, out=True, window=64_240, **opening)
    synack = segment(0, SYN | ACK, out=False, ack=1, window=65_160)
    out, back = [syn], [synack]
    for number in range(rounds):
        begin_ms = ROUND_MS * (number + 1)
        seq = 1 + 2 * SIZE * number
        out += [
            segment(
                begin_ms + late_ms * (1 + each), ACK, out=True, seq=seq + SIZE * each, size=SIZE
            )
            for each in range(2)
        ]
        back.append(segment(begin_ms + ROUND_MS, ACK, out=False, ack=seq + 2 * SIZE, window=room))
    return SeenFlow(out, back, [], [])


def said(seen: SeenFlow, text: str = "bulk up") -> list[str]:
    (neighbour,) = parse_traffic(text)
    return [*check_conduct(neighbour, "up", seen, LINK), *check_class(neighbour, seen)]


def test_what_an_untouched_kernel_does() -> None:
    assert said(upload()) == []
    assert said(upload(), "bulk up reno") == []


@pytest.mark.parametrize("late_ms", [0.2, 3.0, 9.0])
def test_a_pace_that_no_acknowledgement_gives(late_ms: float) -> None:
    assert said(upload(late_ms)) == [
        "398 of 398 segments left when no acknowledgement came, and cubic has no pace of its own"
    ]
    assert said(upload(late_ms), "bulk up bbr") == []


def test_another_congestion_control_than_the_one_with_a_pace() -> None:
    assert said(upload(), "bulk up bbr") == [
        "0 of 398 segments left when no acknowledgement came, and bbr sends at a pace of its own"
    ]
    assert said(upload(rounds=PACED_LEAST // 2), "bulk up bbr") == []


def test_a_timer_s_probe_is_no_pace() -> None:
    seen = upload()
    late = seen.out[-1]
    seen.out[-1] = late._replace(at_ns=late.at_ns + 200_000_000)
    assert said(seen) == []


def test_a_receive_window_that_holds_the_sender_up() -> None:
    narrow = 2 * SIZE // 128
    (sentence,) = said(upload(room=narrow))
    held = int(sentence.partition(" ")[0])
    assert held > HELD_UP and sentence.endswith(
        "segments filled a receive window that did not grow"
    )
    # It may be full at first: within two seconds it grows.
    assert said(upload(rounds=90, room=narrow)) == []


@pytest.mark.parametrize(
    ("opening", "words"),
    [({"mss": 700}, "other TCP options"), ({"shift": 2}, "other TCP options")],
)
def test_other_options_than_the_kernel_s(opening: dict[str, int], words: str) -> None:
    (sentence,) = said(upload(**opening))
    assert words in sentence


def test_a_small_buffer_in_the_opening() -> None:
    seen = upload()
    seen.out[0] = segment(0, SYN, out=True, window=8_760)
    assert said(seen) == ["its end opened with a window of 8760, its default is 64240"]
    seen = upload()
    seen.left.append(segment(0, SYN | ACK, out=False, ack=1, window=65_160))
    assert said(seen) == []
    seen.left[0] = segment(0, SYN | ACK, out=False, ack=1, window=4_344)
    assert said(seen) == ["its other end opened with a window of 4344, its default is 65160"]


@pytest.mark.parametrize("traffic_class", [0xB8, 0x20, 0x02])
def test_a_class_that_nobody_asked_for(traffic_class: int) -> None:
    for text in ("bulk up", "call"):
        (neighbour,) = parse_traffic(text)
        seen = SeenFlow([segment(0, ACK, out=True, traffic_class=traffic_class)], [], [], [])
        assert [*check_class(neighbour, seen)] == [
            f"1 packets were sent with the traffic class {traffic_class:#04x}, asked was none"
        ]
