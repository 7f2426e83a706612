"""TLS hellos as a capture shows them, in frames that may be cut (RFC 8446 sections 4.1, 5.1).

They stand in clear at the start of a connection: over TCP in records, in QUIC in CRYPTO frames.
What the server says of early data, and its certificates, are in messages that secrets open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from testbed.model import TlsVersion

HANDSHAKE_START = b"\x16\x03"
RECORD_HEADER_BYTES = 5
MESSAGE_HEADER_BYTES = 4
CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION_DATA = 20, 21, 22, 23
ALERT_RECORD_BYTES = 2 + 1 + 16
"""An alert in a record of TLS 1.3: two bytes, its hidden type, and the tag of all its ciphers."""
CLIENT_HELLO, SERVER_HELLO, NEW_TICKET, ENCRYPTED_EXTENSIONS, CERTIFICATE = 1, 2, 4, 8, 11
ALPN, SESSION_TICKET, PRE_SHARED_KEY, EARLY_DATA, SUPPORTED_VERSIONS, KEY_SHARE = (
    *(16, 35, 41, 42, 43, 51),
)
QUIC_PARAMETERS = 57
VERSIONS: dict[bytes, TlsVersion] = {b"\x03\x04": "1.3", b"\x03\x03": "1.2"}
GROUPS = {0x17: "secp256r1", 0x18: "secp384r1", 0x1D: "x25519", 0x11EC: "x25519mlkem768"}
"""Names of groups as the knob ``key_share`` has them; another is named by its number."""
RANDOM_BYTES = 32
# In a ServerHello: message header, version, random; the session id comes next.
_SESSION_ID_AT = MESSAGE_HEADER_BYTES + 2 + RANDOM_BYTES
# Section 4.1.3: the random of a HelloRetryRequest.
_RETRY_RANDOM = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")


@dataclass(frozen=True, slots=True)
class Hello:
    """A ClientHello or a ServerHello, as far as it was captured.

    ``size`` is the message's in bytes, its header included.  ``version`` is what a server chose:
    1.3, 1.2, or its bytes; ``None``: that cannot be told.  ``groups`` are those of the key shares,
    a server's the one that it chose.  ``ticket``: a session is offered, or taken up.  ``retry``: a
    server asks for another hello (HelloRetryRequest).  ``whole``: nothing of it was cut off.
    """

    by_client: bool
    size: int
    random: bytes
    version: str | None
    groups: tuple[str, ...]
    ticket: bool
    early_data: bool
    alpn: tuple[str, ...]
    retry: bool
    whole: bool
    takes_tickets: bool = False
    """Of TLS 1.2 (RFC 5077 section 3.2)."""


def record_bytes(payload: bytes) -> int:
    """Bytes of the handshake record that ``payload`` begins with, header included; 0: none."""
    if len(payload) < RECORD_HEADER_BYTES or not payload.startswith(HANDSHAKE_START):
        return 0
    return RECORD_HEADER_BYTES + int.from_bytes(payload[3:5], "big")


def holds_alert(payload: bytes) -> bool:
    """Whether one of the records that ``payload`` begins with is an alert (RFC 8446 section 6).

    TLS 1.3 hides the type of its records; nothing else that HTTP sends in one is so short.
    """
    return any(
        kind == ALERT or (kind == APPLICATION_DATA and size == ALERT_RECORD_BYTES)
        for kind, size, _ in read_records(payload)
    )


def read_records(stream: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield type, length and captured content of each record from the start of ``stream``."""
    position = 0
    while len(stream) >= position + RECORD_HEADER_BYTES and stream[position + 1] == 3:
        size = int.from_bytes(stream[position + 3 : position + 5], "big")
        start = position + RECORD_HEADER_BYTES
        yield stream[position], size, stream[start : start + size]
        position = start + size


def read_hello_record(stream: bytes) -> Hello | None:
    """Return the hello in the records with which ``stream`` begins; ``None``: there is none."""
    message = b""
    if not stream.startswith(HANDSHAKE_START):
        return None
    for kind, _, content in read_records(stream):
        if kind != HANDSHAKE:
            break
        message += content
        if len(message) >= message_bytes(message):
            break
    return read_hello(message)


def read_second(stream: bytes) -> int | None:
    """Return the type of the message behind the hello with which ``stream`` begins.

    It is that of a record that is no handshake's, as ``CHANGE_CIPHER_SPEC``; ``None``: none came.
    """
    message = b""
    for kind, size, content in read_records(stream):
        if kind != HANDSHAKE:
            return kind if message else None
        message += content
        first = message_bytes(message)
        if len(message) > first:
            return message[first]
        if len(content) < size:
            return None
    return None


def message_bytes(messages: bytes) -> int:
    """Bytes of the message that ``messages`` begin with, header included."""
    return MESSAGE_HEADER_BYTES + int.from_bytes(messages[1:MESSAGE_HEADER_BYTES], "big")


