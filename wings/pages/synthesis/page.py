"""Synthesised pages as exchanges: URLs, headers and how each is found, for their HAR."""

from __future__ import annotations

from collections.abc import Iterator

from wings.pages.exchange import How, PageExchange
from wings.pages.har_export import PlacedExchange
from wings.pages.synthesis.bodies import Synthesis, SynthesisedResponse
from wings.pages.synthesis.discovery import Role
from wings.pages.table import ResourceRow

_HOW: dict[Role, How] = {"document": "parser", "style": "css", "script": "script"}


def place_exchanges(page: Synthesis) -> Iterator[PlacedExchange]:
    """Yield the exchange of each row, with its place in the page."""
    discovery = page.discovery
    for response in page.responses:
        row = response.row
        yield PlacedExchange(
            exchange=_exchange(page, response),
            id=row.id,
            parent=None if row.parent is None else discovery.url(discovery.by_id[row.parent]),
            carrier=discovery.carrier_url(row),
            gap_ms=row.gap_ms,
            depth=discovery.depth(row),
            transfer_bytes=row.transfer_bytes,
            more={"_recorded_how": row.how, "_recorded_host": row.host},
        )


def _exchange(page: Synthesis, response: SynthesisedResponse) -> PageExchange:
    row, body, discovery = response.row, response.body, page.discovery
    target = discovery.redirect_target(row)
    headers = (
        ("Content-Type", row.mime),
        ("Content-Encoding", "gzip" if body.gzipped else ""),
        ("Location", "" if target is None else discovery.url(target)),
        # JSON is fetched in CORS mode, which needs leave.
        ("Access-Control-Allow-Origin", "*" if discovery.role(row) == "data" else ""),
    )
    return PageExchange(
        url=discovery.url(row),
        status=row.status,
        protocol="h2" if row.protocol == "h2" else "http/1.1",
        headers=tuple((name, value) for name, value in headers if value),
        headers_size=response.headers_size,
        body=body.data,
        body_size=len(body.data),
        decoded_size=body.decoded_size,
        mime=row.mime,
        how=_how(page, row),
        start_ms=row.start_ms,
        dur_ms=row.dur_ms,
    )


def _how(page: Synthesis, row: ResourceRow) -> How:
    discovery = page.discovery
    if row.how == "root":
        return "root"
    if row.how == "redirect":
        return "redirect"
    reference = discovery.find(row)
    carrier = discovery.role(discovery.by_id[reference.carrier])
    if reference.after is not None:
        return "script"
    if discovery.role(row) == "document" == carrier:
        return "frame"
    return _HOW[carrier]
