"""HAR 1.2 of a load, for the clients that do not write one themselves.

-1 and empty lists mean what the client did not observe.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from testbed.base import har_format as har
from testbed.base.har_format import UNKNOWN, Part
from testbed.model import PageLoad, RequestTiming

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ClientExchange:
    """One request and its response, as far as the client saw them (times in ms, sizes in bytes)."""

    timing: RequestTiming
    method: str = "GET"
    request_headers: Headers = ()
    request_header_bytes: int = UNKNOWN
    protocol: str = "HTTP/1.1"
    reason: str = ""
    response_headers: Headers = ()
    response_header_bytes: int = UNKNOWN
    body_bytes: int = UNKNOWN
    decoded_bytes: int = UNKNOWN
    mime: str = ""
    server: str = ""
    phases: dict[str, float] = field(default_factory=dict)


def write_har(
    path: Path, load: PageLoad, page_url: str, started: float, exchanges: Sequence[ClientExchange]
) -> None:
    """Write the load as HAR 1.2; ``started`` is its start in seconds since 1970 (UTC)."""
    timings = {"onContentLoad": UNKNOWN, "onLoad": load.plt_ms}
    document = har.log(
        har.CREATOR,
        har.page(har.PAGE_ID, page_url, _timestamp(started, 0.0), timings),
        [_entry(exchange, started) for exchange in exchanges],
        (load.client, load.client_version),
    )
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _entry(exchange: ClientExchange, started: float) -> Part:
    timing = exchange.timing
    phases = exchange.phases or {"wait": timing.end_ms - timing.start_ms}
    # The total is the sum of what is known: the specification asks for this.
    timings = {name: phases.get(name, UNKNOWN) for name in ("blocked", "dns", "connect")}
    timings |= {name: phases.get(name, 0.0) for name in ("send", "wait", "receive")}
    lengths = [int(value) for name, value in exchange.request_headers
               if name.lower() == "content-length"]  # fmt: skip
    entry = har.entry(
        har.PAGE_ID,
        _timestamp(started, timing.start_ms),
        sum(value for value in timings.values() if value != UNKNOWN),
        har.request(
            exchange.method,
            timing.url,
            exchange.protocol,
            exchange.request_headers,
            (exchange.request_header_bytes, sum(lengths)),
        ),
        _response(exchange),
        timings,
    )
    if exchange.server:
        entry["serverIPAddress"] = exchange.server
    if timing.connection:
        entry["connection"] = timing.connection
    if timing.initiator:
        entry["_initiator"] = timing.initiator
    return entry


def _response(exchange: ClientExchange) -> Part:
    location = [value for name, value in exchange.response_headers if name.lower() == "location"]
    return har.response(
        exchange.timing.status,
        exchange.reason,
        exchange.protocol,
        exchange.response_headers,
        {"size": exchange.decoded_bytes, "mimeType": exchange.mime},
        location[0] if location else "",
        (exchange.response_header_bytes, exchange.body_bytes, exchange.timing.transfer_bytes),
    )


def _timestamp(started: float, offset_ms: float) -> str:
    moment = datetime.fromtimestamp(started, UTC) + timedelta(milliseconds=offset_ms)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
