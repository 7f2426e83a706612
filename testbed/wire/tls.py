"""TLS hellos as a capture shows them, in frames that may be cut (RFC 8446 sections 4.1, 5.1).

Only what stands in clear at the start of a connection is read: how long the client's first record
is, and which version the server chose.
"""

from __future__ import annotations

from testbed.model import TlsVersion

HANDSHAKE_START = b"\x16\x03"
RECORD_HEADER_BYTES = 5
ALERT, APPLICATION_DATA = 21, 23
ALERT_RECORD_BYTES = 2 + 1 + 16
"""An alert in a record of TLS 1.3: two bytes, its hidden type, and the tag of all its ciphers."""
CLIENT_HELLO, SERVER_HELLO = 1, 2
SUPPORTED_VERSIONS = 43
# In a ServerHello: record header, message header, version, random; the session id comes next.
SESSION_ID_AT = RECORD_HEADER_BYTES + 4 + 2 + 32
VERSIONS: dict[bytes, TlsVersion] = {b"\x03\x04": "1.3", b"\x03\x03": "1.2"}


def record_bytes(payload: bytes) -> int:
    """Bytes of the handshake record that ``payload`` begins with, header included; 0: none."""
    if len(payload) < RECORD_HEADER_BYTES or not payload.startswith(HANDSHAKE_START):
        return 0
    return RECORD_HEADER_BYTES + int.from_bytes(payload[3:5], "big")


def is_client_hello(payload: bytes) -> bool:
    """Whether ``payload`` begins with a ClientHello."""
    return _message_type(payload) == CLIENT_HELLO


def holds_alert(payload: bytes) -> bool:
    """Whether one of the records that ``payload`` begins with is an alert (RFC 8446 section 6).

    TLS 1.3 hides the type of its records; nothing else that HTTP sends in one is so short.
    """
    position = 0
    while len(payload) >= position + RECORD_HEADER_BYTES and payload[position + 1] == 3:
        size = int.from_bytes(payload[position + 3 : position + 5], "big")
        kind = payload[position]
        if kind == ALERT or (kind == APPLICATION_DATA and size == ALERT_RECORD_BYTES):
            return True
        position += RECORD_HEADER_BYTES + size
    return False


def chosen_version(payload: bytes) -> str | None:
    """The version that a ServerHello at the start of ``payload`` chooses: 1.3, 1.2, or its bytes.

    ``None``: it is no ServerHello, or too little of it was captured to tell.  TLS 1.3 is chosen by
    an extension (section 4.2.1), the older ones by the version in the message.
    """
    if _message_type(payload) != SERVER_HELLO or len(payload) <= SESSION_ID_AT:
        return None
    version = payload[SESSION_ID_AT - 34 : SESSION_ID_AT - 32]
    # After the session id: cipher suite (2 bytes), compression (1), length of the extensions (2).
    position = SESSION_ID_AT + 1 + payload[SESSION_ID_AT] + 3
    end = position + 2 + int.from_bytes(payload[position : position + 2], "big")
    if position >= record_bytes(payload):  # no extensions at all
        return _name(version)
    position += 2
    while position < end:
        if position + 4 > len(payload):
            return None
        kind, size = (int.from_bytes(payload[position + i : position + i + 2]) for i in (0, 2))
        position += 4
        if kind == SUPPORTED_VERSIONS:
            version = payload[position : position + 2]
            return _name(version) if len(version) == 2 else None
        position += size
    return _name(version)


def _message_type(payload: bytes) -> int | None:
    if not payload.startswith(HANDSHAKE_START) or len(payload) <= RECORD_HEADER_BYTES:
        return None
    return payload[RECORD_HEADER_BYTES]


def _name(version: bytes) -> str:
    return VERSIONS.get(version) or f"version {version.hex()}"
