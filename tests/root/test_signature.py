"""Only what one of the keys has signed is read, and nothing that is not signed by it."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest

from testbed.root.release import KEYS
from testbed.root.signature import RsaKey, read_keys, read_signed

SIGNED = Path(__file__).with_name("signed")
MESSAGE = (SIGNED / "message.asc").read_bytes()
OURS = read_keys((SIGNED / "key.asc").read_text())
TEXT = "Origin: Debian\n- a line\nSuite: stable\n\nEnd\n"


def test_what_a_key_has_signed_is_read() -> None:
    assert read_signed(MESSAGE, OURS) == TEXT
    assert read_signed(MESSAGE.replace(b"\n", b"\r\n"), OURS) == TEXT
    assert read_signed(MESSAGE.replace(b"a line", b"a line \t"), OURS) == TEXT  # not signed


def test_its_subkey_alone_has_signed_it() -> None:
    primary, subkey = OURS
    assert read_signed(MESSAGE, (primary,)) is None
    assert read_signed(MESSAGE, (subkey,)) == TEXT


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"stable", b"stablf"), (b"End\n", b"End\n\nmore\n"), (b"Suite: stable\n", b""),
     (b"PGP SIGNED MESSAGE", b"PGP MESSAGE"),
     (b"-----BEGIN PGP SIGNED", b"more\n-----BEGIN PGP SIGNED"),
     (b"Hash: SHA512\n\n", b"Hash: SHA512\nmore\n\n"), (b"\n-----BEGIN PGP SIGNATURE-----", b"\n")],
)  # fmt: skip
def test_what_was_changed_is_not(old: bytes, new: bytes) -> None:
    assert old in MESSAGE
    assert read_signed(MESSAGE.replace(old, new, 1), OURS) is None


def test_no_byte_of_a_signature_may_differ() -> None:
    found = re.search(rb"SIGNATURE-----\n\n(.*)\n=", MESSAGE, re.DOTALL)
    assert found is not None
    plain = base64.b64decode(found[1])
    # Not what is beside the hashed part: who is said to have signed, and how the digest begins.
    counts = [*range(8), *range(9, 0x20), *range(len(plain) - 256, len(plain))]
    for place in counts:
        other = bytearray(plain)
        other[place] ^= 1
        armored = base64.b64encode(bytes(other))
        assert read_signed(MESSAGE.replace(found[1], armored), OURS) is None, place


def test_what_is_cut_off_or_noise_is_not_read() -> None:
    assert [cut for cut in range(len(MESSAGE) - 40) if read_signed(MESSAGE[:cut], OURS)] == []
    assert read_signed(b"\xff\xfe" * 100, OURS) is None
    assert read_signed(b"", OURS) is None


def test_another_key_has_not_signed_it() -> None:
    assert read_signed(MESSAGE, read_keys(KEYS.read_text())) is None
    assert read_signed(MESSAGE, (RsaKey(OURS[1].modulus + 2, OURS[1].exponent),)) is None
    assert read_signed(MESSAGE, ()) is None


def test_the_keys_are_those_of_two_releases_and_their_subkeys() -> None:
    keys = read_keys(KEYS.read_text("ascii"))
    assert [key.modulus.bit_length() for key in keys] == [4096] * 8
    assert {key.exponent for key in keys} == {65537}
    assert len(set(keys)) == 8
