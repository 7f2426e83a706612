"""Assembly of a recording from two accounts of a load: DevTools and the network log."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from email.message import Message

from testbed.archive.head import NOT_MODIFIED
from testbed.archive.reading import split_url
from testbed.client.chromium.flags import WINDOW
from wings.pages.coding import CodingError, decode
from wings.pages.exchange import How, PageExchange, Recording, find_header, without
from wings.pages.fidelity import make_seen
from wings.pages.importing.bodies import make_body
from wings.pages.importing.importer import media_type
from wings.pages.importing.notes import Notes
from wings.pages.importing.references import open_circles
from wings.pages.importing.sanitiser import clean_headers
from wings.pages.limits import CONTENT_BYTES
from wings.pages.recorder.channels import pieces_of, socket_exchanges
from wings.pages.recorder.devtools import (
    BrowserReport,
    PageRequest,
    RequestPairing,
    ScriptBody,
    pair,
)
from wings.pages.recorder.netlog import NetLog
from wings.pages.recorder.order import RecordError, RecordOrder
from wings.pages.recorder.shortfall import (
    Shortfalls,
    find_failure,
    is_unread,
    note_answer,
    note_body,
    note_load,
    note_missing,
)
from wings.pages.recorder.sockets import NetTransfer

REFUSED = (
    "kept from an address of this machine or its network, which --allow-private HOST lets it reach"
)
# What browsers take a text for that does not say (WHATWG Encoding).
_FALLBACKS = ("utf-8", "windows-1252")
_Answered = tuple[NetTransfer, PageRequest | None]
_Cause = tuple[How, str | None]
"""How a request came about, and the URL of the recorded exchange that led to it, if known."""


def assemble(
    order: RecordOrder, report: BrowserReport, log: NetLog, refused: Sequence[str], today: date
) -> Recording:
    """Return the recording; notes say what it lacks, and which ends were ``refused``.

    Raises:
        RecordError: no request got a response.
    """
    notes, changes = Shortfalls(), Notes()
    pairing = pair(log.transfers, report.requests)
    answered = list(_answered(pairing))
    if not answered:
        raise RecordError(f"{order.url}: no request got a response")
    note_load(notes, report, log)
    notes.add_all(REFUSED, refused)
    note_answer(notes, [transfer for transfer, _ in answered])
    note_missing(notes, pairing, {id(transfer) for transfer, _ in answered})
    exchanges = tuple(
        replace(exchange, headers=clean_headers(exchange.headers, exchange.url, changes))
        for exchange in (*_exchanges(answered, pairing, report, notes), *socket_exchanges(report))
    )
    exchanges = tuple(open_circles(exchanges, changes))
    window = order.viewport or WINDOW
    return Recording(
        title=report.title or order.url, url=exchanges[0].url, recorded=today,
        source=_source(order, report), exchanges=exchanges, pinned=order.pinned,
        device=order.emulated,
        load_ms=(report.load_s - report.start_s) * 1000 if report.plt_ms is None else report.plt_ms,
        notes=(*notes.sentences(), *changes.sentences()),
        seen=make_seen(**report.seen, window=window, wait_s=order.wait_s) if report.seen else None,
    )  # fmt: skip


def _answered(pairing: RequestPairing) -> Iterator[_Answered]:
    """Yield the network's responses in the order sent; a 304 only after a full response."""
    sent = [(t, a) for t, a in pairing.pairs if t.position is not None and t.status is not None]
    complete: set[tuple[str, str]] = set()
    for transfer, request in sorted(sent, key=lambda answer: answer[0].position or 0):
        key = (transfer.method, transfer.url)
        if transfer.status != NOT_MODIFIED:
            complete.add(key)
        elif key not in complete:
            continue
        yield transfer, request


