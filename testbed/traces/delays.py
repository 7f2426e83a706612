"""Importer of delays by interval, one-way and of both directions, as LeoReplayer has them.

Line N has the ms that a packet needs which leaves in the interval N; behind the last one the first
comes again (Lai et al., LeoCC, SIGCOMM 2025, traces/README.md).  Here they are ``link.changes``.
"""

from __future__ import annotations

import re
from pathlib import Path

from testbed.base.errors import ConfigurationError
from testbed.traces.reading import name_first

MOST_BYTES = 1_000_000
MOST_MS = 30_000
_DELAY = re.compile(r"[0-9]{1,5}(\.[0-9]{1,6})?")


def read_delays(path: Path) -> list[float]:
    """Return the one-way delays in ``path``, in ms.

    Raises:
        ConfigurationError: with a sentence for each line that is wrong.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ConfigurationError([f"{path}: more than {MOST_BYTES} bytes; cut it"])
        lines = path.read_bytes().decode("ascii", "replace").splitlines()
    except OSError as error:
        raise ConfigurationError([f"{path}: {error.strerror}"]) from None
    allowed = f"a line has one delay in ms, above 0 and up to {MOST_MS}"
    if not lines:
        raise ConfigurationError([f"{path}: empty; {allowed}"])
    wrong = (
        f"{number}: {line[:40]!r}; {allowed}"
        for number, line in enumerate(lines, 1)
        if not _DELAY.fullmatch(line) or not 0 < float(line) <= MOST_MS
    )
    if problems := name_first(path, wrong):
        raise ConfigurationError(problems)
    return [float(line) for line in lines]


def list_steps(delays: list[float], every_ms: int, until_s: float) -> str:
    """Return ``link.changes`` after the first delay: a step wherever the next one is another."""
    steps, before = [], delays[0]
    for number in range(1, int(until_s * 1000 / every_ms)):
        delay_ms = delays[number % len(delays)]
        if delay_ms != before:
            steps.append(f"at {number * every_ms / 1000:g} s: rtt_ms {2 * delay_ms:g}")
        before = delay_ms
    return "; ".join(steps)
