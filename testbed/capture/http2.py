"""HTTP/2 in a capture: the frames of both ends, opened by the client's secrets (RFC 9113)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from testbed.capture.flows import Flow
from testbed.capture.handshakes import read_data

DATA, SETTINGS, WINDOW_UPDATE = 0x0, 0x4, 0x8
END_STREAM = ACK = 0x1
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEADER_BYTES = 9


class Http2Frame(NamedTuple):
    """One frame; its payload, the padding included."""

    kind: int
    flags: int
    stream: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Http2Connection:
    """A connection that began with HTTP/2's preface, and what either end sent behind it."""

    client: str
    server: str
    asked: tuple[Http2Frame, ...]
    answered: tuple[Http2Frame, ...]

    @property
    def name(self) -> str:
        """The connection's name in sentences."""
        return f"TCP {self.client} to {self.server}"


def read_http2(
    flows: Sequence[Flow], secrets: Mapping[bytes, Mapping[str, bytes]]
) -> Iterator[Http2Connection]:
    """Yield the connections over TLS that speak HTTP/2, each up to the first hole of either end."""
    for flow in flows:
        asked = b"".join(read_data(flow, secrets, by_client=True))
        if asked.startswith(_PREFACE):
            answered = b"".join(read_data(flow, secrets, by_client=False))
            yield Http2Connection(
                *flow.ends,
                tuple(_read_frames(asked[len(_PREFACE) :])),
                tuple(_read_frames(answered)),
            )


def read_settings(payload: bytes) -> dict[int, int]:
    """Return the values of a SETTINGS frame by their identifiers (section 6.5.1)."""
    each = (payload[at : at + 6] for at in range(0, len(payload), 6))
    return {int.from_bytes(one[:2]): int.from_bytes(one[2:]) for one in each}


def _read_frames(stream: bytes) -> Iterator[Http2Frame]:
    """Yield the whole frames of a stream of bytes (section 4.1)."""
    position = 0
    while position + _HEADER_BYTES <= len(stream):
        header = stream[position : position + _HEADER_BYTES]
        end = position + _HEADER_BYTES + int.from_bytes(header[:3])
        if end > len(stream):
            return
        number = int.from_bytes(header[5:]) & 0x7FFF_FFFF
        yield Http2Frame(header[3], header[4], number, stream[position + _HEADER_BYTES : end])
        position = end
