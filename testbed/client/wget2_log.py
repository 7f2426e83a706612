"""The requests in wget2's debug log (GNU Wget2 1.99.1), of HTTP/1.1 and of HTTP/2.

Six threads write the log line by line: an HTTP/2 request is told by its pseudo-headers (RFC 9113
section 8.3.1), between which lines of other requests may stand.  Neither kind tells the scheme
for certain, so a request is named by what follows ``://`` in its URL.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from testbed.client.alpn import H1, H2
from testbed.client.har import UNKNOWN

DAY_MS = 24 * 3600 * 1000.0
# Not at the start of a line: what another thread says of a certificate may end without one.
CLOCK = r"\d\d\.(\d\d)(\d\d)(\d\d)\.(\d{3}) "
# "21.000559.945 # sent 263 bytes:\nGET /0.png HTTP/1.1\nHost: img.page.test\n"
SENT_H1 = re.compile(
    CLOCK + r"# sent (\d+) bytes:\r?\n(?:GET|HEAD) (\S+) HTTP/1\.1\r?\nHost: (\S+)\r?$",
    re.MULTILINE,
)
# "21.111943.680 [FRAME 1] > :path: /a\n21.111943.680 [FRAME 1] > :authority: www.page.test\n"
SENT_H2 = re.compile(CLOCK + r"\[FRAME \d+\] > :(path|authority): (\S+)\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sent:
    """A request in the log.

    ``target`` is host, port if it is not the scheme's, and path with query; ``start_ms`` is since
    the start of the load; ``header_bytes`` is -1 for HTTP/2, whose headers are compressed.
    """

    target: str
    start_ms: float
    header_bytes: int
    protocol: str


def parse_sent(log: str, started_ms: float, known: Collection[str]) -> list[Sent]:
    """The requests in the log, in the order in which they were sent.

    Args:
        log: the log, whose times of day are UTC.
        started_ms: start of the load, in ms since 1970.
        known: targets that may have been asked for; they tell which path belongs to which host.
    """
    found = [
        Sent(f"{host}{path}", _since(clock, started_ms), int(size), H1)
        for *clock, size, path, host in SENT_H1.findall(log)
    ]
    waiting: list[tuple[list[str], str]] = []
    for *clock, kind, value in SENT_H2.findall(log):
        if kind == "path":
            waiting.append((clock, value))
        elif waiting:
            own = (i for i, (_, path) in enumerate(waiting) if f"{value}{path}" in known)
            sent_at, path = waiting.pop(next(own, 0))
            found.append(Sent(f"{value}{path}", _since(sent_at, started_ms), UNKNOWN, H2))
    return sorted(found, key=lambda sent: sent.start_ms)


def _since(clock: list[str], started_ms: float) -> float:
    """Ms from the start of the load to a time of day."""
    hour, minute, second, ms = map(int, clock)
    of_day_ms = ((hour * 60 + minute) * 60 + second) * 1e3 + ms
    start = datetime.fromtimestamp(started_ms / 1e3, UTC)
    midnight_ms = start.replace(hour=0, minute=0, second=0, microsecond=0).timestamp() * 1e3
    # The log has whole milliseconds, so the first request may seem to precede the start.
    return max(0.0, (midnight_ms + of_day_ms - started_ms + DAY_MS / 2) % DAY_MS - DAY_MS / 2)
