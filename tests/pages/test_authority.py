"""The lab's authority: chains that verify, the same everywhere, for every kind of host."""

from __future__ import annotations

import base64
import hashlib
import os
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.verification import PolicyBuilder, Store

from testbed.base.proc import run
from testbed.pages.authority import (
    CERTIFICATE_BYTES,
    KEY_BITS,
    VALID_FROM,
    VALID_TO,
    derive_key,
    derive_prime,
    is_prime,
    make_authority,
)

HOST = "www.example.com"
LONG = f"{'a' * 60}.{'b' * 60}.example"


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return make_authority([HOST, LONG, "192.0.2.7", HOST])


def chain_of(files: dict[str, bytes], host: str) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(files[f"{host}.pem"])


def test_the_files(files: dict[str, bytes]) -> None:
    assert set(files) == {
        "authority.pem", "authority.spki", "key.pem",
        f"{HOST}.pem", f"{LONG}.pem", "192.0.2.7.pem",
    }  # fmt: skip


@pytest.mark.parametrize("host", [HOST, LONG])
@pytest.mark.parametrize("when", [VALID_FROM, datetime(2023, 11, 14), VALID_TO])
def test_the_chain_verifies(files: dict[str, bytes], host: str, when: datetime) -> None:
    leaf, intermediate = chain_of(files, host)
    root = x509.load_pem_x509_certificate(files["authority.pem"])
    verifier = (
        PolicyBuilder()
        .store(Store([root]))
        .time(when.replace(tzinfo=None) + timedelta(0))
        .build_server_verifier(x509.DNSName(host))
    )
    assert len(verifier.verify(leaf, [intermediate])) == 3


def test_an_address_is_named_as_one(files: dict[str, bytes]) -> None:
    names = chain_of(files, "192.0.2.7")[0].extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert [str(name) for name in names.value.get_values_for_type(x509.IPAddress)] == ["192.0.2.7"]


def test_the_key_is_the_leafs(files: dict[str, bytes]) -> None:
    key = serialization.load_pem_private_key(files["key.pem"], None)
    assert key.public_key() == chain_of(files, HOST)[0].public_key()


def test_the_hash_is_of_what_is_served(files: dict[str, bytes]) -> None:
    info = chain_of(files, HOST)[1].public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )  # fmt: skip
    assert files["authority.spki"].decode() == base64.b64encode(
        hashlib.sha256(info).digest()
    ).decode()  # fmt: skip


def test_a_chain_weighs_what_a_public_one_does(files: dict[str, bytes]) -> None:
    for host in (HOST, LONG):
        sizes = [len(c.public_bytes(serialization.Encoding.DER)) for c in chain_of(files, host)]
        assert sizes == [CERTIFICATE_BYTES, CERTIFICATE_BYTES]


def test_serial_numbers_differ(files: dict[str, bytes]) -> None:
    certificates = [c for host in (HOST, LONG, "192.0.2.7") for c in chain_of(files, host)]
    assert len({c.serial_number for c in certificates}) == 4


def test_the_same_bytes_in_every_process(files: dict[str, bytes]) -> None:
    program = (
        "import hashlib; from testbed.pages.authority import make_authority\n"
        f"files = make_authority({[HOST, LONG, '192.0.2.7']!r})\n"
        "print(hashlib.sha256(repr(files).encode()).hexdigest())"
    )
    argv = [sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    result = run(argv, cwd=Path(__file__).parents[2], env=environment)
    assert result.stdout.strip() == hashlib.sha256(repr(files).encode()).hexdigest()


def test_these_bytes_on_every_machine(files: dict[str, bytes]) -> None:
    state = hashlib.sha256(b"".join(files[name] for name in sorted(files)))
    assert state.hexdigest() == ("022ce77065e04a98e9237fb5a2c68e2ccab332f62fef3c13ac88815c4a18f895")


def test_primes() -> None:
    for text in ("one", "two"):
        prime = derive_prime(text)
        assert prime.bit_length() == KEY_BITS // 2
        assert pow(3, prime - 1, prime) == 1
    assert derive_prime("one") != derive_prime("two")
    assert derive_key("one").key_size == KEY_BITS


@pytest.mark.parametrize(("number", "prime"), [
    (101, True), (2**127 - 1, True), (561, False), (41041, False), (2**128 + 1, False),
    ((2**61 - 1) * (2**89 - 1), False),
])  # fmt: skip
def test_is_prime(number: int, prime: bool) -> None:
    assert is_prime(number) == prime