def _source(order: RecordOrder, report: BrowserReport) -> str:
    parts = [f"Recorded with {report.browser.replace('/', ' ')}"]
    if device := order.emulated:
        parts += [f"a viewport of {device.width}x{device.height}"] if device.width else []
        parts += [f"as {device.user_agent!r}"] if device.user_agent else []
    if order.scroll:
        parts.append("scrolled to the end")
    if order.pinned:
        parts.append("with pinned clocks and random numbers")
    return f"{', '.join(parts)}; until {order.wait_s:g} s without a request in flight."


def _exchanges(
    answered: Sequence[_Answered], pairing: RequestPairing, report: BrowserReport, notes: Shortfalls
) -> tuple[PageExchange, ...]:
    """Return the responses in their order, then the requests that got none."""
    urls = {transfer.url for transfer, _ in answered}
    sheets = {t.url for t, a in answered if a and a.type == "Stylesheet"}
    causes = _Causes(report, urls, sheets)
    exchanges = []
    for index, (transfer, request) in enumerate(answered):
        note_body(notes, transfer, request)
        exchange = _exchange(transfer, request, report, _check(notes, transfer, request))
        if exchange.body is None:
            exchange = _with_body(exchange, transfer.header("content-encoding"))
        if index == 0:
            exchange = replace(exchange, how="root")
        else:
            how, initiator = causes.of(transfer, request)
            exchange = replace(exchange, how=how, initiator=initiator)
        exchanges.append(exchange)
    for transfer, request in _unanswered(pairing):
        how, initiator = causes.of(transfer, request)
        exchange = _exchange(transfer, request, report, 0)
        exchanges.append(replace(exchange, how=how, initiator=initiator))
    return tuple(exchanges)


def _unanswered(pairing: RequestPairing) -> Iterator[_Answered]:
    """Yield the requests without a response that a replay can make fail likewise."""
    alone = ((NetTransfer(each.method, each.url, each.sent_s), each) for each in pairing.alone)
    for transfer, request in (*pairing.pairs, *alone):
        if transfer.status is None and find_failure(transfer, request) is not None:
            with suppress(ValueError):  # a host that no page can have
                split_url(transfer.url)
                yield transfer, request


def _exchange(transfer: NetTransfer, request: PageRequest | None, report: BrowserReport,
              decoded_size: int | None) -> PageExchange:  # fmt: skip
    start_s = request.sent_s if request else transfer.start_s
    ended_s = (request.ended_s if request else None) or transfer.ended_s
    failure = find_failure(transfer, request)
    unread = is_unread(transfer, request)
    answered = transfer.status is not None
    posted = request.posted if request and transfer.method == request.method else None
    is_whole = posted is not None and len(posted) == transfer.request_body_size
    return PageExchange(
        url=transfer.url, status=transfer.status or 0, method=transfer.method,
        protocol=transfer.protocol, request_headers=transfer.request_headers,
        request_body_size=transfer.request_body_size, headers=transfer.headers,
        request_body=posted if is_whole else None,
        headers_size=None if transfer.head is None else len(transfer.head),
        body=(None if unread else transfer.body) if answered else b"",
        body_size=(transfer.declared_bytes or 0) if unread else transfer.received_bytes,
        decoded_size=decoded_size,
        mime=media_type(transfer.header("content-type")),
        start_ms=(start_s - report.start_s) * 1000,
        dur_ms=None if ended_s is None else max(ended_s - start_s, 0.0) * 1000,
        after_load=start_s > report.load_s, failure=failure,
        wait_ms=request.wait_ms if request and (request.wait_ms or 0) > 0 else None,
        pieces=(pieces := pieces_of(transfer)), open=bool(pieces) and transfer.cut,
    )  # fmt: skip


def _with_body(exchange: PageExchange, encoding: str) -> PageExchange:
    """Return the exchange with a body of its type and size for the one that was not seen."""
    sizes = exchange.body_size, exchange.decoded_size
    body, coded = make_body(exchange.mime, *sizes, encoding, exchange.url)
    exchange = replace(exchange, body=body, body_size=len(body))
    if coded:
        return exchange
    headers = without(exchange.headers, "content-encoding")
    return replace(exchange, decoded_size=len(body), headers=headers)


