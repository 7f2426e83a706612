"""Rules of the middlebox: what each does to which packets, the NAT's mappings, the farm."""

from __future__ import annotations

from socket import inet_aton

import pytest

from testbed.capture.packets import (
    ACK,
    FAST_OPEN,
    MSS,
    SYN,
    Packet,
    find_option,
    read_frame,
    read_unreachable,
)
from testbed.capture.segments import with_ends
from wings.scenarios.middlebox import Middlebox
from wings.scenarios.script import parse_script
from wings.scenarios.tests.made import COOKIE, packet
from wings.scenarios.words import FARM_ADDRESS, NAT_ADDRESS

OPTIONS = ((MSS, b"\x05\xb4"), (FAST_OPEN, COOKIE))
OPENING = packet("client", "server", SYN, options=OPTIONS, payload=b"hello")
PLAIN = packet("client", "server", SYN)
ANSWER = packet("server", "client", SYN | ACK)


def middlebox(*lines: str) -> Middlebox:
    made = Middlebox()
    for action in parse_script("\n".join(f"middlebox {line}" for line in lines)).actions:
        made.obey(action.verb, action.words, action.options)
    return made


def read(data: bytes) -> Packet:
    return read_frame(0, bytes(12) + b"\x08\x00" + data, len(data) + 14)


def passed(box: Middlebox, one: Packet, sender: str = "client") -> list[tuple[float, Packet]]:
    return [(later, read(data)) for later, data in box.pass_on(one, sender)]


def test_without_rules_packets_pass_unchanged() -> None:
    assert [one.frame[14:] for _, one in passed(middlebox(), OPENING)] == [OPENING.frame[14:]]


@pytest.mark.parametrize(
    ("rule", "lost"),
    [
        ("drop client > server", [OPENING, PLAIN]),
        ("drop client > server [S]", [OPENING, PLAIN]),
        ("drop client > server [S] data", [OPENING]),
        ("drop client > server option=fastopen", [OPENING]),
        ("drop client > server [S.]", []),
        ("drop server > client", [ANSWER]),
        ("drop client > server times=1", [OPENING]),
        (f"drop client > server over={OPENING.ip_bytes - 1}", [OPENING]),
        (f"drop client > server over={OPENING.ip_bytes}", []),
    ],
)
def test_which_packets_are_lost(rule: str, lost: list[Packet]) -> None:
    box = middlebox(rule)
    senders = {id(OPENING): "client", id(PLAIN): "client", id(ANSWER): "server"}
    gone = [one for one in (OPENING, PLAIN, ANSWER) if not passed(box, one, senders[id(one)])]
    assert gone == lost


def test_options_are_taken_out_and_changed() -> None:
    ((_, bare),) = passed(middlebox("strip fastopen client > server"), OPENING)
    assert (find_option(bare, FAST_OPEN), find_option(bare, MSS)) == (None, b"\x05\xb4")
    ((_, other),) = passed(middlebox("cookie aabb client > server"), OPENING)
    assert (find_option(other, FAST_OPEN), other.payload) == (b"\xaa\xbb", b"hello")
    # What has no such option is left alone, to the byte.
    ((_, same),) = passed(middlebox("strip fastopen client > server"), PLAIN)
    assert same.frame[14:] == PLAIN.frame[14:]


def test_what_is_refused_goes_back_to_its_sender() -> None:
    box = middlebox("unreachable client > server [S] times=1")
    ((later, told),) = passed(box, OPENING)
    assert (later, read_unreachable(told), told.target) == (0.0, 1, OPENING.source)
    assert told.source == inet_aton(NAT_ADDRESS)
    assert OPENING.frame[14:] in told.frame
    assert [one.frame for _, one in passed(box, OPENING)] == [OPENING.frame]


def test_repeated_and_delayed() -> None:
    copies = passed(middlebox("repeat client > server times=1 after=5s"), OPENING)
    assert [later for later, _ in copies] == [0.0, 5.0]
    ((later, _),) = passed(middlebox("delay client > server by=30ms"), OPENING)
    assert later == 0.03


def test_what_is_copied_passes_and_is_kept() -> None:
    box = middlebox("copy client > server data times=1")
    for one in (PLAIN, OPENING, OPENING):
        assert len(passed(box, one)) == 1
    assert box.copied == b"hello"


def test_the_newest_rule_comes_first_and_all_can_be_taken_back() -> None:
    lines = ("drop client > server", "strip fastopen client > server times=1")
    assert passed(middlebox(*lines), OPENING) == []
    assert len(passed(middlebox(*lines, "clear"), OPENING)) == 1


def test_a_nat_translates_both_ways_until_it_forgets() -> None:
    box = middlebox("nat client client2")
    ((_, outside),) = passed(box, OPENING)
    assert outside.sender == f"{NAT_ADDRESS}:40000"
    other = packet("client2", "server", SYN)
    other = read(with_ends(other.frame[14:], source=(inet_aton("192.0.2.2"), 40_000)))
    ((_, beside),) = passed(box, other, "client2")
    assert beside.sender == f"{NAT_ADDRESS}:40001"
    back = with_ends(ANSWER.frame[14:], target=(inet_aton(NAT_ADDRESS), 40_001))
    ((_, inside),) = passed(box, read(back), "server")
    assert inside.receiver == "192.0.2.2:40000"
    box.obey("forget", (), {})
    assert passed(box, read(back), "server") == []
    assert passed(box, packet("client", "server", ACK)) == []
    assert len(passed(box, PLAIN)) == 1


def test_a_farm_takes_turns_and_keeps_connections_together() -> None:
    box = middlebox("farm server server2")
    to_farm = [
        read(with_ends(one.frame[14:], source=(inet_aton("192.0.2.1"), port),
                       target=(inet_aton(FARM_ADDRESS), 80)))
        for port in (1, 2, 3) for one in (PLAIN, packet("client", "server", ACK))
    ]  # fmt: skip
    assert [box.server_of(one) for one in to_farm] == [
        "server", "server", "server2", "server2", "server", "server",
    ]  # fmt: skip
