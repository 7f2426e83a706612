"""RSA keys that follow from a text: the same key on every machine, and so no secret at all.

The primes are the first at or above numbers that SHAKE-256 makes of the text; FIPS 186-5 section
A.1.3 wants the same sizes, from a secret source.
"""

from __future__ import annotations

import hashlib
from functools import cache

from cryptography.hazmat.primitives.asymmetric import rsa

KEY_BITS = 2048
EXPONENT = 65537
_PRIME_BITS = KEY_BITS // 2
_SIEVE_LIMIT = 30_000
_SPAN = 1 << 14  # odd numbers looked at; a prime is found after 355 on average
# Nobody chose the candidates to pass: FIPS 186-5 table B.1 asks for 5 rounds at this size.
_BASES = (2, 3, 5, 7, 11)


@cache
def derive_key(text: str) -> rsa.RSAPrivateKey:
    """The RSA-2048 key that follows from ``text``."""
    p, q = derive_prime(f"{text}, p"), derive_prime(f"{text}, q")
    d = pow(EXPONENT, -1, (p - 1) * (q - 1))
    public = rsa.RSAPublicNumbers(EXPONENT, p * q)
    numbers = rsa.RSAPrivateNumbers(
        p, q, d, rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q), public
    )
    return numbers.private_key()


def derive_prime(text: str) -> int:
    """The first prime of ``KEY_BITS / 2`` bits, fit for the exponent, from where ``text`` points.

    Raises:
        ArithmeticError: there is none near; take another text.
    """
    stream = hashlib.shake_256(text.encode()).digest(_PRIME_BITS // 8)
    # The two highest bits make the product of two of them exactly KEY_BITS long.
    start = int.from_bytes(stream, "big") | 3 << (_PRIME_BITS - 2) | 1
    for step in _unsieved(start):
        candidate = start + 2 * step
        if candidate % EXPONENT != 1 and is_prime(candidate):
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


def _unsieved(start: int) -> list[int]:
    """The steps of two from ``start``, odd, that no small prime divides."""
    divided = bytearray(_SPAN)
    for prime in _small_primes():
        first = -start * pow(2, -1, prime) % prime
        divided[first::prime] = b"\1" * len(range(first, _SPAN, prime))
    return [step for step in range(_SPAN) if not divided[step]]


@cache
def _small_primes() -> tuple[int, ...]:
    """The odd primes below ``_SIEVE_LIMIT``."""
    marked = bytearray(_SIEVE_LIMIT)
    for number in range(3, int(_SIEVE_LIMIT**0.5) + 1, 2):
        marked[number * number :: 2 * number] = b"\1" * len(
            range(number * number, _SIEVE_LIMIT, 2 * number)
        )
    return tuple(number for number in range(3, _SIEVE_LIMIT, 2) if not marked[number])
