"""Settings of web servers: all that one advertises of itself is what it was configured to.

What a server takes of its client follows from its configuration (``testbed.server``) and from its
own defaults, equal in all roots: nginx 1.22 to 1.31 (ngx_http_v2_module.c, ngx_http_v3_module.c,
ngx_event_quic_transport.c), aioquic 1.3 (quic/configuration.py, h3/connection.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from testbed.capture.http2 import ACK, SETTINGS, WINDOW_UPDATE, Http2Connection, read_settings
from testbed.capture.quic import QuicConnection
from testbed.capture.quic_frames import STREAM, join_start, read_number
from testbed.capture.tls import ENCRYPTED_EXTENSIONS, QUIC_PARAMETERS, read_extensions
from testbed.model import KEPT_ALIVE_S
from testbed.proof.check import check
from testbed.proof.evidence import Evidence

Values = Mapping[str, object]
_HTTP2 = ("", "header_table_size", "enable_push", "max_concurrent_streams", "initial_window_size",
          "max_frame_size", "max_header_list_size")  # fmt: skip
_HTTP3 = ("", "qpack_max_table_capacity", "", "", "", "", "max_field_section_size",
          "qpack_blocked_streams", "enable_connect_protocol")  # fmt: skip
_QUIC = (
    "original_destination_connection_id", "max_idle_timeout", "stateless_reset_token",
    "max_udp_payload_size", "initial_max_data", "initial_max_stream_data_bidi_local",
    "initial_max_stream_data_bidi_remote", "initial_max_stream_data_uni",
    "initial_max_streams_bidi", "initial_max_streams_uni", "ack_delay_exponent", "max_ack_delay",
    "disable_active_migration", "preferred_address", "active_connection_id_limit",
    "initial_source_connection_id", "retry_source_connection_id", "version_information",
)  # fmt: skip
"""Names by number: RFC 9113 section 6.5.2, RFC 9114 section 7.2.4.1, RFC 9000 section 18.2."""
_WORDS = (0x00, 0x02, 0x0C, 0x0D, 0x0F, 0x10, 0x11)
"""Parameters of QUIC that are no numbers, but the connection's own."""
_CONTROL_STREAM, _SETTINGS_FRAME, _SERVER_ALONE = 0x00, 0x04, 0x03

HTTP2: Values = {
    "max_concurrent_streams": 128, "initial_window_size": 65536, "max_frame_size": (1 << 24) - 1,
    "window_update": [(1 << 31) - 1 - 65535],
}  # fmt: skip
"""nginx's, which alone has HTTP/2, and by how much more it takes on all streams together."""
HTTP3: Mapping[str, Values] = {
    "nginx": {"qpack_max_table_capacity": 4096, "qpack_blocked_streams": 128},
    "aioquic": {
        "qpack_max_table_capacity": 4096,
        "qpack_blocked_streams": 16,
        "enable_connect_protocol": 1,
        "0x21": 1,
    },
}


def _quic(stream_bytes: int, connection_bytes: int, uni: int, ids: int, **more: object) -> Values:
    return dict.fromkeys((_QUIC[number] for number in (0x00, 0x02, 0x0F)), "a value") | {
        "max_idle_timeout": KEPT_ALIVE_S * 1000, "initial_max_data": connection_bytes,
        **dict.fromkeys(_QUIC[0x05:0x08], stream_bytes), "initial_max_streams_bidi": 128,
        "initial_max_streams_uni": uni, "ack_delay_exponent": 3, "max_ack_delay": 25,
        "active_connection_id_limit": ids, **more,
    }  # fmt: skip


QUIC: Mapping[str, Values] = {
    "nginx": _quic(65536, (128 + 3) * 65536, 3, 2, max_udp_payload_size=65527),
    "aioquic": _quic(1 << 20, 1 << 20, 128, 8, version_information="a value"),
}
"""Of HTTP/3 and of QUIC, by the program."""


@check(
    "settings",
    "http2",
    "handshakes",
    "quic",
    "condition",
    source="RFC 9113, RFC 9114, RFC 9000 section 18.2",
)
def check_settings(seen: Evidence) -> Iterator[str]:
    """Servers advertise the HTTP/2, HTTP/3 and QUIC settings that they were configured with."""
    opened = {(each.client, each.server) for each in seen.http2 if each.answered}
    answered = seen.served_ends if seen.has("served") else frozenset()
    closed = [
        each for each in seen.handshakes
        if each.answer and "h2" in (each.alpn, *each.answer.alpn)
        and (each.client, each.server) in answered - opened
    ]  # fmt: skip
    if closed:
        yield (
            f"the secrets that the client wrote down do not open what {len(closed)} connections "
            f"carry, the first {closed[0].name}"
        )
    program = "aioquic" if seen.condition.web_server == "aioquic" else "nginx"
    other: dict[str, list[str]] = {}
    told = [(each.name, "HTTP/2", _read_http2(each), HTTP2) for each in seen.http2]
    for each in seen.quic:
        told.append((each.name, "QUIC", _read_parameters(each), QUIC[program]))
        told.append((each.name, "HTTP/3", _read_control(each), HTTP3[program]))
    for name, protocol, values, due in told:
        differ = [
            f"{key} = {values.get(key, 'nothing')} instead of {due.get(key, 'nothing')}"
            for key in {**due, **values}
            if values and values.get(key) != due.get(key)  # what was given up may tell nothing
        ]
        if differ:
            other.setdefault(f"{protocol} with {', '.join(differ)}", []).append(name)
    for words, names in other.items():
        yield f"servers advertise {words}, on {len(names)} connections, the first {names[0]}"


def _read_http2(connection: Http2Connection) -> Values:
    """All settings, and each growth of the connection's window."""
    told: dict[str, object] = {}
    grown = []
    for frame in connection.answered:
        if frame.kind == SETTINGS and not frame.flags & ACK:
            told |= _named(read_settings(frame.payload), _HTTP2)
        elif frame.kind == WINDOW_UPDATE and not frame.stream:
            grown.append(int.from_bytes(frame.payload))
    return told | {"window_update": grown} if told or grown else {}


def _read_parameters(connection: QuicConnection) -> Values:
    extensions = dict(read_extensions(connection.told.get(ENCRYPTED_EXTENSIONS, b"")))
    block, position = extensions.get(QUIC_PARAMETERS, b""), 0
    told: dict[int, object] = {}
    while position < len(block):
        number, position = read_number(block, position)
        size, position = read_number(block, position)
        told[number] = "a value" if number in _WORDS else read_number(block, position)[0]
        position += size
    return _named(told, _QUIC)


def _read_control(connection: QuicConnection) -> Values:
    """The settings with which the server's control stream begins (RFC 9114 section 6.2.1)."""
    pieces = defaultdict[int, list[tuple[int, bytes]]](list)
    for packet in connection.packets:
        for frame in () if packet.by_client else packet.frames or ():
            if frame.kind == STREAM and frame.stream & _SERVER_ALONE == _SERVER_ALONE:
                pieces[frame.stream].append((frame.offset, frame.data))
    for stream in map(join_start, pieces.values()):
        if stream.startswith(bytes((_CONTROL_STREAM, _SETTINGS_FRAME))):
            size, position = read_number(stream, 2)
            numbers, end = [], position + size
            while position < end:
                number, position = read_number(stream, position)
                numbers.append(number)
            return _named(dict(zip(numbers[::2], numbers[1::2], strict=True)), _HTTP3)
    return {}


def _named(values: Mapping[int, object], names: Sequence[str]) -> dict[str, object]:
    known = dict(enumerate(names))
    return {known.get(number) or f"{number:#x}": value for number, value in values.items()}
