"""Web Page Replay importer: the JSON, mostly gzip, of Catapult's ``wpr record`` (``.wprgo``).

It has for each host and URL the requests and responses in HTTP/1.1 form, and neither their order
nor times: the page comes first, then what it led to by ``Referer``.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from testbed.base.errors import ConfigurationError
from wings.pages.exchange import Headers, redirect_target
from wings.pages.importing.crawl import Crawl, CrawlResponse, cut_page, is_navigation
from wings.pages.importing.framing import make_exchange
from wings.pages.importing.importer import Claim, Importer, Reading
from wings.pages.importing.mahimahi import (
    REQUEST_LINE,
    STATUS_LINE,
    guess_root,
    order_by_referer,
)
from wings.pages.importing.notes import Notes
from wings.pages.importing.untrusted import Fields, read_json
from wings.pages.limits import HEAD_BYTES

_HOLDS = re.compile(r'\{\s*"(?:Requests|Certs)"\s*:|"SerializedRe(?:quest|sponse)"')


def read_wpr(path: Path, *, url: str | None = None) -> Reading:
    """Read the requests of one page: that of ``url``, or the first that a browser went to.

    Raises:
        ConfigurationError: it is damaged or too large, or holds no response or no such page.
        OSError: it cannot be read.
    """
    notes = Notes()
    claims = list(_claims(Fields(read_json(path, notes), "the file", notes), notes))
    if not claims:
        raise ConfigurationError(["no response in this Web Page Replay archive"])
    pages = [each.url for each in claims if is_navigation(each)] or [guess_root(claims)]
    led_by = {redirect_target(each.url, each.status, each.headers): each.url for each in claims}
    for begin in reversed(pages):
        while begin in led_by:  # each once, so that a circle ends
            begin = led_by.pop(begin)
        claims = list(order_by_referer(claims, begin))
    responses, page = cut_page(Crawl([CrawlResponse(each) for each in claims]), notes, url=url)
    is_one = len(responses) == len(claims)
    return Reading(
        title="", url=url or (page.url if page and not is_one else claims[0].url), notes=notes,
        recorded=date.fromtimestamp(path.stat().st_mtime),
        source=f"The Web Page Replay archive {path.name}, which has no order and no times.",
        claims=tuple(response.claim for response in responses),
    )  # fmt: skip


def _claims(document: Fields, notes: Notes) -> Iterator[Claim]:
    """Yield the requests with their responses; of several loads of the page each different one."""
    requests, protocols = document.fields("Requests"), document.fields("NegotiatedProtocol")
    for host in requests.names():
        for url in requests.fields(host).names():
            seen = set()
            for item in requests.fields(host).members(url):
                claim = _claim(url, item, item.text("Proto") or protocols.text(host), notes)
                if claim is None:
                    continue
                key = (claim.method, claim.initiator, claim.request_body_size, claim.body)
                if key in seen:
                    notes.add("Requests left out, recorded again with the same answer", url)
                else:
                    seen.add(key)
                    yield claim


def _claim(url: str, item: Fields, protocol: str, notes: Notes) -> Claim | None:
    line, asked, sent = _message(item, "SerializedRequest", notes)
    request = REQUEST_LINE.fullmatch(line)
    line, headers, body = _message(item, "SerializedResponse", notes)
    status = STATUS_LINE.fullmatch(line)
    if request is None or status is None:
        notes.add("Requests left out, without a whole request and response", url)
        return None
    claim = Claim(
        url, request[1], int(status[1]), protocol or "http/1.1", asked, len(sent), headers
    )
    return make_exchange(claim, line, body, notes)


def _message(item: Fields, name: str, notes: Notes) -> tuple[str, Headers, bytes]:
    """Return first line, headers and body of a message; nothing if it is none."""
    try:
        data = base64.b64decode((item.take_text(name) or "").encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        notes.add("Messages that are no base64, left out", item.where)
        data = b""
    end = max(data.find(b"\r\n\r\n", 0, HEAD_BYTES), 0)
    line, *fields = data[:end].decode("latin-1").split("\r\n")
    pairs = (field.partition(":") for field in fields)
    return line, tuple((name, value.strip()) for name, _, value in pairs), data[end + 4 :]


IMPORTER = Importer(
    "wpr", "a Web Page Replay archive (.wprgo)",
    lambda sample: sample.text.startswith("{") and _HOLDS.search(sample.text) is not None, read_wpr,
)  # fmt: skip
