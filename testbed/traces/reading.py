"""Importer of traces in mahimahi's format: a file is untrusted, and all its problems are named.

One whole number a line: the ms, from the trace's start, of one opportunity for a packet.  Lines of
the same ms are as many opportunities.  Lines may end in CRLF (mm-link(1)).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from pathlib import Path

from testbed.base.errors import ConfigurationError
from testbed.model.trace import Trace

MOST_LINES = 5_000_000
MOST_MS = 24 * 3600 * 1000
MOST_BYTES = MOST_LINES * 10
_MOST_NAMED = 20


def read_text(path: Path) -> Trace:
    """Read the trace in ``path``.

    Raises:
        ConfigurationError: with a sentence for each line that is wrong.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ConfigurationError([_too_long(path)])
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError([f"{path}: {error.strerror}"]) from None
    return parse_text(data, path)


def parse_text(data: bytes, path: Path) -> Trace:
    """Return the trace that ``data``, of the file ``path``, holds.

    Raises:
        ConfigurationError: as ``read_text``.
    """
    lines = data.replace(b"\r\n", b"\n").removesuffix(b"\n").split(b"\n")
    if lines == [b""]:
        raise ConfigurationError([f"{path}: empty; a trace has a line for each opportunity"])
    if len(lines) > MOST_LINES:
        raise ConfigurationError([_too_long(path)])
    # One look at all of it: a file of a million lines is right in most cases.
    if not data.translate(None, b"0123456789\r\n") and all(map(_is_short, lines)):
        times = array("I", map(int, lines))
        if 0 < times[-1] <= MOST_MS and all(a <= b for a, b in pairwise(times)):
            return Trace(times)
    raise ConfigurationError(name_first(path, _find_problems(lines)))


def name_first(path: Path, problems: Iterable[str]) -> list[str]:
    """Return the first of ``problems`` of lines, each with its place in ``path``."""
    found = list(islice(problems, _MOST_NAMED + 1))
    if len(found) > _MOST_NAMED:
        found[_MOST_NAMED:] = ["and more like these"]
    return [f"{path}:{problem}" for problem in found]


def _is_short(line: bytes) -> bool:
    return 0 < len(line) < 9 and b"\r" not in line


def _find_problems(lines: list[bytes]) -> Iterator[str]:
    before, wrong = 0, False
    for number, line in enumerate(lines, 1):
        if not line.isdigit() or len(line) >= 9:
            wrong = True
            said = "an empty line" if not line else repr(line[:40].decode("ascii", "replace"))
            yield (
                f"{number}: {said} where a whole number of ms is due, from 0 to {MOST_MS} (24 h); "
                "a trace has nothing else in it"
            )
            continue
        if int(line) > MOST_MS:
            yield f"{number}: {int(line)} ms is beyond 24 h ({MOST_MS} ms)"
        elif int(line) < before:
            yield f"{number}: {int(line)} ms after {before} ms; times never fall"
        before = max(before, int(line))
    if not before and not wrong:
        yield f"{len(lines)}: the last time is 0 ms: a trace lasts until its last opportunity"


def _too_long(path: Path) -> str:
    return f"{path}: more than {MOST_LINES} opportunities; cut it to the part that loads see"