def read_hello(message: bytes) -> Hello | None:
    """Return what a message says that begins with a hello's header; ``None``: it is none."""
    if message[:1] not in (bytes((CLIENT_HELLO,)), bytes((SERVER_HELLO,))):
        return None
    by_client = message[0] == CLIENT_HELLO
    size = message_bytes(message)
    message = message[:size]
    random = message[MESSAGE_HEADER_BYTES + 2 : _SESSION_ID_AT]
    position = _SESSION_ID_AT + 1 + int.from_bytes(message[_SESSION_ID_AT : _SESSION_ID_AT + 1])
    if by_client:  # cipher suites and compressions, each behind its length
        position += 2 + int.from_bytes(message[position : position + 2], "big")
        position += 1 + int.from_bytes(message[position : position + 1], "big")
    else:  # one of each
        position += 3
    found = dict(read_extensions(message[position:]))
    legacy = message[MESSAGE_HEADER_BYTES : MESSAGE_HEADER_BYTES + 2]
    whole = len(message) == size > _SESSION_ID_AT
    version = None if by_client else _version(found, legacy, whole)
    return Hello(
        *(by_client, size, random, version, _read_groups(found.get(KEY_SHARE, b""), by_client)),
        ticket=PRE_SHARED_KEY in found,
        early_data=EARLY_DATA in found,
        alpn=read_alpn(found),
        retry=random == _RETRY_RANDOM and not by_client,
        whole=whole,
        takes_tickets=SESSION_TICKET in found,
    )


def read_extensions(block: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield type and data of each extension of a ``block`` that begins with its length.

    The data of the last may have been cut, and what is behind a cut is left out.
    """
    position, end = 2, min(len(block), 2 + int.from_bytes(block[:2], "big"))
    while position + MESSAGE_HEADER_BYTES <= end:
        kind = int.from_bytes(block[position : position + 2], "big")
        size = int.from_bytes(block[position + 2 : position + 4], "big")
        position += 4
        yield kind, block[position : min(position + size, end)]
        position += size


def read_alpn(extensions: Mapping[int, bytes]) -> tuple[str, ...]:
    """Return the protocols of an ALPN extension (RFC 7301); none: there is no such extension."""
    data, names = extensions.get(ALPN, b"")[2:], []
    while data:
        names.append(data[1 : 1 + data[0]].decode("latin-1"))
        data = data[1 + data[0] :]
    return tuple(names)


def read_messages(messages: bytes) -> dict[int, bytes]:
    """Return the bodies of whole messages by their types, the last of each."""
    return dict(_split(messages))


def _split(messages: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield type and body of each whole message."""
    while len(messages) >= MESSAGE_HEADER_BYTES and len(messages) >= message_bytes(messages):
        end = message_bytes(messages)
        yield messages[0], messages[MESSAGE_HEADER_BYTES:end]
        messages = messages[end:]


def read_tickets(messages: bytes) -> tuple[bool, ...]:
    """Return of each NewSessionTicket of whole messages whether it is for early data (4.6.1)."""
    found = []
    for body in (body for kind, body in _split(messages) if kind == NEW_TICKET):
        # Its lifetime, what is added to its age, and a nonce come before the ticket.
        ticket = 9 + int.from_bytes(body[8:9])
        block = ticket + 2 + int.from_bytes(body[ticket : ticket + 2])
        found.append(EARLY_DATA in dict(read_extensions(body[block:])))
    return tuple(found)


def count_certificates(body: bytes, *, old: bool = False) -> int:
    """Return how many certificates a message of them has (section 4.4.2, ``old``: TLS 1.2)."""
    position = 3 if old else 1 + body[0] + 3 if body else 0
    count = 0
    while position < len(body):
        position += 3 + int.from_bytes(body[position : position + 3])
        position += 0 if old else 2 + int.from_bytes(body[position : position + 2])
        count += 1
    return count


def _version(found: dict[int, bytes], legacy: bytes, whole: bool) -> str | None:
    """TLS 1.3 is chosen by an extension (section 4.2.1), others by the version in the message."""
    chosen = found.get(SUPPORTED_VERSIONS, legacy if whole else b"")
    if len(chosen) != 2:
        return None
    return VERSIONS.get(chosen) or f"version {chosen.hex()}"


def _read_groups(data: bytes, by_client: bool) -> tuple[str, ...]:
    """Section 4.2.8; groups that a client makes up are left out (GREASE, RFC 8701)."""
    groups: list[int] = []
    position = 2 if by_client else 0
    while position + 2 <= len(data):
        groups.append(int.from_bytes(data[position : position + 2], "big"))
        position += 4 + int.from_bytes(data[position + 2 : position + 4], "big")
    real = [g for g in groups if g & 0x0F0F != 0x0A0A or g >> 8 != g & 0xFF]
    return tuple(GROUPS.get(group, f"{group:#06x}") for group in real)
