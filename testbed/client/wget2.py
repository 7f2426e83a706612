"""The wget2 client, mget's successor: a list of URLs fetched by six threads.

As in the CS244'15 reproduction of the Fast Open paper, the page's list of resources is fed, root
first; nothing waits for anything.  wget2 opens by Fast Open on its own; the sysctl decides.
PLT is the clock from the moment at which it gets its list to its end: to start a program costs CPU
time, and the link is what is measured.
It sends GET only, and asks for no URL twice.  The times of the single requests come from its log.
"""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from testbed.archive.reading import Archive, Entry
from testbed.base import proc
from testbed.base.har_format import UNKNOWN
from testbed.client.alpn import H1, H2, require_protocols
from testbed.client.har_file import ClientExchange, write_har
from testbed.client.interface import (
    AUTHORITY_NAME,
    LoadError,
    LoadOrder,
    client_environment,
)
from testbed.client.page_coverage import BODILESS, describe_load, list_altered
from testbed.client.process import Feed, logged, read_tail
from testbed.client.program import Program
from testbed.model import HAR_FILE, PageLoad, RequestTiming

THREADS = 6
# wget2(1), exit status: some requests failed.
NETWORK_FAILURE, TLS_FAILURE, SERVER_ERROR = 4, 5, 8
# Of a GnuTLS priority string, behind NORMAL.
ONLY_TLS_1_2, ONLY_X25519 = ":-VERS-TLS1.3", ":-GROUP-ALL:+GROUP-X25519"
PROTOCOLS = {H1: "HTTP/1.1", H2: "h2"}

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


class Wget2:
    """Six connections in all, kept alive for as long as the next URL is on the same host."""

    name = "wget2"
    programs = (Program("wget2", packages="wget2"),)
    honours = frozenset({"tls_resumption", "x25519"})  # GnuTLS has no post-quantum group
    tcp_alone = True  # but for the order of its threads

    def load(self, order: LoadOrder) -> PageLoad:
        """Load the page; see ``Client.load``."""
        urls, stats = order.scratch / "urls", order.scratch / "stats.csv"
        feed = Feed(urls)
        listed = "".join(f"{url}\n" for url in list_urls(order.archive))
        log = order.out / "client.log"
        version = read_version()
        argv = (*order.prefix, *wget2_argv(urls, stats), *tls_arguments(order))
        with logged(argv, log=log, env=client_environment(order), cwd=order.scratch) as running:
            feed.begin(running.child, order.wait_until_ns, listed)
            running.end(order.timeout_s, (0, NETWORK_FAILURE, TLS_FAILURE, SERVER_ERROR))
        ended_ns = time.monotonic_ns()
        if feed.start is None:
            raise LoadError(f"wget2 did not read its list: {read_tail(log)}")
        started, plt_ms = feed.start.realtime_ns, (ended_ns - feed.start.monotonic_ns) / 1e6
        with stats.open(encoding="utf-8", newline="") as file:
            ended = parse_stats(file)
        recorded = [entry.url for entry in order.archive.entries]
        targets = {url.partition("://")[2] for url in (*recorded, *(end.url for end in ended))}
        sent = parse_sent(log.read_text("utf-8", "replace"), started / 1e6, targets)
        exchanges = join(sent, ended, recorded, plt_ms)
        spoken = [(e.timing.url, s.protocol) for e, s in zip(exchanges, sent, strict=True)]
        require_protocols(order, spoken)
        lengths = [(e.timing.url, e.body_bytes) for e in exchanges if e.timing.status]
        altered = list_altered(order.archive, lengths, _length)
        timings = tuple(exchange.timing for exchange in exchanges)
        if not timings:
            raise LoadError("wget2: no request in its log; see client.log")
        load = describe_load(self.name, version, order.archive, timings, plt_ms, altered)
        write_har(order.out / HAR_FILE, load, order.archive.root_url, started / 1e9, exchanges)
        return load


@dataclass(frozen=True, slots=True)
class Ended:
    """A line of wget2's site statistics; ``transfer_ms`` from the request to the body's end."""

    url: str
    status: int
    body_bytes: int
    decoded_bytes: int
    transfer_ms: float
    response_ms: float


def list_urls(page: Archive) -> list[str]:
    """Return the URLs to feed, root first: what GET asks for before the load event, less the rest.

    The rest is what a listed redirect leads to.
    """
    due = [entry for entry in page.entries if entry.method == "GET" and not entry.after_load]
    listed = {entry.url for entry in due}
    rest = [
        entry.url
        for entry in due
        if not (entry.how == "redirect" and entry.parent in listed) and entry.url != page.root_url
    ]
    return [page.root_url, *rest]


