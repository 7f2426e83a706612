"""Matching of scripts: exact, in order, and with a sentence on the first packet that differs."""

from __future__ import annotations

from socket import inet_aton

import pytest

from testbed.capture.packets import ACK, FAST_OPEN, PSH, RST, SYN, read_frame
from testbed.capture.segments import make_unreachable
from wings.scenarios.matching import match_calls, match_packets, see
from wings.scenarios.measurement import Arrival
from wings.scenarios.script import parse_script
from wings.scenarios.tests.made import COOKIE, call, carried, packet
from wings.scenarios.words import NAT_ADDRESS

REQUEST = packet("client", "server", SYN, seq=100, options=((FAST_OPEN, b""),))
GRANT = packet(
    "server", "client", SYN | ACK, at_ms=50, seq=900, ack=101, options=((FAST_OPEN, COOKIE),)
)
THIRD = packet("client", "server", ACK | PSH, at_ms=100, seq=101, ack=901, payload=b"hello")
HANDSHAKE = (
    ("client", "server", REQUEST), ("server", "client", GRANT), ("client", "server", THIRD),
)  # fmt: skip
AS_IT_WAS = """\
client > server [S] cookie=request without=mss
server > client [S.] cookie=new ack=1 after=50ms
client > server [.] data=5 ack=1 after=50ms
"""


def difference(text: str, *packets: object) -> list[str]:
    performance, captures = carried(*(packets or HANDSHAKE))  # type: ignore[arg-type]
    return list(match_packets(parse_script(text), see(performance, captures)))


def test_what_is_as_expected_has_no_difference() -> None:
    assert difference(AS_IT_WAS) == []
    assert difference("...") == []
    assert difference("...\nclient > server [.] data=any") == []
    assert difference("client > server [S] cookie=request\n...") == []


def test_records_of_tls_are_told() -> None:
    sealed = packet("client", "server", ACK | PSH, payload=2 * b"\x17\x03\x03\x00\x01x")
    assert difference("client > server [.] tls=sealed*2", ("client", "server", sealed)) == []
    (found,) = difference("client > server [.] tls=sealed", ("client", "server", sealed))
    assert "its records of TLS are sealed*2; the capture has client > server [P.]" in found


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[S] cookie=request", "[S]", "line 1: client > server [S] without=mss: its Fast Open "
         "option is request; the capture has client > server [S] cookie=request, at 0.0 ms"),
        ("cookie=new", "cookie=ffff", "its Fast Open option is 0001020304050607"),
        ("cookie=new", "cookie=cached", "its Fast Open option is 0001020304050607"),
        ("cookie=new ack=1", "cookie=new ack=2", "it acknowledges 1; the capture has"),
        ("after=50ms\nclient", "after=1s\nclient", "it came after 50.0 ms"),
        ("data=5 ack=1", "data=5 tls=sealed ack=1", "its records of TLS are none"),
        ("[.] data=5", "[.]", "it has 5 bytes of data"),
        ("[.] data=5", "[R] data=5", "its flags are [P.]"),
        ("without=mss", "with=mss", "it has no option mss"),
        ("without=mss", "without=mss => lost", "it arrived once"),
        ("without=mss", "without=mss => [S]", "it arrived as [S] cookie=request: its Fast Open"),
        ("client > server [.]", "server > client [.]", "another packet is next"),
        ("client > server [.] data=5 ack=1 after=50ms\n", "",
         "after the script's last packet: client > server [P.] data=5, at 100.0 ms"),
        ("after=50ms\nclient", "after=50ms\nserver > client [R]\nclient", "another packet is next"),
    ],
)  # fmt: skip
def test_the_first_difference_is_said(old: str, new: str, said: str) -> None:
    (found,) = difference(AS_IT_WAS.replace(old, new, 1))
    assert said in found


def test_a_packet_that_is_missing_is_said() -> None:
    assert difference(f"{AS_IT_WAS}client > server [R]") == [
        "line 4: client > server [R]: there is no further packet"
    ]
    assert difference("...\nclient > server [R]") == [
        "line 2: client > server [R]: no such packet follows"
    ]


def test_what_was_lost_arrives_nowhere() -> None:
    lost = (("client", "", REQUEST), *HANDSHAKE[1:])
    (found,) = difference(AS_IT_WAS, *lost)
    assert "it arrived nowhere" in found
    assert difference(AS_IT_WAS.replace("without=mss", "=> lost"), *lost) == []


def test_who_sent_what_cannot_be_delivered_is_told() -> None:
    refused = (("client", "server", REQUEST), ("server", "", GRANT))
    performance, captures = carried(*refused)
    told = make_unreachable(GRANT.frame[14:], inet_aton(NAT_ADDRESS))
    arrival = Arrival("server", len(captures["server"]), GRANT.at_ns)
    captures["server"].append(read_frame(GRANT.at_ns, GRANT.frame[:14] + told, len(told) + 14))
    text = "client > server [S] cookie=request\nserver > client [S.] cookie=new => "

    def differs(how: str) -> list[str]:
        return list(match_packets(parse_script(text + how), see(performance, captures)))

    (found,) = differs("unreachable")
    assert "its sender was not told that its target cannot be reached" in found
    assert differs("lost") == []
    performance.passages[1].arrivals.append(arrival)
    (found,) = differs("lost")
    assert "its sender was told that its target cannot be reached" in found
    assert differs("unreachable") == []


def test_a_cached_cookie_is_the_one_that_was_given_last() -> None:
    again = packet("client", "server", SYN, at_ms=200, seq=7, options=((FAST_OPEN, COOKIE),))
    other = packet("client", "server", SYN, at_ms=200, seq=7, options=((FAST_OPEN, b"x" * 8),))
    text = f"{AS_IT_WAS}client > server [S] cookie=cached"
    assert difference(text, *HANDSHAKE, ("client", "server", again)) == []
    (found,) = difference(text, *HANDSHAKE, ("client", "server", other))
    assert "its Fast Open option is 7878787878787878" in found


def test_so_many_alike() -> None:
    resets = [("client", "server", packet("client", "server", RST)) for _ in range(3)]
    assert difference("client > server [R] times=3", *resets) == []
    (found,) = difference("client > server [R] times=2", *resets)
    assert "after the script's last packet" in found
    (found,) = difference("client > server [R] times=4", *resets)
    assert "there is no further packet" in found


def test_results_of_calls() -> None:
    script = parse_script('server listen s\nserver accept s b\nserver recv b -> "hello"\n')
    fine = [call(1, "ok"), call(2, "ok"), call(3, '"hello"')]
    assert list(match_calls(script, fine)) == []
    wrong = [call(1, "ok"), call(2, "nothing"), call(3, "eof")]
    assert list(match_calls(script, wrong)) == [
        "line 2: server accept s b: ended with nothing",
        'line 3: server recv b -> "hello": was eof',
    ]
