"""Signature of an archive's index: a text signed in clear, held against public keys.

What of OpenPGP (RFC 9580) Debian's archives use: signatures of version 4 by RSA with SHA-2
(RFC 8017, section 8.2.2), keys in ASCII armor.  Others are passed over.  All keys of the file are
trusted, so that nobody's certificates, and no dates, are read.  Standard library only, because a
machine without Debian's programs has nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass

_SIGNED = re.compile(
    r"\A-----BEGIN PGP SIGNED MESSAGE-----\n(?:Hash: [A-Za-z0-9, -]+\n)*\n"
    r"(?P<text>.*)\n(?P<armor>-----BEGIN PGP SIGNATURE-----\n.*)\Z",
    re.DOTALL,
)
_ARMOR = re.compile(
    r"^-----BEGIN PGP [A-Z ]+-----\n(?:[^\n]+\n)*\n(?P<body>[A-Za-z0-9+/=\n]+?)\n(?:=[^\n]{4}\n)?"
    r"-----END PGP ",
    re.MULTILINE,
)
_SIGNATURE, _KEYS = 2, (6, 14)
_RSA = (1, 3)
_LEAST_BITS = 2048
# By OpenPGP's number: the digest, and how PKCS #1 begins what is signed (RFC 8017, section 9.2).
_DIGESTS = {8: ("sha256", bytes.fromhex("3031300d060960864801650304020105000420")),
            9: ("sha384", bytes.fromhex("3041300d060960864801650304020205000430")),
            10: ("sha512", bytes.fromhex("3051300d060960864801650304020305000440"))}  # fmt: skip
_TEXT_SIGNATURE = 1


@dataclass(frozen=True, slots=True)
class RsaKey:
    """A public key: modulus and exponent."""

    modulus: int
    exponent: int


def read_keys(armored: str) -> tuple[RsaKey, ...]:
    """Return the RSA keys, and subkeys, in a file of public keys; others are passed over."""
    keys = []
    for kind, body in _packets(_unarmor(armored)):
        if kind in _KEYS and body[0] == 4 and body[5] in _RSA:
            modulus, rest = _read_number(body[6:])
            exponent, _ = _read_number(rest)
            if modulus.bit_length() >= _LEAST_BITS:
                keys.append(RsaKey(modulus, exponent))
    return tuple(keys)


def read_signed(message: bytes, keys: tuple[RsaKey, ...]) -> str | None:
    """Return the text that is signed in ``message`` by one of ``keys``; ``None``: by none."""
    try:
        match = _SIGNED.match(message.decode("utf-8").replace("\r\n", "\n"))
        if match is None:
            return None
        lines = [line.removeprefix("- ").rstrip(" \t") for line in match["text"].split("\n")]
        signed = "\r\n".join(lines).encode()
        signatures = [body for kind, body in _packets(_unarmor(match["armor"]))
                      if kind == _SIGNATURE]  # fmt: skip
        if any(_verifies(body, signed, keys) for body in signatures):
            return "\n".join([*lines, ""])
    except (ValueError, IndexError):
        pass  # no message of this form
    return None


def _verifies(body: bytes, signed: bytes, keys: tuple[RsaKey, ...]) -> bool:
    """Return whether the signature ``body`` (RFC 9580, section 5.2.3) is one of ``keys``."""
    version, kind, algorithm, digest = body[:4]
    if version != 4 or kind != _TEXT_SIGNATURE or algorithm not in _RSA or digest not in _DIGESTS:
        return False
    name, prefix = _DIGESTS[digest]
    hashed = body[: 6 + int.from_bytes(body[4:6], "big")]
    rest = body[len(hashed) :]
    value, _ = _read_number(rest[2 + int.from_bytes(rest[:2], "big") + 2 :])
    trailer = b"\x04\xff" + len(hashed).to_bytes(4, "big")
    info = prefix + hashlib.new(name, signed + hashed + trailer).digest()
    for key in keys:
        size = (key.modulus.bit_length() + 7) // 8
        expected = b"\x00\x01" + b"\xff" * (size - len(info) - 3) + b"\x00" + info
        if value < key.modulus:
            found = pow(value, key.exponent, key.modulus).to_bytes(size, "big")
            if hmac.compare_digest(found, expected):
                return True
    return False


def _unarmor(text: str) -> bytes:
    match = _ARMOR.search(text)
    return base64.b64decode(match["body"], validate=False) if match else b""


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield kind and body of each packet (RFC 9580, section 4.2)."""
    while data:
        head = data[0]
        if head & 0x40:  # the newer form
            kind, first = head & 0x3F, data[1]
            if first < 192:
                start, size = 2, first
            elif first < 224:
                start, size = 3, ((first - 192) << 8) + data[2] + 192
            else:
                start, size = 6, int.from_bytes(data[2:6], "big")
        else:
            width = 1 << (head & 3)
            kind, start = (head >> 2) & 15, 1 + width
            size = int.from_bytes(data[1:start], "big")
        yield kind, data[start : start + size]
        data = data[start + size :]


def _read_number(data: bytes) -> tuple[int, bytes]:
    """Return a number (RFC 9580, section 3.2) and what follows it."""
    end = 2 + (int.from_bytes(data[:2], "big") + 7) // 8
    return int.from_bytes(data[2:end], "big"), data[end:]
