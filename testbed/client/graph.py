"""The graph client: walks the recorded dependency graph with Chrome's rules, without a browser.

This half runs in the trial's process; ``testbed/client/graph_process`` is the other, which loads
the page from inside the client's network namespace.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.archive.posted import RECORDED_BODY
from testbed.archive.reading import Entry
from testbed.base.errors import MissingError
from testbed.base.har_format import UNKNOWN
from testbed.base.seeding import guesses_right, think_factor
from testbed.client.alpn import H1, wanted_protocols
from testbed.client.har_file import ClientExchange, write_har
from testbed.client.interface import (
    AUTHORITY_NAME,
    ClientPlace,
    LoadError,
    LoadOrder,
    LoadTimeoutError,
    client_environment,
)
from testbed.client.page_coverage import BODILESS, NOT_MODIFIED, describe_load, list_altered
from testbed.client.process import Feed, Logged, logged
from testbed.model import HAR_FILE, PageLoad, RequestTiming

PROCESS = Path(__file__).parent / "graph_process" / "main.py"
NOTHING = hashlib.sha256(b"").hexdigest()
ORDER, RESULT = "order", "load.json"
START_GRACE_S = 30.0  # for starting and writing, beyond the load itself


class Graph:
    """PLT is the end of the last response; there is no parsing, layout or script in it."""

    name = "graph"
    programs = ()
    tcp_alone = True
    honours = frozenset({"preconnect_pct", "tls_resumption", "x25519", "x25519mlkem768"})
    version = "1"

    def load(self, order: LoadOrder) -> PageLoad:
        """Load the page; see ``Client.load``.

        Raises:
            MissingError: an origin is to speak HTTP/2, which this client does not, or the hello to
                have what its OpenSSL lacks.
        """
        _require_able(order)
        with self.started(order.seat) as walk:
            return walk.load(order)

    @contextmanager
    def started(self, seat: ClientPlace) -> Iterator[StartedGraph]:
        """Start the process that loads the page; see ``EarlyClient.started``."""
        feed, result = Feed(seat.scratch / ORDER), seat.scratch / RESULT
        # -I: no user's settings; -S: no installed packages. Both make it start faster, too.
        words = (sys.executable, "-I", "-S", str(PROCESS), str(seat.scratch / ORDER), str(result))
        with logged(
            (*seat.prefix, *words),
            log=seat.out / "client.log",
            env=client_environment(seat),
            cwd=seat.scratch,
        ) as process:
            yield StartedGraph(process, feed, result)


@dataclass(frozen=True, slots=True)
class StartedGraph:
    """A process that waits for its order on a named pipe, and leaves a file."""

    process: Logged
    feed: Feed
    result: Path

    def load(self, order: LoadOrder) -> PageLoad:
        """Let the process load the page; see ``PageLoader.load``.

        Raises:
            MissingError: an origin is to speak HTTP/2, which this client does not, or the hello to
                have what its OpenSSL lacks.
        """
        _require_able(order)
        order_line = json.dumps(describe_order(order)) + "\n"
        self.feed.begin(
            self.process.child, order.wait_until_ns, "", ahead=order_line, restart=order.restart
        )
        self.process.end(order.timeout_s + START_GRACE_S)
        result = json.loads(self.result.read_text("utf-8"))
        if result["timed_out"]:
            raise LoadTimeoutError(
                f"graph: {_unfinished(result)} requests were not complete in {order.timeout_s:g} s"
            )
        exchanges = [read_exchange(item) for item in result["requests"]]
        digests = [
            (request["url"], request["body_sha256"])
            for request in result["requests"]
            if request["status"]
        ]
        altered = list_altered(order.archive, digests, _digest)
        timings = tuple(exchange.timing for exchange in exchanges)
        page = order.archive
        if not timings:
            raise LoadError(f"{page.name}: no entry of the page has how = root: nothing to load")
        plt_ms = max(timing.end_ms for timing in timings)
        load = describe_load(Graph.name, Graph.version, page, timings, plt_ms, altered)
        write_har(order.out / HAR_FILE, load, page.root_url, result["started"], exchanges)
        return load


def describe_order(order: LoadOrder) -> dict[str, Any]:
    """Return the order of the process that loads the page."""
    return {
        "entries": [
            {
                "url": entry.url,
                "method": entry.method,
                "tls": entry.scheme == "https",
                "host": entry.host,
                "port": entry.port,
                "target": entry.path.partition("#")[0],  # a fragment stays with the client
                "mime": entry.mime,
                "body_size": entry.body_size,
                "request_body_size": entry.request_body_size,
                "revalidates": entry.status == NOT_MODIFIED,
                "marks": list(_marks(entry)),
                "parent": entry.parent,
                "how": entry.how,
                "gap_ms": entry.gap_ms,
                "dur_ms": entry.dur_ms,
                "think_factor": think_factor(
                    order.seed, f"recorded {entry.method} {entry.url}", order.think_spread_pct
                ),
            }
            for entry in order.archive.entries
            if not entry.after_load
        ],
        "preconnect": list(list_guesses(order)),
        # Its text: a process that was started early does not see the page's folder.
        "authority": None if order.tls is None else (order.tls / AUTHORITY_NAME).read_text("ascii"),
        "tls_version": order.tls_version,
        "key_share": order.opening.key_share,
        "resumption": order.resumption,
        "think_time": order.think_time,
        "fast_open": order.tfo,
        "timeout_s": order.timeout_s,
    }


def _marks(entry: Entry) -> Iterator[str]:
    """Yield the lines that tell a request from others for its URL; of a body there are digests."""
    if entry.range:
        yield f"Range: {entry.range}"
    if entry.posted is not None:
        yield f"{RECORDED_BODY}: {entry.posted.whole}"


def list_guesses(order: LoadOrder) -> Iterator[dict[str, Any]]:
    """Yield the connections of PRECONNECT: one for each host that the page names.

    A wrong guess is with the page's own host.
    """
    if order.preconnect_pct is None:
        return
    entries = [entry for entry in order.archive.entries if not entry.after_load]
    own, *others = {(entry.host, entry.port): entry for entry in entries}.values()
    for entry in others:
        right = guesses_right(order.seed, entry.host, order.preconnect_pct)
        met = entry if right else own
        yield {"host": met.host, "port": met.port, "tls": met.scheme == "https", "right": right}


def read_exchange(item: dict[str, Any]) -> ClientExchange:
    """Return one request of the result file."""
    headers = tuple((name, value) for name, value in item["headers"])
    head, body = item["header_bytes"], item["body_bytes"]
    encoded = any(name.lower() == "content-encoding" for name, _ in headers)
    types = [value for name, value in headers if name.lower() == "content-type"]
    return ClientExchange(
        timing=RequestTiming(
            url=item["url"],
            status=item["status"],
            start_ms=item["known_ms"],
            end_ms=item["end_ms"],
            transfer_bytes=None if head is None else head + body,
            connection=None if item["connection"] is None else str(item["connection"]),
            initiator=item["initiator"],
        ),
        method=item["method"],
        request_headers=_read_headers(item["request"]),
        request_header_bytes=len(item["request"]),
        reason=item["reason"],
        response_headers=headers,
        response_header_bytes=UNKNOWN if head is None else head,
        body_bytes=UNKNOWN if body is None else body,
        decoded_bytes=UNKNOWN if body is None or encoded else body,
        mime=types[0] if types else "",
        server=item["server"] or "",
        phases=_phases(item),
    )


def _digest(resource: Entry) -> str:
    """Return the SHA-256 of the body that a response brings, of no bytes where it brings none.

    A resource's file has it for its name.
    """
    if resource.body is None or resource.status in BODILESS or resource.method == "HEAD":
        return NOTHING
    return resource.body.name


def _require_able(order: LoadOrder) -> None:
    by_origin = wanted_protocols(order.archive, order.protocol)
    other = [
        f"{origin} is to speak {spoken}" for origin, spoken in by_origin.items() if spoken != H1
    ]
    if other:
        raise MissingError(
            f"graph speaks HTTP/1.1 only, and {other[0]}: "
            "set protocol = h1, or choose another client"
        )
    if by_origin and order.tls is None:
        raise LoadError("graph: the page has https origins, but the order has no authority")
    if by_origin and order.opening.key_share == "x25519mlkem768":
        import ssl  # as graph_process/tls.py has it, for it is the same Python's

        from testbed.client.graph_process.tls import POST_QUANTUM

        if ssl.OPENSSL_VERSION_INFO < POST_QUANTUM:
            raise MissingError(
                f"graph: {ssl.OPENSSL_VERSION} has no X25519MLKEM768, which key_share asks for; "
                'take root = "debian-13"'
            )


def _phases(item: dict[str, Any]) -> dict[str, float]:
    """Return HAR's phases; name lookup and connection set-up are in the time blocked."""
    known_ms, sent_ms, first_byte_ms, end_ms = (
        item[name] for name in ("known_ms", "sent_ms", "first_byte_ms", "end_ms")
    )
    if sent_ms is None:
        return {"blocked": end_ms - known_ms}
    if first_byte_ms is None:
        return {"blocked": sent_ms - known_ms, "wait": end_ms - sent_ms}
    return {
        "blocked": sent_ms - known_ms,
        "wait": first_byte_ms - sent_ms,
        "receive": end_ms - first_byte_ms,
    }


def _read_headers(request: str) -> tuple[tuple[str, str], ...]:
    lines = request.split("\r\n")[1:-2]
    return tuple((name, value) for name, _, value in (line.partition(": ") for line in lines))


def _unfinished(result: dict[str, Any]) -> int:
    return sum(1 for item in result["requests"] if item["error"] == "not complete in time")
