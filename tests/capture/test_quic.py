"""QUIC in captures: keys, packets in any order, frames, hellos, early data, new bytes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.capture.difference import describe_difference, first_difference
from testbed.capture.flows import Flows
from testbed.capture.handshakes import read_handshakes
from testbed.capture.packets import read_capture
from testbed.capture.quic import KeyRing, RawPacket
from testbed.capture.quic_frames import ACK, CLOSE, CRYPTO, STREAM, Coverage, read_frames
from testbed.capture.quic_keys import Keys, candidates, expand, initial_keys, read_secrets
from testbed.capture.tls import read_hello
from testbed.mechanisms.quic.proof import check_connection
from testbed.model import CAPTURE_FILE, KEYS_FILE
from tests.capture.quic import ID, RANDOM, SECRETS, Made, ack, conversation, long, short, stream

NO_FLOWS = Flows((), 0, 0, ())
A3 = bytes.fromhex(
    "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780b"
    "b38cc5a99f5ede4cf73c3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19"
    "fb84022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc42158407dd074ee"
)


def test_keys_of_appendix_a1_of_rfc_9001() -> None:
    client, server = (initial_keys(ID)[by_client].secret for by_client in (True, False))
    assert expand(client, "quic key", 16).hex() == "1f369613dd76d5467730efcbe3b1a22d"
    assert expand(client, "quic iv", 12).hex() == "fa044b2f42a3fd3b46fb255c"
    assert expand(client, "quic hp", 16).hex() == "9f50449e04a0e810283a1e9933adedd2"
    assert expand(server, "quic key", 16).hex() == "cf3a5331653c364c88f0f379b6067e37"


def test_a_server_s_initial_packet_of_appendix_a3_is_opened() -> None:
    raw = RawPacket(0, False, "initial", 1, b"", A3[7:15], A3, 18)
    opened = KeyRing([initial_keys(ID)[False]]).open(raw, -1)
    assert opened is not None and opened[0] == 1
    frames = read_frames(opened[1])
    assert [frame.kind for frame in frames] == [ACK, CRYPTO]
    hello = read_hello(frames[1].data)
    assert hello is not None and (hello.version, hello.groups) == ("1.3", ("x25519",))


def test_a_packet_of_chacha20_of_appendix_a5_is_opened() -> None:
    secret = bytes.fromhex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b")
    content = bytes.fromhex("4cfe4189655e5cd55c41f69080575d7999c25a5bfb")
    raw = RawPacket(0, True, "1-rtt", 0, b"", b"", content, 1)
    assert KeyRing(candidates(secret)).open(raw, 654360563) == (654360564, b"\x01")
    assert Keys(secret, chacha=True).updated().secret.hex() == (
        "1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9"
    )


def test_a_handshake_is_read(tmp_path: Path) -> None:
    (connection,) = conversation().read(tmp_path)
    (handshake,) = read_handshakes(NO_FLOWS, [connection], {})
    (hello,) = handshake.hellos
    assert hello.whole and hello.alpn == ("h3",)
    assert hello.groups == ("x25519", "x25519mlkem768")
    assert (handshake.alpn, handshake.resumed, handshake.accepted) == ("h3", False, False)
    assert connection.unopened == 0
    assert [packet.kind for packet in connection.packets] == [
        *("initial", "initial", "initial", "handshake")
    ]


@pytest.mark.parametrize("accepted", [True, False])
def test_early_data_and_what_became_of_it(accepted: bool, tmp_path: Path) -> None:
    made = conversation(stream(b"one", 0), stream(b"two", 4), stream(b"x", 2), accepted=accepted)
    (connection,) = made.read(tmp_path)
    (handshake,) = read_handshakes(NO_FLOWS, [connection], {})
    assert handshake.resumed and handshake.offers_early and handshake.accepted is accepted
    assert handshake.early_requests == 2
    assert handshake.early_bytes == sum(p.size for p in connection.packets if p.kind == "0-rtt")
    assert handshake.asked_ns == connection.packets[2].at_ns


def test_hellos_are_read_without_secrets_and_the_rest_is_not(tmp_path: Path) -> None:
    made = conversation()
    made.add(short(0, stream(b"a"), by_client=True), by_client=True)
    (connection,) = made.read(tmp_path, secrets=False)
    assert connection.answer is not None and connection.answer.groups == ("x25519",)
    assert (connection.unopened, connection.told) == (2, {})
    assert "2 packets of QUIC" in "".join(check_connection(connection))


def test_new_bytes_of_responses_are_known_whatever_is_lost_or_comes_again(tmp_path: Path) -> None:
    made = conversation()
    begin = len(made.datagrams)
    sent = [
        (0, stream(b"abc", 0)), (2, stream(b"ghi", 0, 6)), (2, stream(b"ghi", 0, 6)),
        (1, stream(b"def", 0, 3)), (3, stream(b"bcde", 0, 1)), (4, stream(b"", 0, 9, fin=True)),
        (5, stream(b"", 0, 9, fin=True)), (6, stream(b"settings", 3)),
    ]  # fmt: skip
    for count, frames in sent:
        made.add(short(count, frames, by_client=False, size=1), by_client=False)
    (connection,) = made.read(tmp_path)
    began = made.datagrams[begin][0]
    assert [(at - began) // 1_000_000 for at in connection.answered_ns()] == [0, 1, 3, 5]


@pytest.mark.parametrize("known", [True, False])
def test_a_client_that_goes_on_from_another_port_has_one_connection(
    tmp_path: Path, known: bool
) -> None:
    made = conversation() if known else Made()
    made.moves_at = len(made.datagrams)
    made.add(short(0, stream(b"ask"), by_client=True), by_client=True)
    made.add(short(0, stream(b"abc"), by_client=False), by_client=False)
    (connection,) = made.read(tmp_path)
    port = 50_000 if known else 50_001  # of a connection that the capture does not have
    assert connection.client.endswith(f":{port}")
    assert connection.unopened == (0 if known else 2)
    assert len(list(connection.answered_ns())) == known


def test_what_headers_may_wait_for_is_no_response(tmp_path: Path) -> None:
    made = conversation()
    begin = len(made.datagrams)
    for count, frames in enumerate(
        (stream(b"abc"), stream(b"of QPACK", 7), stream(b"of QPACK", 7))
    ):
        made.add(short(count, frames, by_client=False), by_client=False)
    (connection,) = made.read(tmp_path)
    times = made.datagrams[begin][0], made.datagrams[begin + 1][0]
    assert (*connection.answered_ns(), *connection.told_ns()) == times


def test_keys_are_updated_and_packets_of_before_are_opened_still(tmp_path: Path) -> None:
    made = conversation()
    for count, generation in ((0, 0), (2, 1), (1, 0), (3, 1), (4, 2)):
        packet = short(count, stream(b"x", 0, count), by_client=False, generation=generation)
        made.add(packet, by_client=False)
    (connection,) = made.read(tmp_path)
    assert connection.unopened == 0
    assert [p.number for p in connection.packets if p.kind == "1-rtt"] == [0, 2, 1, 3, 4]


def test_a_number_of_one_byte_is_completed_by_the_largest_before(tmp_path: Path) -> None:
    made = conversation()
    for count in (250, 300, 290, 500):
        size = 4 if count == 250 else 2
        made.add(short(count, b"\x01", by_client=True, size=size), by_client=True)
    made.add(short(600, b"\x01", by_client=True, size=1), by_client=True)
    (connection,) = made.read(tmp_path)
    numbers = [p.number for p in connection.packets if p.kind == "1-rtt"]
    assert numbers == [250, 300, 290, 500, 600]


def test_another_connection_between_the_same_ends_is_another_one(tmp_path: Path) -> None:
    made, again = conversation(), conversation()
    other = long("initial", 0, b"\x01", by_client=True, target=b"another one")
    made.datagrams += again.datagrams
    made.add(other, by_client=True)
    assert [len(each.packets) for each in made.read(tmp_path)] == [8, 1]


def test_what_is_acknowledged_and_was_not_captured_is_named(tmp_path: Path) -> None:
    made = conversation()
    made.add(short(0, stream(b"a"), by_client=True), by_client=True)
    made.add(short(0, ack(0, 2), by_client=False), by_client=False)
    (connection,) = made.read(tmp_path)
    assert list(check_connection(connection)) == [
        f"{connection.name}: 2 packets of the client were acknowledged, and are not in the "
        "capture, the first of them number 1"
    ]


def test_retry_and_other_versions_are_named(tmp_path: Path) -> None:
    made = conversation()
    made.add(bytes.fromhex("ff000000010008f067a5502a4262b5746f6b656e") + bytes(16), by_client=False)
    made.add(b"\x80" + bytes(4) + b"\0\0" + b"\0\0\0\x01", by_client=False)
    made.add(long("initial", 2, b"\x01", by_client=True, version=0x6B3343CF), by_client=True)
    problems = "; ".join(check_connection(made.read(tmp_path)[0]))
    assert " by Retry" in problems and " by version negotiation" in problems
    assert "speaks version 0x6b3343cf" in problems


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=20))
def test_coverage_knows_what_is_new(pieces: list[tuple[int, int]]) -> None:
    seen: set[int] = set()
    reach = Coverage()
    for start, size in pieces:
        piece = set(range(start, start + size))
        assert reach.add(start, start + size) == bool(piece - seen)
        seen |= piece
    assert reach.seen == len(seen)


@given(st.binary(max_size=80))
def test_any_bytes_are_frames_or_an_error(content: bytes) -> None:
    try:
        read_frames(content)
    except ValueError as error:
        assert "QUIC" in str(error)


@given(st.lists(st.binary(min_size=1, max_size=60), max_size=4))
def test_any_datagrams_are_read(datagrams: list[bytes]) -> None:
    made = Made()
    made.datagrams = [(n, True, data) for n, data in enumerate(datagrams)]
    with TemporaryDirectory() as folder:
        made.read(Path(folder))


def test_frames_of_all_kinds_are_passed_over() -> None:
    frames = (
        *("00", "01", "03090001010002010203", "04010203", "05014007", "07020a0b", "100a"),
        *("110203", "1203", "1a0102030405060708", "18010002" + "0102" + "00" * 16, "1e"),
    )
    read = read_frames(bytes.fromhex("".join(frames)))
    assert [f.kind for f in read] == [1, ACK, 4, 5, 7, 0x10, 0x11, 0x12, 0x1A, 0x18, 0x1E]
    assert read[1].acked == ((8, 9), (4, 6))
    close = read_frames(bytes.fromhex("1d4000026869"))[0]
    assert (close.kind, close.data) == (CLOSE, b"hi")
    assert read_frames(b"\x08\x04rest")[0] == (STREAM, 4, 0, b"rest", False, ())


def test_a_file_of_secrets_is_read_or_named(tmp_path: Path) -> None:
    path = tmp_path / "keys.log"
    path.write_text("# a comment\n\nCLIENT_TRAFFIC_SECRET_0 0102 0a0b\n")
    assert read_secrets(path) == {b"\x01\x02": {"CLIENT_TRAFFIC_SECRET_0": b"\x0a\x0b"}}
    path.write_text("CLIENT_TRAFFIC_SECRET_0 0102\n")
    with pytest.raises(ValueError, match=r"keys\.log:1: not a label, a random and a secret"):
        read_secrets(path)
    assert read_secrets(tmp_path / "none.log") == {}


def test_where_two_captures_part_the_streams_are_named(tmp_path: Path) -> None:
    captures = []
    for name, number in (("base", 0), ("new", 4)):
        made, folder = conversation(), tmp_path / name
        folder.mkdir()
        made.add(short(0, stream(b"abc", number), by_client=True), by_client=True)
        made.read(folder)
        lines = (f"{label} {RANDOM.hex()} {secret.hex()}\n" for label, secret in SECRETS.items())
        (folder / KEYS_FILE).write_text("".join(lines))
        captures.append(read_capture(folder / CAPTURE_FILE))
    difference = first_difference(*captures)
    assert difference is not None
    described = describe_difference(difference)
    assert "QUIC [initial 1 crypto 0:40]" in described
    assert "QUIC [1-rtt 0 stream 0 0:3]" in described
    assert "QUIC [1-rtt 0 stream 4 0:3]" in described
