"""What servers advertise, and how they fill frames: as configured, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.capture.handshakes import Handshake
from testbed.capture.http2 import Http2Connection, Http2Frame
from testbed.capture.tls import Hello
from testbed.mechanisms.sending.packing import check_data
from testbed.mechanisms.web_server.settings import check_settings
from testbed.model import Condition, ServedConnection
from tests.capture.quic import (
    CHOSEN,
    TLS13,
    Made,
    answer,
    crypto,
    encrypted,
    hello,
    long,
    number,
    short,
    stream,
)
from tests.evidence import found

H2 = Condition("page", "chromium", protocol="h2")
GROWN = (1 << 31) - 1 - 65535
NGINX = {0: None, 1: 300_000, 2: None, 3: 65527, 4: 131 * 65536, 5: 65536, 6: 65536, 7: 65536,
         8: 128, 9: 3, 10: 3, 11: 25, 14: 2, 15: None}  # fmt: skip
AIOQUIC = {0: None, 1: 300_000, 2: None, 4: 1 << 20, 5: 1 << 20, 6: 1 << 20, 7: 1 << 20, 8: 128,
           9: 128, 10: 3, 11: 25, 14: 8, 15: None, 17: None}  # fmt: skip
HTTP3 = {1: 4096, 7: 128}


def http2(*answered: Http2Frame, asked: tuple[Http2Frame, ...] = ()) -> Http2Connection:
    return Http2Connection("10.0.0.2:5000", "10.10.0.1:443", asked, answered)


def settings(**changed: int) -> Http2Frame:
    values = {"x3": 128, "x4": 65536, "x5": (1 << 24) - 1} | changed
    pairs = ((int(name[1:]).to_bytes(2) + value.to_bytes(4)) for name, value in values.items())
    return Http2Frame(4, 0, 0, b"".join(pairs))


def grows(stream: int, more: int) -> Http2Frame:
    return Http2Frame(8, 0, stream, more.to_bytes(4))


ACK = Http2Frame(4, 1, 0, b"")
USUAL = (settings(), grows(0, GROWN), ACK, grows(1, 5))


@pytest.mark.parametrize(
    ("answered", "says"),
    [
        (USUAL, None),
        ((), None),
        ((settings(x3=2), grows(0, GROWN)), "max_concurrent_streams = 2 instead of 128"),
        ((settings(x1=0), grows(0, GROWN)), "header_table_size = 0 instead of nothing"),
        ((settings(x153=7), grows(0, GROWN)), "0x99 = 7 instead of nothing"),
        ((*USUAL, settings(x4=9)), "initial_window_size = 9 instead of 65536"),
        ((settings(),), f"window_update = [] instead of [{GROWN}]"),
        ((*USUAL, grows(0, 7)), f"window_update = [{GROWN}, 7] instead of [{GROWN}]"),
    ],
)
def test_settings_of_http_2(answered: tuple[Http2Frame, ...], says: str | None) -> None:
    told = found(check_settings, condition=H2, http2=(http2(*answered),), handshakes=())
    assert told == ([] if says is None else told)
    assert says is None or [says in each for each in told] == [True], told


def parameters(values: dict[int, int | None]) -> bytes:
    made = {n: b"8 bytes." if value is None else number(value) for n, value in values.items()}
    return b"".join(number(n) + number(len(value)) + value for n, value in made.items())


@pytest.mark.parametrize(
    ("server", "values", "control", "says"),
    [
        ("nginx-quic", NGINX, HTTP3, None),
        ("nginx-quic", NGINX, {}, None),
        ("nginx-quic", NGINX | {8: 2}, HTTP3, "initial_max_streams_bidi = 2 instead of 128"),
        ("nginx-quic", NGINX | {12: None}, HTTP3, "disable_active_migration = a value instead of"),
        ("nginx-quic", {n: v for n, v in NGINX.items() if n != 3}, HTTP3,
         "max_udp_payload_size = nothing instead of 65527"),
        ("nginx-quic", NGINX | {99: 1}, HTTP3, "0x63 = 1 instead of nothing"),
        ("nginx-quic", NGINX, HTTP3 | {7: 16}, "qpack_blocked_streams = 16 instead of 128"),
        ("aioquic", AIOQUIC, {1: 4096, 7: 16, 8: 1, 0x21: 1}, None),
        ("aioquic", AIOQUIC | {14: 2}, {}, "active_connection_id_limit = 2 instead of 8"),
    ],
)  # fmt: skip
def test_settings_of_http_3_and_quic(
    tmp_path: Path, server: str, values: dict[int, int | None], control: dict[int, int],
    says: str | None,
) -> None:  # fmt: skip
    pairs = b"".join(number(n) + number(value) for n, value in control.items())
    made = Made()
    made.add(long("initial", 0, crypto(hello()), by_client=True), by_client=True)
    told = crypto(encrypted((0x39, parameters(values))))
    made.add(
        long("initial", 0, crypto(answer(TLS13, CHOSEN)), by_client=False),
        long("handshake", 0, told, by_client=False),
        by_client=False,
    )
    if control:
        frame = stream(b"\0\4" + number(len(pairs)) + pairs, 3)
        made.add(short(0, frame, by_client=False), by_client=False)
    asked = Condition("page", "chromium", protocol="h3", web_server=server)  # type: ignore[arg-type]
    said = found(check_settings, condition=asked, http2=(), handshakes=(), quic=made.read(tmp_path))
    assert [says in each if says else each for each in said] == ([True] if says else []), said


def data(size: int, number: int = 1, *, last: bool = False) -> Http2Frame:
    return Http2Frame(0, int(last), number, bytes(size))


FULL, WINDOW = data(8192), Http2Frame(4, 0, 0, b"\0\4" + (10_000).to_bytes(4))


@pytest.mark.parametrize(
    ("asked", "sent", "fits"),
    [
        ((), (FULL, FULL, data(7, last=True)), True),
        ((), (data(1024), data(7, last=True)), False),
        ((), (data(8193), data(7, last=True)), False),
        ((), (FULL, data(8000), FULL), False),
        ((WINDOW,), (FULL, data(10_000 - 8192), FULL, data(1, last=True)), True),
        ((WINDOW, grows(1, 500)), (FULL, data(10_500 - 8192), data(1, last=True)), True),
        ((WINDOW, grows(3, 500)), (FULL, data(10_500 - 8192), data(1, last=True)), False),
        ((), (*7 * (FULL,), data(8191), data(1), FULL, data(0, last=True)), True),
        ((grows(0, 9),), (data(65_544 - 57_344, 3), *7 * (FULL,)), False),
        ((grows(0, 9),), (*7 * (FULL,), data(8191, 3), data(9, 3), data(1, 3, last=True)), True),
    ],
)  # fmt: skip
def test_frames_are_as_full_as_can_be(
    asked: tuple[Http2Frame, ...], sent: tuple[Http2Frame, ...], fits: bool
) -> None:
    told = found(check_data, condition=H2, http2=(http2(*sent, asked=asked),))
    assert bool(told) != fits, told


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize(("opened", "answered"), [(True, True), (False, True), (False, False)])
def test_what_was_answered_is_opened(version: str, opened: bool, answered: bool) -> None:
    alpn = ("h2",) if version == "1.2" else ()
    hello = Hello(False, 90, b"", version, (), False, False, alpn, False, True)
    ends = "10.0.0.2:5000", "10.10.0.1:443"
    told = None if alpn else "h2"
    shown = Handshake(*ends, False, 10, (), hello, None, told, None, 0, 0, None)
    said = found(
        check_settings, condition=H2, handshakes=(shown,), http2=(http2(*USUAL),) * opened,
        served=(ServedConnection(*ends, 1),) * answered,
    )  # fmt: skip
    assert bool(said) == (answered and not opened), said