def _check(notes: Shortfalls, transfer: NetTransfer, request: PageRequest | None) -> int | None:
    """Return the size of the decoded body; note where browser and network log disagree on it."""
    if is_unread(transfer, request):
        return None
    if transfer.status == NOT_MODIFIED:
        return 0
    if transfer.body is None:
        return transfer.decoded_size
    try:
        data = decode(transfer.body, transfer.header("content-encoding"), CONTENT_BYTES)
    except CodingError as error:
        if not transfer.cut:
            notes.add(f"body does not decode ({error})", transfer.url)
        return transfer.decoded_size
    seen = None if transfer.cut or transfer.method == "HEAD" or request is None else request.body
    # The browser empties what turned out to be no picture.
    if seen and seen.size and not _agrees(data, transfer.header("content-type"), seen):
        notes.add("body differs between the browser's network log, which is kept, and its DevTools "
                  "protocol", transfer.url)  # fmt: skip
    return len(data)


class _Causes:
    """What led to each request of one load.

    Args:
        report: the load.
        urls: URLs of all recorded exchanges.
        sheets: those of them that are style sheets.
    """

    def __init__(
        self, report: BrowserReport, urls: Collection[str], sheets: Collection[str]
    ) -> None:
        self._report, self._urls, self._sheets = report, urls, sheets
        self._by_id = {request.id: request for request in reversed(report.requests)}
        # Before a redirect of the browser's own (HSTS) there is nothing on the wire.
        documents = (request for request in report.requests if request.type == "Document")
        self._documents = {request.frame: request.url for request in documents if request.frame}

    def of(self, transfer: NetTransfer, request: PageRequest | None) -> _Cause:
        """Return why this request was made."""
        if request is None:  # a worker or the browser itself sent it: only Referer says for whom
            return ("other", self._known(find_header(transfer.request_headers, "referer")))
        if request.redirected_from in self._urls:
            return ("redirect", request.redirected_from)
        if request.preflight_of and request.preflight_of in self._by_id:
            return self._of(self._by_id[request.preflight_of])
        return self._of(request)

    def _of(self, request: PageRequest) -> _Cause:
        if request.type == "Document" and request.frame not in (None, self._report.main_frame):
            parent = self._report.frames.get(request.frame or "", "")
            return ("frame", self._known(request.initiator, self._documents.get(parent)))
        initiator = self._known(request.initiator, request.document)
        if request.kind == "script":
            return ("script", initiator)
        if request.kind == "parser":
            return ("css" if initiator in self._sheets else "parser", initiator)
        return ("other", initiator)

    def _known(self, *urls: str | None) -> str | None:
        return next((url for url in urls if url is not None and url in self._urls), None)


def _agrees(data: bytes, content_type: str, shown_body: ScriptBody) -> bool:
    if not shown_body.text:
        return hashlib.sha256(data).hexdigest() == shown_body.sha256
    texts = _texts(data, content_type)
    return any(hashlib.sha256(text).hexdigest() == shown_body.sha256 for text in texts)


def _texts(data: bytes, content_type: str) -> Iterator[bytes]:
    """Yield what ``data`` may be as UTF-8: DevTools gives texts as the browser understood them."""
    yield data
    for name in dict.fromkeys((*_charsets(data, content_type), *_FALLBACKS)):
        try:
            text = data.decode(name, "replace")
        except LookupError:
            continue
        yield text.removeprefix("\ufeff").encode("utf-8", "replace")


def _charsets(data: bytes, content_type: str) -> Iterator[str]:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        yield "utf-16"
    message = Message()
    message["Content-Type"] = content_type
    if charset := message.get_content_charset():
        yield charset
