"""Certificate authority of the lab: for every host of a page a chain of the same bytes everywhere.

Keys follow from fixed texts, serial numbers from hashes, and the signatures are
RSASSA-PKCS1-v1_5 (RFC 8017 section 8.2), which has no randomness; the profile is RFC 5280.  So
anybody can derive this authority's keys: it protects nothing, and must be trusted by nothing but
the lab's own browser, which is given the hash of one public key for the time of a load.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from math import gcd, isqrt, prod

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

ROOT_NAME = "authority.pem"
SPKI_NAME = "authority.spki"
KEY_NAME = "key.pem"
VALID_FROM = datetime(2020, 1, 1, tzinfo=UTC)
VALID_TO = datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC)
# A chain of the public web: a leaf of 1.3 KB (two signed timestamps of 119 bytes, policies,
# addresses), and an intermediate of as much.  A comment makes ours as heavy.
CERTIFICATE_BYTES = 1280
_COMMENT_OID = x509.ObjectIdentifier("2.16.840.1.113730.1.13")  # Netscape's, ignored by everybody
_COMMENT = "firstflight: a page-load lab's certificate. Its key is public: never trust it. "
_LEAST_COMMENT = 128  # below, DER wants another form of length
_LONGEST_COMMON_NAME = 64  # RFC 5280, ub-common-name
KEY_BITS = 2048
EXPONENT = 65537
_PRIME_BITS = KEY_BITS // 2
_SMALL = 4_000
_SPAN = 1 << 14  # odd numbers looked at; a prime is found after 355 on average
# The candidates were not chosen to pass: FIPS 186-5 table B.1 asks for 5 rounds at this size.
_BASES = (2, 3, 5, 7, 11)


@dataclass(frozen=True, slots=True)
class _Signer:
    """Who signs: a key, and the name that goes with it."""

    name: x509.Name
    key: rsa.RSAPrivateKey


def make_authority(hosts: Iterable[str]) -> dict[str, bytes]:
    """Return ``authority.pem``, ``authority.spki``, ``key.pem`` and ``<host>.pem`` for each host.

    ``authority.spki`` is that of the intermediate, because Chromium compares the certificates
    that a server sends, and the root is not among them.

    Raises:
        ValueError: a host is no ASCII name.
    """
    root = _Signer(_name("firstflight lab root"), derive_key("firstflight lab: root"))
    middle = _Signer(_name("firstflight lab"), derive_key("firstflight lab: intermediate"))
    key = derive_key("firstflight lab: hosts")
    intermediate = _authority_certificate(middle, root, depth=0)
    form, secret = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    files = {
        ROOT_NAME: _pem(_authority_certificate(root, root, depth=1)),
        SPKI_NAME: key_hash(intermediate).encode(),
        KEY_NAME: key.private_bytes(serialization.Encoding.PEM, form, secret),
    }
    chains = {f"{host}.pem": _pem(_leaf(host, key, middle)) for host in hosts}
    return files | {name: leaf + _pem(intermediate) for name, leaf in chains.items()}


def key_hash(certificate: x509.Certificate) -> str:
    """Return the Base64 SHA-256 of a certificate's SubjectPublicKeyInfo, as Chromium takes it."""
    info = certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return base64.b64encode(hashlib.sha256(info).digest()).decode()


def _subject_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _authority_certificate(subject: _Signer, issuer: _Signer, depth: int) -> x509.Certificate:
    builder = (
        _builder(subject.name, subject.key.public_key(), issuer)
        .add_extension(x509.BasicConstraints(ca=True, path_length=depth), critical=True)
        .add_extension(_usage(authority=True), critical=True)
    )
    return _sign(builder, issuer)


