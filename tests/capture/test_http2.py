"""HTTP/2 over TLS 1.3 and 1.2, sealed by hand as each of their ciphers does it."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from testbed.capture.http2 import Http2Frame, read_http2, read_settings
from testbed.capture.quic_keys import MASTER, expand
from testbed.capture.tls import count_certificates
from tests.capture.packets import Capture, Visit, server_hello, tls_record
from tests.capture.quic import RANDOM, SECRETS, TLS13, hello

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\0\0\x06\4\0\0\0\0\0" + b"\0\3\0\0\0\x80"
DATA = b"\0\0\x02\0\1\0\0\0\1" + b"hi"
CHANGES_CIPHERS = b"\x14\x03\x03\0\1\1"
MASTER_SECRET = b"m" * 48
OLD = {"AES-256": ("sha384", 32, 4), "AES-128": ("sha256", 16, 4), "ChaCha20": ("sha256", 32, 12)}


def sealed_now(secret: bytes, number: int, kind: int, plain: bytes) -> bytes:
    """A record of TLS 1.3 (RFC 8446 section 5.2)."""
    header = b"\x17\x03\x03" + (len(plain) + 17).to_bytes(2)
    nonce = int.from_bytes(expand(secret, "iv", 12)) ^ number
    key = AESGCM(expand(secret, "key", 16))
    return header + key.encrypt(nonce.to_bytes(12), plain + bytes((kind,)), header)


def blocks(digest: str) -> Iterator[bytes]:
    """The key block of TLS 1.2 (RFC 5246 section 5)."""
    seed = b"key expansion" + bytes(32) + RANDOM
    chained = hmac.digest(MASTER_SECRET, seed, digest)
    while True:
        yield hmac.digest(MASTER_SECRET, chained + seed, digest)
        chained = hmac.digest(MASTER_SECRET, chained, digest)


def sealed_then(cipher: str, by_client: bool, number: int, kind: int, plain: bytes) -> bytes:
    """A record of TLS 1.2 (RFC 5288, RFC 7905)."""
    digest, size, iv_bytes = OLD[cipher]
    made = blocks(digest)
    block = b"".join(next(made) for _ in range(4))
    key = block[:size] if by_client else block[size : 2 * size]
    iv = block[2 * size :][:iv_bytes] if by_client else block[2 * size + iv_bytes :][:iv_bytes]
    told = number.to_bytes(8) + bytes((kind, 3, 3)) + len(plain).to_bytes(2)
    if cipher == "ChaCha20":
        nonce = (int.from_bytes(iv) ^ number).to_bytes(12)
        content = ChaCha20Poly1305(key).encrypt(nonce, plain, told)
    else:
        own = b"explicit"
        content = own + AESGCM(key).encrypt(iv + own, plain, told)
    return bytes((kind, 3, 3)) + len(content).to_bytes(2) + content


@pytest.mark.parametrize("cipher", ["1.3", *OLD])
def test_frames_are_opened_by_the_client_s_secrets(tmp_path: Path, cipher: str) -> None:
    new = cipher == "1.3"
    keys = SECRETS if new else {MASTER: MASTER_SECRET}
    seal = (
        {by: partial(sealed_now, SECRETS[f"{end}_TRAFFIC_SECRET_0"])
         for by, end in ((True, "CLIENT"), (False, "SERVER"))}
        if new else {by: partial(sealed_then, cipher, by) for by in (True, False)}
    )  # fmt: skip
    begin = (b"", b"") if new else (seal[True](0, 22, b"finished"), seal[False](0, 22, b"finished"))
    data, visit = int(not new), Visit(Capture(), 2000, server_port=443)
    first = tls_record(1, hello()[4:])
    visit.open()
    visit.send(0, first)
    opened = seal[False](data, 23, SETTINGS + DATA[:5]), seal[False](data + 1, 23, DATA[5:] + b"\0")
    clear = server_hello(*((TLS13,) if new else ())) + CHANGES_CIPHERS
    visit.answer(clear + begin[1] + b"".join(opened))
    visit.send(len(first), CHANGES_CIPHERS + begin[0] + seal[True](data, 23, PREFACE + SETTINGS))
    flows = visit.capture.flows(tmp_path).flows
    (connection,) = read_http2(flows, {RANDOM: keys})
    settings = Http2Frame(4, 0, 0, SETTINGS[9:])
    assert (connection.asked, connection.answered) == (
        (settings,), (settings, Http2Frame(0, 1, 1, b"hi")),
    )  # fmt: skip
    assert read_settings(settings.payload) == {3: 128}
    assert list(read_http2(flows, {RANDOM: {MASTER: b"other"}})) == []
    assert list(read_http2(flows, {})) == []


def test_certificates_of_tls_1_2_have_no_extensions() -> None:
    one = b"\0\0\x03abc"
    assert count_certificates(b"\0\0\x0c" + 2 * one, old=True) == 2
    assert count_certificates(b"\0\0\0\x10" + 2 * (one + b"\0\0")) == 2
