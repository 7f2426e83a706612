"""TLS 1.3 of a scenario's hosts: OpenSSL's own, with tickets and early data, on sockets of ours.

Python's ssl module has no early data, so libssl is called directly (SSL_read_early_data(3)).  It
only turns bytes into bytes: what it makes of one step goes to the kernel in one piece.  One key
exchange and one ticket for each connection, so that a flight has the same records with all
versions.  Standard library only: this is what a guest executes.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_long, c_size_t, c_uint32, c_uint64, c_void_p
from functools import cache
from typing import Any

from testbed.base.errors import MissingError

_MOST_EARLY = 16_384
_ROOM = 65_536
_DAY_S = 86_400
# ssl.h
_TLS_1_3 = 0x0304
_MIN_VERSION, _MAX_VERSION, _GROUPS = 123, 124, 92
_NO_ANTI_REPLAY = 1 << 24
_WANT_READ, _CLOSED = 2, 6
_EARLY_FINISH = 2
_REFUSED, _ACCEPTED = 1, 2
_POINTERS = (
    "TLS_method", "SSL_CTX_new", "SSL_new", "SSL_get1_session", "BIO_s_mem", "BIO_new",
    "EVP_PKEY_Q_keygen", "X509_new", "X509_getm_notBefore", "X509_getm_notAfter", "X509_gmtime_adj",
)  # fmt: skip


class TlsError(OSError):
    """OpenSSL refuses to go on."""


class TlsEnd:
    """TLS on one connection; ``received`` are bytes that came, ``leaving`` bytes that are to go."""

    def __init__(self, context: TlsContext, *, client: bool) -> None:
        """Begin as client, with the context's ticket if it has one, or as server."""
        self._context, self._client = context, client
        self._ssl = _pointer("SSL_new", context.pointer)
        self._in, self._out = (_pointer("BIO_new", _pointer("BIO_s_mem")) for _ in range(2))
        _openssl("SSL_set_bio", self._ssl, self._in, self._out)
        _openssl("SSL_set_connect_state" if client else "SSL_set_accept_state", self._ssl)
        if client and context.ticket is not None:
            _openssl("SSL_set_session", self._ssl, context.ticket)
        self._reads_early = not client
        self._plain = b""

    def feed(self, received: bytes) -> None:
        """Take what the other side has sent."""
        _openssl("BIO_write", self._in, received, len(received))

    def leaving(self) -> bytes:
        """Return what is to be sent now, all of it."""
        room = ctypes.create_string_buffer(_ROOM)
        size = _openssl("BIO_read", self._out, room, _ROOM)
        return room.raw[: max(0, size)]

    def say_hello(self, early: bytes) -> int:
        """Say hello; return how many bytes of ``early`` go with it: all, or none by the ticket."""
        if early and self._context.takes_early:
            self._write("SSL_write_early_data", early)
            return len(early)
        self._step("SSL_do_handshake")
        return 0

    def shake_hands(self) -> bool:
        """Go on with the handshake; return whether this side may send what it likes."""
        if self._reads_early:
            self._plain += self._read_early()
            return not self._reads_early or self._early_status == _ACCEPTED
        return self._step("SSL_do_handshake") > 0

    @property
    def outcome(self) -> str:
        """What became of early data, ``accepted`` or ``refused``, else ``resumed`` or ``full``."""
        early = {_ACCEPTED: "accepted", _REFUSED: "refused"}.get(self._early_status)
        resumed = "resumed" if _openssl("SSL_session_reused", self._ssl) else "full"
        return early or resumed

    def write(self, data: bytes) -> None:
        """Send ``data``: a server may, before its client's last message (section 2 of RFC 8446)."""
        self._write("SSL_write_early_data" if self._reads_early else "SSL_write_ex", data)

    def read(self) -> bytes:
        """Return the data that have come, and keep the ticket that came with them."""
        plain, self._plain = self._plain, b""
        if self._reads_early:
            plain += self._read_early()
        if not self._reads_early:
            plain += self._read("SSL_read_ex")[1]
        if self._client:
            self._context.keep_ticket(self._ssl)
        return plain

    @property
    def _early_status(self) -> int:
        return _openssl("SSL_get_early_data_status", self._ssl)

    def _read_early(self) -> bytes:
        result, data = self._read("SSL_read_early_data")
        if result == _EARLY_FINISH:
            self._reads_early = False
        return data

    def _read(self, function: str) -> tuple[int, bytes]:
        room, size = ctypes.create_string_buffer(_ROOM), c_size_t(0)
        result = self._step(function, room, c_size_t(_ROOM), byref(size))
        return result, room.raw[: size.value]

    def _write(self, function: str, data: bytes) -> None:
        self._step(function, data, c_size_t(len(data)), byref(c_size_t(0)))

    def _step(self, function: str, *values: Any) -> int:
        """Call a function of a connection; what it waits for is no error.

        Raises:
            TlsError: the handshake has failed.
        """
        _openssl("ERR_clear_error")
        result = _openssl(function, self._ssl, *values)
        failed = _openssl("SSL_get_error", self._ssl, result) if result <= 0 else 0
        if failed not in (0, _WANT_READ, _CLOSED):
            raise TlsError(None, f"{function}: error {failed} of OpenSSL")
        return result