def wget2_argv(urls: Path, stats: Path) -> tuple[str, ...]:
    """Return the command that fetches the URLs in ``urls`` once, keeps no body, logs all."""
    return (
        *("wget2", "--no-config", "--no-hsts", "--no-netrc", f"--max-threads={THREADS}"),
        # Version 2.2 has Fast Open only if asked, whatever its help says of the default.
        *("--tries=1", "--progress=none", "--debug", "--tcp-fastopen", f"--stats-site=csv:{stats}"),
        *("--output-document=/dev/null", f"--input-file={urls}"),
    )


def tls_arguments(order: LoadOrder) -> tuple[str, ...]:
    """Return what to trust and to speak over TLS; nothing for an order without an authority.

    Only the lab's authority is trusted, and no server is asked about its certificates.
    """
    if order.tls is None:
        return ()
    words = ONLY_TLS_1_2 if order.tls_version == "1.2" else ""
    words += ONLY_X25519 if order.opening.key_share == "x25519" else ""
    return (
        *("--ca-directory=", f"--ca-certificate={order.tls / AUTHORITY_NAME}"),
        *("--no-ocsp", "--no-hpkp", f"--http2={'off' if order.protocol == 'h1' else 'on'}"),
        *((f"--secure-protocol=NORMAL{words}",) if words else ()),
        *(("--tls-resume",) if order.resumption else ()),
    )


def read_version() -> str:
    """Return what ``wget2 --version`` says of itself.

    Raises:
        LoadError: it does not say.
    """
    version = re.search(r"GNU Wget2 V?(\S+)", proc.run(["wget2", "--version"]).stdout)
    if version is None:
        raise LoadError("wget2: `wget2 --version` names no version")
    return version[1]


def parse_stats(lines: Iterable[str]) -> list[Ended]:
    """Return the lines of ``--stats-site=csv``, in the order in which the requests ended."""
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


def join(
    sent: Sequence[Sent], ended: Sequence[Ended], recorded: Sequence[str], plt_ms: float
) -> list[ClientExchange]:
    """Return each sent request with its end; one without an end has failed, with status 0.

    The log does not distinguish http from https: requests of one host and path are taken to be
    sent in the order in which they ended, and then in the order of ``recorded`` URLs.
    """
    ends: dict[str, list[Ended]] = {}
    for end in ended:
        ends.setdefault(end.url.partition("://")[2], []).append(end)
    left: dict[str, list[str]] = {}
    finished = {end.url for end in ended}
    for url in recorded:
        if url not in finished:
            left.setdefault(url.partition("://")[2], []).append(url)
    exchanges = []
    for request in sent:
        request_ends = ends.get(request.target, [])
        if request_ends:
            exchanges.append(_exchange(request, request_ends.pop(0), plt_ms))
        else:
            urls = left.get(request.target, [])
            url = urls.pop(0) if urls else f"http://{request.target}"
            exchanges.append(_failed_exchange(request, url, plt_ms))
    return exchanges


def _length(resource: Entry) -> int:
    """Return the bytes of the body that a response to GET brings."""
    return 0 if resource.status in BODILESS else resource.body_size


def _exchange(sent: Sent, end: Ended, plt_ms: float) -> ClientExchange:
    finish_ms = min(sent.start_ms + end.transfer_ms, max(plt_ms, sent.start_ms))
    return ClientExchange(
        RequestTiming(end.url, end.status, sent.start_ms, finish_ms),
        protocol=PROTOCOLS[sent.protocol],
        request_header_bytes=sent.header_bytes,
        response_header_bytes=UNKNOWN,
        body_bytes=end.body_bytes,
        decoded_bytes=end.decoded_bytes,
    )


def _failed_exchange(sent: Sent, url: str, plt_ms: float) -> ClientExchange:
    timing = RequestTiming(url, 0, sent.start_ms, max(plt_ms, sent.start_ms))
    protocol = PROTOCOLS[sent.protocol]
    return ClientExchange(timing, protocol=protocol, request_header_bytes=sent.header_bytes)


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
    """Return the requests in the log, in the order in which they were sent.

    Args:
        log: the log, whose times of day are UTC.
        started_ms: start of the load, in ms since 1970.
        known: targets that may have been asked for; they decide which path belongs to which host.
    """
    requests = [
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
            requests.append(Sent(f"{value}{path}", _since(sent_at, started_ms), UNKNOWN, H2))
    return sorted(requests, key=lambda sent: sent.start_ms)


def _since(clock: list[str], started_ms: float) -> float:
    """Return the ms from the start of the load to a time of day."""
    hour, minute, second, ms = map(int, clock)
    of_day_ms = ((hour * 60 + minute) * 60 + second) * 1e3 + ms
    start = datetime.fromtimestamp(started_ms / 1e3, UTC)
    midnight_ms = start.replace(hour=0, minute=0, second=0, microsecond=0).timestamp() * 1e3
    # The log has whole milliseconds, so the first request may seem to precede the start.
    return max(0.0, (midnight_ms + of_day_ms - started_ms + DAY_MS / 2) % DAY_MS - DAY_MS / 2)
