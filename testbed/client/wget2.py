"""The wget2 client, mget's successor: a list of URLs fetched by six threads.

As in the CS244'15 reproduction of the Fast Open paper, the page's list of resources is fed, root
first; nothing waits for anything.  wget2 opens by Fast Open on its own; the sysctl decides.
PLT is the clock from before the process starts to its end, which is what that reproduction timed.
The times of the single requests come from wget2's log, in whole milliseconds.
"""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from testbed import proc
from testbed.client.coverage import compare
from testbed.client.har import UNKNOWN, Exchange, write_har
from testbed.client.process import run_logged
from testbed.client.protocol import LoadError, LoadOrder, Page, client_environment
from testbed.model import HAR_FILE, PageLoad, RequestTiming

THREADS = 6
NETWORK_FAILURE, SERVER_ERROR = 4, 8  # wget2(1), exit status: some requests failed
DAY_MS = 24 * 3600 * 1000.0
# "21.000559.945 # sent 263 bytes:\nGET /0.png HTTP/1.1\nHost: img.page.test\n"
SENT = re.compile(
    r"^\d\d\.(\d\d)(\d\d)(\d\d)\.(\d{3}) # sent (\d+) bytes:\r?\n"
    r"(?:GET|HEAD) (\S+) HTTP/1\.1\r?\nHost: (\S+)\r?$",
    re.MULTILINE,
)


class Wget2:
    """Six connections in all, kept alive for as long as the next URL is on the same host."""

    name = "wget2"

    def load(self, order: LoadOrder) -> PageLoad:
        """Load the page; see ``protocol.Client.load``."""
        urls, stats = order.scratch / "urls", order.scratch / "stats.csv"
        urls.write_text("".join(f"{url}\n" for url in list_urls(order.archive)), "utf-8")
        log = order.out / "client.log"
        version = read_version()
        if order.wait_until_ns is not None:
            time.sleep(max(0.0, (order.wait_until_ns - time.time_ns()) / 1e9))
        started, before = time.time_ns(), time.monotonic_ns()
        run_logged(
            (*order.prefix, *wget2_argv(urls, stats)),
            log=log,
            env=client_environment(order),
            cwd=order.scratch,
            timeout_s=order.timeout_s,
            good=(0, NETWORK_FAILURE, SERVER_ERROR),
        )
        plt_ms = (time.monotonic_ns() - before) / 1e6
        sent = parse_sent(log.read_text("utf-8", "replace"), started / 1e6)
        with stats.open(encoding="utf-8", newline="") as file:
            ended = parse_stats(file)
        exchanges = join(sent, ended, plt_ms)
        load = summarise(order.archive, exchanges, version, plt_ms)
        write_har(order.out / HAR_FILE, load, order.archive.root_url, started / 1e9, exchanges)
        return load


@dataclass(frozen=True, slots=True)
class Sent:
    """A request in wget2's log; ``start_ms`` since the start of the load."""

    url: str
    start_ms: float
    header_bytes: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A line of wget2's site statistics; ``transfer_ms`` from the request to the body's end."""

    url: str
    status: int
    body_bytes: int
    decoded_bytes: int
    transfer_ms: float
    response_ms: float


def list_urls(page: Page) -> list[str]:
    """The page's URLs, root first, without those that a listed redirect leads to."""
    listed = {entry.url for entry in page.entries}
    rest = [
        entry.url
        for entry in page.entries
        if not (entry.how == "redirect" and entry.parent in listed) and entry.url != page.root_url
    ]
    return [page.root_url, *rest]


def wget2_argv(urls: Path, stats: Path) -> tuple[str, ...]:
    """Command that fetches the URLs in the file ``urls`` once, keeps no body, logs all."""
    return (
        *("wget2", "--no-config", "--no-hsts", "--no-netrc", f"--max-threads={THREADS}"),
        *("--tries=1", "--progress=none", "--debug", f"--stats-site=csv:{stats}"),
        *("--output-document=/dev/null", f"--input-file={urls}"),
    )


def read_version() -> str:
    """What ``wget2 --version`` says of itself.

    Raises:
        LoadError: it does not say.
    """
    found = re.search(r"GNU Wget2 V?(\S+)", proc.run(["wget2", "--version"]).stdout)
    if found is None:
        raise LoadError("wget2: `wget2 --version` names no version")
    return found[1]


def parse_sent(log: str, started_ms: float) -> list[Sent]:
    """The requests in wget2's debug log, in the order in which they were sent.

    Args:
        log: the log, whose times of day are UTC.
        started_ms: start of the load, in ms since 1970.
    """
    start = datetime.fromtimestamp(started_ms / 1e3, UTC)
    midnight_ms = start.replace(hour=0, minute=0, second=0, microsecond=0).timestamp() * 1e3
    found = []
    for hour, minute, second, ms, size, target, host in SENT.findall(log):
        of_day_ms = ((int(hour) * 60 + int(minute)) * 60 + int(second)) * 1e3 + int(ms)
        # The log has whole milliseconds, so the first request may seem to precede the start.
        since_ms = max(
            0.0, (midnight_ms + of_day_ms - started_ms + DAY_MS / 2) % DAY_MS - DAY_MS / 2
        )
        found.append(Sent(f"http://{host}{target}", since_ms, int(size)))
    return found


def parse_stats(lines: Iterable[str]) -> list[Ended]:
    """The lines of ``--stats-site=csv``, in the order in which the requests ended."""
    return [
        Ended(
            url=row["URL"],
            status=int(row["Status"]),
            body_bytes=int(row["Size"]),
            decoded_bytes=int(row["SizeDecompressed"]),
            transfer_ms=float(row["TransferTime"]),
            response_ms=float(row["ResponseTime"]),
        )
        for row in csv.DictReader(lines)
    ]


def join(sent: Sequence[Sent], ended: Sequence[Ended], plt_ms: float) -> list[Exchange]:
    """Each sent request with its end; one without an end has failed, with status 0."""
    ends: dict[str, list[Ended]] = {}
    for end in ended:
        ends.setdefault(end.url, []).append(end)
    return [_exchange(s, ends[s.url].pop(0) if ends.get(s.url) else None, plt_ms) for s in sent]


def summarise(page: Page, exchanges: Sequence[Exchange], version: str, plt_ms: float) -> PageLoad:
    """The load as the model has it.

    Raises:
        LoadError: the log holds no request.
    """
    timings = tuple(exchange.timing for exchange in exchanges)
    if not timings:
        raise LoadError("wget2: no request in its log; see client.log")
    coverage = compare(page, timings)
    return PageLoad(
        client=Wget2.name,
        client_version=version,
        plt_ms=plt_ms,
        requests=timings,
        missing=coverage.missing,
        extra=coverage.extra,
        failed=coverage.failed,
    )


def _exchange(sent: Sent, end: Ended | None, plt_ms: float) -> Exchange:
    if end is None:
        timing = RequestTiming(sent.url, 0, sent.start_ms, max(plt_ms, sent.start_ms))
        return Exchange(timing, request_header_bytes=sent.header_bytes)
    finish_ms = min(sent.start_ms + end.transfer_ms, max(plt_ms, sent.start_ms))
    return Exchange(
        RequestTiming(sent.url, end.status, sent.start_ms, finish_ms),
        request_header_bytes=sent.header_bytes,
        response_header_bytes=UNKNOWN,
        body_bytes=end.body_bytes,
        decoded_bytes=end.decoded_bytes,
    )
