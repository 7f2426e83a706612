"""Keys of QUIC and TLS 1.3, by which what a capture holds is opened (RFC 9001 section 5, RFC 8446).

Keys of Initial packets follow from a connection id, all others from secrets that the client writes
down (``keys.log``, in NSS's format, RFC 9850).  Which of a suite's ciphers a secret belongs to is
found by trying: what is opened by a wrong key fails its tag.
"""

from __future__ import annotations

import hmac
from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

EARLY, HANDSHAKE, APPLICATION = (
    "EARLY_TRAFFIC_SECRET",
    "HANDSHAKE_TRAFFIC_SECRET",
    "TRAFFIC_SECRET_0",
)
"""Labels of secrets behind the name of an end, ``CLIENT`` or ``SERVER``."""
MASTER = "CLIENT_RANDOM"
"""The label of the master secret of TLS 1.2."""
SAMPLE_BYTES = 16
_INITIAL_SALT = bytes.fromhex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a")
_IV_BYTES, _EXPLICIT_BYTES, _TAG_BYTES = 12, 8, 16

Secrets = dict[bytes, dict[str, bytes]]
"""Secrets by label, by the random of the ClientHello."""


@cache
def _ciphers(name: str = "") -> Any:
    """The package's ciphers, of which most judging has no need: importing them takes its time."""
    return import_module(f"cryptography.hazmat.primitives.ciphers{name}")


def _encryptor(algorithm: Any, mode: Any) -> Any:
    return _ciphers().Cipher(algorithm, mode).encryptor()


@cache
def _invalid() -> type[Exception]:
    error: type[Exception] = import_module("cryptography.exceptions").InvalidTag
    return error


class Keys:
    """What opens packets or records of one end, under one secret and one cipher."""

    def __init__(self, secret: bytes, *, prefix: str = "quic ", chacha: bool = False) -> None:
        """Derive the keys; ``prefix`` is what QUIC writes before labels, nothing for records."""
        self.secret, self.prefix, self.chacha = secret, prefix, chacha
        size = 32 if chacha or len(secret) == 48 else 16
        key = expand(secret, f"{prefix}key", size)
        self.iv = int.from_bytes(expand(secret, f"{prefix}iv", _IV_BYTES))
        name = "ChaCha20Poly1305" if chacha else "AESGCM"
        self._aead = getattr(_ciphers(".aead"), name)(key)
        self._veil = expand(secret, f"{prefix}hp", size) if prefix else b""
        self._masked: Any = None
        if prefix and not chacha:
            aes, mode = _ciphers(".algorithms").AES(self._veil), _ciphers(".modes").ECB()
            self._masked = _encryptor(aes, mode)

    def mask(self, sample: bytes) -> bytes:
        """Return what hides a header, by a sample of the packet (RFC 9001 section 5.4)."""
        if self._masked is not None:
            return bytes(self._masked.update(sample))
        chacha = _ciphers(".algorithms").ChaCha20(self._veil, sample)
        return bytes(_encryptor(chacha, None).update(bytes(5)))

    def open(self, number: int, content: bytes, header: bytes) -> bytes | None:
        """Return the plain text of packet or record ``number``; ``None``: it is not of these."""
        nonce = (self.iv ^ number).to_bytes(_IV_BYTES)
        try:
            return bytes(self._aead.decrypt(nonce, content, header))
        except (_invalid(), ValueError):
            return None

    def updated(self) -> Keys:
        """Return the keys after an update; headers stay hidden as before (RFC 9001 section 6.1)."""
        keys = Keys(expand(self.secret, f"{self.prefix}ku", len(self.secret)), chacha=self.chacha)
        keys._masked, keys._veil = self._masked, self._veil
        return keys


def initial_keys(connection_id: bytes) -> dict[bool, Keys]:
    """Return the keys of Initial packets, by whether the client sends (RFC 9001 section 5.2)."""
    secret = hmac.digest(_INITIAL_SALT, connection_id, "sha256")
    return {
        by_client: Keys(expand(secret, f"{'client' if by_client else 'server'} in", 32))
        for by_client in (True, False)
    }


def candidates(secret: bytes, *, prefix: str = "quic ") -> list[Keys]:
    """Return the keys that may follow from ``secret``, by its length one or two."""
    ways = (False,) if len(secret) == 48 else (False, True)
    return [Keys(secret, prefix=prefix, chacha=chacha) for chacha in ways]


class OldKeys:
    """What opens records of one end over TLS 1.2, under one cipher (RFC 5288, RFC 7905)."""

    def __init__(self, key: bytes, iv: bytes) -> None:
        """Take the key, and what nonces begin with, or, if that is all, are drawn from."""
        self._iv, self._chacha = iv, len(iv) == _IV_BYTES
        self._aead = getattr(_ciphers(".aead"), "ChaCha20Poly1305" if self._chacha else "AESGCM")(
            key
        )

    def open(self, number: int, content: bytes, header: bytes) -> bytes | None:
        """Return what record ``number`` hides, then its type; ``None``: it is not of these."""
        if self._chacha:
            nonce = (int.from_bytes(self._iv) ^ number).to_bytes(_IV_BYTES)
        else:
            nonce, content = self._iv + content[:_EXPLICIT_BYTES], content[_EXPLICIT_BYTES:]
        told = number.to_bytes(8) + header[:3] + max(0, len(content) - _TAG_BYTES).to_bytes(2)
        try:
            return bytes(self._aead.decrypt(nonce, content, told)) + header[:1]
        except (_invalid(), ValueError):
            return None


def old_candidates(master: bytes, randoms: bytes, *, by_client: bool) -> list[OldKeys]:
    """Return the keys of one end that may follow from a ``master`` secret, by their cipher.

    ``randoms`` are the server's and the client's (RFC 5246 section 6.3).
    """
    found, seed = [], b"key expansion" + randoms
    for digest, size, iv_bytes in (("sha384", 32, 4), ("sha256", 16, 4), ("sha256", 32, _IV_BYTES)):
        chained, block = seed, b""
        while len(block) < 2 * (size + iv_bytes):
            chained = hmac.digest(master, chained, digest)
            block += hmac.digest(master, chained + seed, digest)
        key_at, iv_at = (0, 2 * size) if by_client else (size, 2 * size + iv_bytes)
        found.append(OldKeys(block[key_at : key_at + size], block[iv_at : iv_at + iv_bytes]))
    return found


def expand(secret: bytes, label: str, size: int) -> bytes:
    """Return HKDF-Expand-Label of an empty context (RFC 8446 section 7.1)."""
    name = "sha384" if len(secret) == 48 else "sha256"
    words = b"tls13 " + label.encode()
    info = size.to_bytes(2) + bytes((len(words),)) + words + b"\0"
    made, block = b"", b""
    while len(made) < size:
        counter = len(made) // len(secret) + 1
        block = hmac.digest(secret, block + info + bytes((counter,)), name)
        made += block
    return made[:size]


def read_secrets(path: Path) -> Secrets:
    """Read a file in NSS's format: label, random and secret in each line.

    A client that opened no connection over TLS need not have written one.

    Raises:
        OSError: it cannot be read.
        ValueError: a line is none of such a file.
    """
    secrets: Secrets = defaultdict(dict)
    lines = path.read_text().splitlines() if path.exists() else ()
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        try:
            label, random, secret = line.split(" ")
            secrets[bytes.fromhex(random)][label] = bytes.fromhex(secret)
        except ValueError as error:
            raise ValueError(f"{path}:{number}: not a label, a random and a secret") from error
    return dict(secrets)
