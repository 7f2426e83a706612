"""Seeded variation of a trial: start of load and trace, price of computing, think times.

Drawn from SHA-256 and not from ``random``, so that a seed means the same in every Python.
"""

from __future__ import annotations

import hashlib

MOST_SYSTEM_CALL_NS = 200
"""As long as a short system call takes on processors of today; docs/accuracy.md has what it moves.
"""
_BITS = 53  # of a float's precision


def start_offset_ns(seed: int, start_spread_ms: float) -> int:
    """Return how long after the round instant a load starts: 0 to below ``start_spread_ms``."""
    return int(uniform(seed, "start") * start_spread_ms * 1e6)


def trace_phase_ms(seed: int, end_ms: int) -> int:
    """Return how much of a trace of ``end_ms`` is over when a load starts: 0 to below its end."""
    return int(uniform(seed, "trace") * end_ms)


def system_call_ns(seed: int) -> int:
    """Return what a system call costs in the loads of ``seed``, in whole ns from 0."""
    return int(uniform(seed, "computing") * (MOST_SYSTEM_CALL_NS + 1))


def think_factor(seed: int, request: str, think_spread_pct: float) -> float:
    """Return the factor of one think time, uniform in 1 - spread to 1 + spread.

    ``request`` names the think time, such as ``server GET http://www.page.test/``: another name or
    another seed gives another factor.
    """
    return 1.0 + (2.0 * uniform(seed, request) - 1.0) * think_spread_pct / 100.0


def guesses_right(seed: int, host: str, hit_pct: float) -> bool:
    """Return whether PRECONNECT knows ``host`` as one that the page names, if it hits so often."""
    return uniform(seed, f"preconnect {host}") * 100.0 < hit_pct


def seed_of(seed: int, name: str) -> int:
    """Return 64 random bits by ``seed`` and ``name`` alone: the seed of another generator."""
    digest = hashlib.sha256(f"{seed} {name}".encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "big")


def uniform(seed: int, name: str) -> float:
    """Return from 0 to below 1, by ``seed`` and ``name`` alone."""
    return (seed_of(seed, name) >> (64 - _BITS)) / (1 << _BITS)