class TlsContext:
    """TLS of one host: its certificate, how it takes early data, and the last ticket it was given.

    What is made here lives as long as the process.
    """

    def __init__(self) -> None:
        """Make a certificate, and take early data.

        Raises:
            MissingError: there is no OpenSSL 3.
        """
        self.ticket: c_void_p | None = None
        self.pointer = _pointer("SSL_CTX_new", _pointer("TLS_method"))
        for command in (_MIN_VERSION, _MAX_VERSION):
            _openssl("SSL_CTX_ctrl", self.pointer, command, c_long(_TLS_1_3), None)
        _openssl("SSL_CTX_ctrl", self.pointer, _GROUPS, c_long(0), c_char_p(b"X25519"))
        _openssl("SSL_CTX_set_num_tickets", self.pointer, c_size_t(1))
        key, certificate = _make_certificate()
        _openssl("SSL_CTX_use_certificate", self.pointer, certificate)
        _openssl("SSL_CTX_use_PrivateKey", self.pointer, key)
        self.take_early("on")

    def take_early(self, mode: str) -> None:
        """Take early data from now on: ``on``, ``off``, or ``once`` (section 8.1 of RFC 8446)."""
        replay = "SSL_CTX_clear_options" if mode == "once" else "SSL_CTX_set_options"
        _openssl(replay, self.pointer, c_uint64(_NO_ANTI_REPLAY))
        most = 0 if mode == "off" else _MOST_EARLY
        _openssl("SSL_CTX_set_max_early_data", self.pointer, c_uint32(most))

    @property
    def takes_early(self) -> bool:
        """Whether the ticket lets its holder send early data."""
        if self.ticket is None:
            return False
        return _openssl("SSL_SESSION_get_max_early_data", self.ticket) > 0

    def keep_ticket(self, ssl: c_void_p) -> None:
        """Keep the ticket of a connection in place of the one before, if it has been given one."""
        session = _pointer("SSL_get1_session", ssl)
        if _openssl("SSL_SESSION_is_resumable", session):
            self.ticket = session


def _make_certificate() -> tuple[c_void_p, c_void_p]:
    """Return a key and a certificate without names, which no client of ours checks."""
    key = _pointer("EVP_PKEY_Q_keygen", None, None, c_char_p(b"ED25519"))
    certificate = _pointer("X509_new")
    for end, seconds in (("notBefore", 0), ("notAfter", _DAY_S)):
        _pointer("X509_gmtime_adj", _pointer(f"X509_getm_{end}", certificate), c_long(seconds))
    _openssl("X509_set_pubkey", certificate, key)
    _openssl("X509_sign", certificate, key, None)
    return key, certificate


@cache
def _function(name: str) -> Any:
    try:
        library = ctypes.CDLL("libssl.so.3")  # libcrypto comes with it
        found = getattr(library, name)
    except (OSError, AttributeError) as error:
        raise MissingError(f"TLS needs OpenSSL 3 ({error}); use a root that has it") from error
    found.restype = c_void_p if name in _POINTERS else c_int
    return found


def _openssl(name: str, *values: Any) -> int:
    return int(_function(name)(*values) or 0)


def _pointer(name: str, *values: Any) -> c_void_p:
    return c_void_p(_function(name)(*values))
