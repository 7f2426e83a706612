"""Tables from which netem draws how late a packet is, as tc-netem(8) takes them."""

from __future__ import annotations

import struct

from testbed.lab.link.discipline import DISTRIBUTION_SCALE
from testbed.model import Distribution
from testbed.model.impairments import deviation_at

_TABLE = 4096
_SHARES = 10_000
"""A table's sizes: of a distribution, and of one that tells hundredths of a percent apart."""
_TALLEST = 32767


def make_delay_table(distribution: Distribution) -> bytes:
    """The draws of ``distribution`` as netem takes them; the uniform one is its own."""
    if distribution == "uniform":
        return b""
    deviations = (deviation_at(distribution, (n + 0.5) / _TABLE) for n in range(_TABLE))
    draws = (min(_TALLEST, round(each * DISTRIBUTION_SCALE)) for each in deviations)
    return struct.pack(f"={_TABLE}h", *draws)


def make_late_table(share_pct: float) -> bytes:
    """Draws of which ``share_pct`` are the whole jitter, the others nothing."""
    late = round(share_pct * _SHARES / 100)
    draws = [DISTRIBUTION_SCALE] * late + [0] * (_SHARES - late)
    return struct.pack(f"={_SHARES}h", *draws)
