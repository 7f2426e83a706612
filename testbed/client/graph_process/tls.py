"""TLS over a connection's bytes, without a socket of its own, for HTTP/1.1 only.

Sources: RFC 8446, RFC 7301; Python's ssl.MemoryBIO.  The socket stays the connection's, so that
the ClientHello is its first write and leaves in the SYN.
"""

from __future__ import annotations

import ssl  # only imported for a page that has an https origin

TYPE_CHECKING = False  # not from typing, whose import costs every start
if TYPE_CHECKING:
    from typing import Any

ALPN = "http/1.1"
VERSIONS = {"1.3": ssl.TLSVersion.TLSv1_3, "1.2": ssl.TLSVersion.TLSv1_2}
READ_BYTES = 65536


# Its default there is a share of X25519MLKEM768 and one of X25519; before, one of X25519 alone.
POST_QUANTUM = (3, 5)


class Trust:
    """Trust that all connections of a load share: one authority, one way to greet, sessions."""

    def __init__(self, order: dict[str, Any], keys: str | None) -> None:
        """Trust the certificates in ``order["authority"]``, PEM text, and nothing else.

        Args:
            order: with the highest version to offer as ``tls_version`` ("1.3" or "1.2"), the
                ``key_share`` to send, and with ``resumption``, whether sessions are resumed.
            keys: the file to write the sessions' secrets to.
        """
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.maximum_version = VERSIONS[order["tls_version"]]
        self._context.load_verify_locations(cadata=order["authority"])
        self._context.set_alpn_protocols([ALPN])
        if order["key_share"] == "x25519" and ssl.OPENSSL_VERSION_INFO >= POST_QUANTUM:
            self._context.set_ecdh_curve("X25519")
        if keys is not None:
            self._context.keylog_filename = keys
        self._resumes = order["resumption"]
        self._sessions: dict[str, ssl.SSLSession] = {}

    def open(self, host: str) -> Tls:
        """Return a TLS client for ``host`` that resumes its newest session, if any is kept."""
        return Tls(self, self._context, host, self._sessions.get(host))

    def keep(self, host: str, session: ssl.SSLSession | None) -> None:
        """Remember a session for the next connection to ``host``."""
        if self._resumes and session is not None and session.has_ticket:
            self._sessions[host] = session


class Tls:
    """One TLS connection: bytes of the wire on one side, bytes of HTTP on the other."""

    __slots__ = ("_host", "_in", "_object", "_out", "_trust", "ready")

    def __init__(
        self, trust: Trust, context: ssl.SSLContext, host: str, session: ssl.SSLSession | None
    ) -> None:
        self._trust = trust
        self._host = host
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._in, self._out, server_hostname=host, session=session)
        self.ready = False

    def shake(self, data: bytes | None) -> bytes:
        """Take bytes of the handshake (``None``: none yet), and return what is to be sent.

        Raises:
            OSError: the handshake failed; ssl's errors are OSErrors.
        """
        if data:
            self._in.write(data)
        elif data is not None:
            raise ConnectionResetError("the server closed the connection inside the TLS handshake")
        try:
            self._object.do_handshake()
            self.ready = True
        except ssl.SSLWantReadError:
            pass
        return self._out.read()

    def encrypt(self, data: bytes) -> bytes:
        """Return the records that carry ``data``."""
        self._object.write(data)
        return self._out.read()

    def decrypt(self, data: bytes) -> bytes | None:
        """Return what the bytes carry; ``None`` when nothing is complete, ``b""`` at the end.

        Raises:
            OSError: they are no TLS.
        """
        if data:
            self._in.write(data)
        else:
            self._in.write_eof()
        pieces = []
        try:
            while piece := self._object.read(READ_BYTES):
                pieces.append(piece)
        except ssl.SSLWantReadError:
            return b"".join(pieces) or None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            pass
        return b"".join(pieces)

    def keep_session(self) -> None:
        """Let later connections resume this one's session."""
        self._trust.keep(self._host, self._object.session)