def _leaf(host: str, key: rsa.RSAPrivateKey, issuer: _Signer) -> x509.Certificate:
    name = _name(host) if len(host) <= _LONGEST_COMMON_NAME else x509.Name([])
    nameless = len(host) > _LONGEST_COMMON_NAME  # then RFC 5280 wants the other name critical
    builder = (
        _builder(name, key.public_key(), issuer)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_subject_name(host)]), critical=nameless)
    )
    return _sign(builder, issuer)


def _builder(subject: x509.Name, key: rsa.RSAPublicKey, issuer: _Signer) -> x509.CertificateBuilder:
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key())
    issued = f"{issuer.name.rfc4514_string()}/{subject.rfc4514_string()}".encode()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.name)
        .public_key(key)
        .serial_number(int.from_bytes(hashlib.sha256(issued).digest()[:16], "big") >> 1 | 1)
        .not_valid_before(VALID_FROM)
        .not_valid_after(VALID_TO)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(signer, critical=False)
    )


def _sign(builder: x509.CertificateBuilder, issuer: _Signer) -> x509.Certificate:
    """Sign, with a comment that brings the certificate to ``CERTIFICATE_BYTES``."""
    length = CERTIFICATE_BYTES
    while True:
        commented = builder.add_extension(_comment(length), critical=False)
        signed = commented.sign(issuer.key, hashes.SHA256())
        excess = len(signed.public_bytes(serialization.Encoding.DER)) - CERTIFICATE_BYTES
        if excess <= 0 or length == _LEAST_COMMENT:
            return signed
        length = max(length - excess, _LEAST_COMMENT)


def _comment(length: int) -> x509.UnrecognizedExtension:
    """Return an IA5String (X.690 section 8.23) of ``length`` characters, 128 to 65535."""
    text = (_COMMENT * (length // len(_COMMENT) + 1))[:length]
    return x509.UnrecognizedExtension(
        _COMMENT_OID, b"\x16\x82" + length.to_bytes(2, "big") + text.encode("ascii")
    )


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=not authority,
        data_encipherment=False, key_agreement=False, key_cert_sign=authority, crl_sign=authority,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


@cache
def derive_key(text: str) -> rsa.RSAPrivateKey:
    """Return the RSA-2048 key that follows from ``text``."""
    p, q = derive_prime(f"{text}, p"), derive_prime(f"{text}, q")
    d = pow(EXPONENT, -1, (p - 1) * (q - 1))
    public = rsa.RSAPublicNumbers(EXPONENT, p * q)
    numbers = rsa.RSAPrivateNumbers(
        p, q, d, rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q), public
    )
    return numbers.private_key()


def derive_prime(text: str) -> int:
    """Return the first prime of ``KEY_BITS / 2`` bits, fit for the exponent, from ``text`` on.

    Raises:
        ArithmeticError: there is none near; take another text.
    """
    stream = hashlib.shake_256(text.encode()).digest(_PRIME_BITS // 8)
    # The two highest bits make the product of two of them exactly KEY_BITS long.
    start = int.from_bytes(stream, "big") | 3 << (_PRIME_BITS - 2) | 1
    small = _small_product()
    for candidate in range(start, start + 2 * _SPAN, 2):
        if gcd(candidate, small) == 1 and candidate % EXPONENT != 1 and is_prime(candidate):
            return candidate
    raise ArithmeticError(f"no prime of {_PRIME_BITS} bits follows soon on {text!r}")


def is_prime(number: int) -> bool:
    """Miller-Rabin for an odd number above 11."""
    twos = ((number - 1) & (1 - number)).bit_length() - 1
    odd = (number - 1) >> twos
    return all(_passes(number, base, odd, twos) for base in _BASES)


def _passes(number: int, base: int, odd: int, twos: int) -> bool:
    power = pow(base, odd, number)
    if power in (1, number - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return True
    return False


@cache
def _small_product() -> int:
    """Return the product of the odd primes below ``_SMALL``, which sorts most numbers out."""
    return prod(n for n in range(3, _SMALL, 2) if all(n % d for d in range(3, isqrt(n) + 1, 2)))
