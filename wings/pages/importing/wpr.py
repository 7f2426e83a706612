"""Web Page Replay importer: the gzip JSON of Catapult's ``wpr record``, as ``.wprgo``.

It has for each host and URL the requests and responses in HTTP/1.1 form, and neither their order
nor times: the page comes first, then what it led to by ``Referer``.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from testbed.base.errors import ConfigurationError
from wings.pages.exchange import find_header, redirect_target
from wings.pages.importing.crawl import is_navigation
from wings.pages.importing.framing import with_body
from wings.pages.importing.importer import (
    Claim,
    FileStart,
    Importer,
    Reading,
    head_size,
    media_type,
)
from wings.pages.importing.mahimahi import guess_root, led_from
from wings.pages.importing.messages import method_of, split_message, status_of
from wings.pages.importing.notes import Notes
from wings.pages.importing.untrusted import Fields, read_json
from wings.pages.limits import ENTRIES

_HOLDS = re.compile(r'\{\s*"(?:Requests|Certs)"\s*:|"SerializedRe(?:quest|sponse)"')
_PLACELESS = "Requests of no page by their Referer, answered if they are made"


def read_wpr(path: Path, *, url: str | None = None) -> Reading:
    """Read the requests of one page, which ``url`` begins.

    Raises:
        ConfigurationError: it is damaged or too large, or holds no response.
        OSError: it cannot be read.
    """
    notes = Notes()
    document = Fields(read_json(path, notes), "the file", notes)
    claims = list(_claims(document.fields("Requests"), document, notes))
    if not claims:
        raise ConfigurationError(["no response in this Web Page Replay archive"])
    pages = _pages(claims)
    root = url or next(iter(pages), None) or guess_root(claims)
    chosen = _once(_of_page(claims, root, pages, notes), notes)
    if len(chosen) > ENTRIES:
        problem = f"{len(chosen)} responses, at most {ENTRIES} are taken; record one page"
        raise ConfigurationError([problem])
    return Reading(
        title="", url=root, recorded=date.fromtimestamp(path.stat().st_mtime),
        source=f"The Web Page Replay archive {path.name}, which has no order and no times.",
        claims=tuple(chosen), notes=notes,
    )  # fmt: skip


def _claims(requests: Fields, document: Fields, notes: Notes) -> Iterator[Claim]:
    """Yield every request with its response."""
    protocols = document.fields("NegotiatedProtocol")
    for host in requests.names():
        by_url = requests.fields(host)
        for url in by_url.names():
            for item in by_url.members(url):
                protocol = item.text("Proto") or protocols.text(host)
                claim = _claim(url, item, protocol, notes)
                if claim is not None:
                    yield claim


def _claim(url: str, item: Fields, protocol: str, notes: Notes) -> Claim | None:
    asked, answer = (split_message(_bytes(item, name, notes))
                     for name in ("SerializedRequest", "SerializedResponse"))  # fmt: skip
    if asked is None or answer is None:
        notes.add("Requests left out, without a whole request and response", url)
        return None
    line, headers, body = answer
    claim = Claim(
        url=url, method=method_of(asked[0]), status=status_of(line),
        protocol=protocol or "http/1.1", request_headers=asked[1],
        request_body_size=len(asked[2]), headers=headers, headers_size=head_size(line, headers),
        mime=media_type(find_header(headers, "content-type")),
        initiator=find_header(asked[1], "referer") or None,
    )  # fmt: skip
    return with_body(claim, body, notes)


def _bytes(item: Fields, name: str, notes: Notes) -> bytes:
    try:
        return base64.b64decode((item.take_text(name) or "").encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        notes.add("Messages that are no base64, left out", item.where)
        return b""


def _pages(claims: Sequence[Claim]) -> list[str]:
    """Return the URLs that a browser went to; one that redirects led to by their first one."""
    led_by = {redirect_target(each.url, each.status, each.headers): each.url for each in claims}
    begins = []
    for url in (each.url for each in claims if is_navigation(each)):
        seen = {url}
        while led_by.get(url, url) not in seen:
            url = led_by[url]
            seen.add(url)
        begins.append(url)
    return list(dict.fromkeys(begins))


def _of_page(claims: list[Claim], root: str, pages: Sequence[str], notes: Notes) -> Iterator[Claim]:
    """Yield what the page ``root`` led to, and what no page did."""
    own = led_from(claims, root)
    others = {id(claim) for url in pages if url != root for claim in led_from(claims, url)}
    placed = {id(claim) for claim in own}
    yield from own
    for claim in claims:
        if id(claim) in placed:
            continue
        if id(claim) in others:
            notes.add("Requests left out, of other pages by their Referer (--url)", claim.url)
        elif len(pages) > 1:
            notes.add(_PLACELESS, claim.url)
            yield replace(claim, after_load=True)
        else:
            yield claim


def _once(claims: Iterable[Claim], notes: Notes) -> list[Claim]:
    """Return the claims without those that ask and are answered the same again.

    One archive holds what several loads of the page asked for.
    """
    once: dict[tuple[object, ...], Claim] = {}
    for claim in claims:
        key = (claim.method, claim.url, claim.request_body_size, claim.status, claim.body)
        if key in once:
            notes.add("Requests left out, recorded again with the same answer", claim.url)
        once.setdefault(key, claim)
    return list(once.values())


def _recognises(sample: FileStart) -> bool:
    return sample.text.startswith("{") and _HOLDS.search(sample.text) is not None


IMPORTER = Importer("wpr", "a Web Page Replay archive (.wprgo)", _recognises, read_wpr)
