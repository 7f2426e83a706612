"""The first packet that differs: what counts as one, and how it is shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.capture.difference import (
    PacketDifference,
    Shifts,
    describe_difference,
    first_difference,
    is_asked_otherwise,
    read_shifts,
)
from testbed.capture.packets import Capture, read_capture
from testbed.capture.relative import relative_packets
from tests.capture.conversation import MS, Sent, another_boot, conversation, query, write_capture
from tests.capture.packets import ACK, FIN

COOKIE = b"\x22\x0a" + b"\x01" * 8 + b"\x01\x01"
SACK = b"\x01\x01\x05\x0a" + (5101).to_bytes(4, "big") + (5201).to_bytes(4, "big")


def difference_of(tmp_path: Path, base: list[Sent], new: list[Sent]) -> PacketDifference | None:
    write_capture(tmp_path / "base.pcap", base)
    write_capture(tmp_path / "new.pcap", new)
    return differ(tmp_path / "base.pcap", tmp_path / "new.pcap")


def differ(base: Path, new: Path) -> PacketDifference | None:
    return first_difference(read_capture(base), read_capture(new))


def found(difference: PacketDifference | None) -> PacketDifference:
    assert difference is not None
    return difference


def test_another_boot_is_no_difference(tmp_path: Path) -> None:
    base = conversation()
    assert difference_of(tmp_path, base, another_boot(base)) is None


def test_a_window_of_two_segments_parts_where_the_third_would_come(tmp_path: Path) -> None:
    base, new = conversation(3), conversation(3)
    new[6] = replace(new[6], at_ns=400 * MS)
    new[6:] = [Sent(299 * MS, "client", ACK, 21, 201), new[6], new[7]]
    difference = found(difference_of(tmp_path, base, new))
    assert difference.order is not None
    assert difference.order.number == 7
    assert difference.order.fields == (
        "sender", "seq", "ack", "length", "payload", "time_ns"
    )  # fmt: skip
    assert (difference.base_packets, difference.new_packets) == (8, 9)
    assert [packet.number for packet in difference.order.before] == [4, 5, 6]
    assert describe_difference(difference).splitlines() == [
        "The captures part at packet 7 (8 in base, 9 in new): another packet comes.",
        "  both #4     +0.101000000 s  client.1 > 10.0.0.7:80: Flags [P.], seq 1:21, ack 1, "
        "win 502, length 20",
        "  both #5     +0.230000000 s  10.0.0.7:80 > client.1: Flags [.], seq 1:101, ack 21, "
        "win 502, length 100",
        "  both #6     +0.233000000 s  10.0.0.7:80 > client.1: Flags [.], seq 101:201, ack 21, "
        "win 502, length 100",
        "  base #7     +0.236000000 s  10.0.0.7:80 > client.1: Flags [.], seq 201:301, ack 21, "
        "win 502, length 100",
        "  new  #7     +0.299000000 s  client.1 > 10.0.0.7:80: Flags [.], ack 201, win 502, "
        "length 0",
    ]


def test_times_differ_before_the_order_does(tmp_path: Path) -> None:
    base = conversation(3)
    new = [replace(one, at_ns=one.at_ns + (one.at_ns > 200 * MS) * 1500) for one in base]
    difference = found(difference_of(tmp_path, base, new))
    assert (difference.order, difference.content) == (None, None)
    assert difference.telling is difference.time
    assert difference.telling.later_ns == 1500
    assert describe_difference(difference).startswith(
        "The same packets (8 in base, 8 in new); times differ from packet 5 on: 1.5 us later in new"
    )
    shorter = found(difference_of(tmp_path, base, new[:-1]))
    assert shorter.order is not None and shorter.order.new is None
    text = describe_difference(shorter)
    assert text.startswith("The new capture ends before packet 8, base goes on")
    assert "  new  (no packet)" in text
    assert text.endswith("Times first differ at packet 5: 1.5 us later in new.")


@pytest.mark.parametrize(("later_ns", "jumps"), [(MS - 1, False), (MS, True)])
def test_a_millisecond_is_more_than_drift(tmp_path: Path, later_ns: int, jumps: bool) -> None:
    base = conversation(3)
    new = [replace(one, at_ns=one.at_ns + (one.at_ns > 200 * MS) * later_ns) for one in base]
    difference = found(difference_of(tmp_path, base, new))
    assert (difference.jump is not None) is jumps
    assert difference.telling.number == 5


def test_a_packet_that_need_not_wait_a_round_trip_is_what_tells(tmp_path: Path) -> None:
    base = conversation(3)
    late = [replace(one, at_ns=one.at_ns + (one.at_ns > 230 * MS) * 100 * MS) for one in base]
    late[3] = replace(late[3], at_ns=late[3].at_ns + 256, flags=ACK)
    early = [*base[:-1], replace(base[-1], ack=201)]
    difference = found(difference_of(tmp_path, late, early))
    assert difference.telling is difference.jump
    assert (difference.telling.number, difference.telling.later_ns) == (6, -100 * MS)
    text = describe_difference(difference)
    assert text.startswith(
        "The same packets (8 in base, 8 in new), until packet 6 comes 100 ms sooner"
    )
    assert text.splitlines()[-3:] == [
        "  Contents first differ at packet 4: flags . in base and P. in new.",
        "  Times first differ at packet 4: 256 ns sooner in new.",
        "  The order first differs at packet 8: ack 301 in base and 201 in new.",
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [({"window": 501}, "window 502 in base and 501 in new"),
     ({"options": SACK}, "options none in base and [sack 101:201] in new"),
     ({"flags": ACK}, "flags P. in base and . in new"),
     ({"data": b"GET /x HTTP/1.1\r\n\r\n "}, "other payload")],
)  # fmt: skip
def test_content_is_told_from_order(tmp_path: Path, change: dict[str, object], told: str) -> None:
    base = conversation()
    new = [*base[:3], replace(base[3], **change), *base[4:]]  # type: ignore[arg-type]
    difference = found(difference_of(tmp_path, base, new))
    assert difference.order is None and difference.content is not None
    assert difference.content.number == 4
    assert told in describe_difference(difference)


def test_a_fast_open_cookie_and_data_in_the_syn(tmp_path: Path) -> None:
    base = conversation()
    new = [replace(base[0], options=COOKIE, data=b"GET"), *base[1:]]
    difference = found(difference_of(tmp_path, base, new))
    assert difference.telling.number == 1
    assert "length 0 in base and 3 in new" in describe_difference(difference)
    assert "options [tfo cookie of 8 bytes]" in describe_difference(difference)
    rotated = [replace(new[0], options=COOKIE.replace(b"\x01" * 8, b"\x02" * 8)), *new[1:]]
    assert difference_of(tmp_path, new, rotated) is None


def test_times_count_from_the_first_syn_and_dns_ids_do_not_count(tmp_path: Path) -> None:
    base, new = tmp_path / "base.pcap", tmp_path / "new.pcap"
    write_capture(base, conversation(), ((-30 * MS, query(3333, 7)),))
    write_capture(new, conversation(), ((-30 * MS, query(4444, 8)),))
    assert differ(base, new) is None
    first = next(relative_packets(read_capture(base)))
    assert (first.protocol, first.time_ns, first.endpoint) == ("UDP", -30 * MS, "10.0.0.7:53")
    write_capture(new, conversation(), ((-30 * MS, query(4444, 8, b"cdn")),))
    difference = found(differ(base, new))
    assert difference.content is not None and difference.content.fields == ("payload",)
    assert "-0.030000000 s  client.1 > 10.0.0.7:53: UDP, length 5" in describe_difference(
        difference
    )


def test_connections_are_numbered_as_they_appear(tmp_path: Path) -> None:
    second = [replace(one, port=40002, at_ns=one.at_ns + MS) for one in conversation()]
    write_capture(tmp_path / "a.pcap", [*conversation(), *second])
    packets = list(relative_packets(read_capture(tmp_path / "a.pcap")))
    assert [packet.connection for packet in packets] == [1] * 8 + [2] * 8


def test_an_empty_capture_and_frames_that_are_no_ip(tmp_path: Path) -> None:
    difference = found(difference_of(tmp_path, conversation(), []))
    assert difference.telling.number == 1 and difference.new_packets == 0
    assert difference_of(tmp_path, [], []) is None
    base, new = tmp_path / "base.pcap", tmp_path / "new.pcap"
    write_capture(base, conversation(), ((0, b"\x02" * 12 + b"\x88\xcc" + b"hello"),))
    write_capture(new, conversation(), ((0, b"\x02" * 12 + b"\x88\xcc" + b"hullo"),))
    assert found(differ(base, new)).telling.fields == ("payload",)


@given(st.binary(max_size=80))
def test_no_frame_is_too_strange(tmp_path_factory: pytest.TempPathFactory, frame: bytes) -> None:
    path = tmp_path_factory.mktemp("odd") / "a.pcap"
    write_capture(path, conversation(1), ((5, frame), (6, b"\0" * 12 + b"\x08\x00" + frame)))
    assert len(list(relative_packets(read_capture(path)))) == 8


def test_the_end_of_a_connection_has_its_number(tmp_path: Path) -> None:
    base = [*conversation(1), Sent(310 * MS, "client", FIN | ACK, 21, 101)]
    new = [*conversation(1), Sent(310 * MS, "client", FIN | ACK, 21, 101), *conversation(1)[:1]]
    text = describe_difference(found(difference_of(tmp_path, base, new)))
    assert "Flags [F.], seq 21, ack 101" in text
    assert "The base capture ends before packet 8" in text


def asked_otherwise(tmp_path: Path, base: list[Sent], new: list[Sent]) -> bool:
    difference = difference_of(tmp_path, base, new)
    one, other = (read_capture(tmp_path / f"{name}.pcap") for name in ("base", "new"))
    return is_asked_otherwise(one, other, difference)


@pytest.mark.parametrize(
    ("place", "data", "otherwise"),
    [
        (3, b"GET /x HTTP/1.1\r\n\r\n.", True),
        (3, b"GET /longer HTTP/1.1\r\n\r\n", True),  # which the order ends at
        (4, b"B" * 100, False),  # the server's
        (5, b"", False),
    ],
)
def test_the_client_asks_for_something_else(
    tmp_path: Path, place: int, data: bytes, *, otherwise: bool
) -> None:
    base, new = conversation(), conversation()
    new[place] = replace(new[place], data=data)
    assert asked_otherwise(tmp_path, base, new) == otherwise


def test_after_another_order_nothing_is_asked_otherwise(tmp_path: Path) -> None:
    base, new = conversation(), conversation()
    new[1:] = [new[2], replace(new[3], data=b"GET /x HTTP/1.1\r\n\r\n."), *new[4:]]
    assert not asked_otherwise(tmp_path, base, new)


def captured(tmp_path: Path, packets: list[Sent]) -> Capture:
    write_capture(tmp_path / "one.pcap", packets)
    return read_capture(tmp_path / "one.pcap")


def test_shifts_of_the_same_packets(tmp_path: Path) -> None:
    base = conversation()
    new = [base[0], *(replace(one, at_ns=one.at_ns + 256) for one in another_boot(base)[1:])]
    new = [replace(one, isn=new[1].isn, port=new[1].port) for one in new]
    pair = captured(tmp_path, base), captured(tmp_path, new)
    assert read_shifts(pair[0], pair[0]) == Shifts((0,) * len(base), whole=True)
    assert read_shifts(*pair) == Shifts((0, *(12345 + 256,) * (len(base) - 1)), whole=True)


def test_shifts_of_other_packets(tmp_path: Path) -> None:
    base = conversation()
    less, window = base[:-1], [*base[:-1], replace(base[-1], window=1)]
    for new in (less, window):
        pair = captured(tmp_path, base), captured(tmp_path, new)
        found = read_shifts(*pair)
        assert not found.whole and not found.asked


def test_shifts_until_the_client_asks_otherwise(tmp_path: Path) -> None:
    base = conversation()
    asked = [*base[:3], replace(base[3], data=b"GET /other HTTP/1.1 ."), *base[4:]]
    pair = captured(tmp_path, base), captured(tmp_path, asked)
    assert read_shifts(*pair) == Shifts((0, 0, 0), asked=True)
    answered = [*base[:4], replace(base[4], data=b"z" * 100), *base[5:]]
    found = read_shifts(pair[0], captured(tmp_path, answered))
    assert not found.whole and not found.asked
