"""Redaction: takes the secrets out of a recording, such that it still replays.

Headers that hold secrets go; values of parameters, addresses and user information give way to
placeholders of the same length in URLs, headers and bodies, so that the page asks for the URLs
that the archive has.  The rules are in ``rules``.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from wings.pages.coding import CodingError, Effort, content_coding, decode, encode
from wings.pages.exchange import Headers, PageExchange, Recording, find_header
from wings.pages.redaction.rules import (
    CERTAIN_NAMES,
    SELF_NAMED,
    STRUCTURAL_HEADERS,
    is_public_file,
    is_secret_header,
)
from wings.pages.redaction.scrub import Scrubber

SEARCH_LIMIT_BYTES = 256_000_000
"""Decoded bodies that are larger are not searched; a note says so."""

_URL_HEADERS = frozenset({"referer", "location", "link", "content-location", "refresh", "origin"})
_MEDIA = ("image/", "audio/", "video/", "font/", "application/font", "application/x-font")
_INLINE = re.compile(
    rb"<(?:script|style)\b[^>]*>(.*?)</(?:script|style)", re.DOTALL | re.IGNORECASE
)
_NAMED = re.compile(rb"""([A-Za-z][\w.-]*)(?:\\?["'\]]*\s*[:=]|"\s)""")  # in JSON, forms, multipart
_INTEGRITY = (b"sha256-", b"sha384-", b"sha512-")
_GUESSED = ("shape", "path")
_SHOWN, _LONGEST_URL = 5, 150
_KINDS = {
    "name": "by the parameter's name", "shape": "by the value's shape",
    "e-mail address": "that are e-mail addresses", "user information": "of user information",
    "header": "of removed headers", "form": "in bodies, by a form that says what they are",
    "path": "in paths, by their shape", "card number": "that are card numbers",
    "phone number": "that are phone numbers", "coordinates": "that are coordinates",
}  # fmt: skip


@dataclass
class _Tally:
    """What was changed, for the notes; never a value.  ``hashes`` are of bodies, old to new."""

    headers: dict[str, int] = field(default_factory=dict)
    urls: dict[str, None] = field(default_factory=dict)
    bodies: int = 0
    problems: dict[str, str] = field(default_factory=dict)
    hashes: dict[bytes, bytes] = field(default_factory=dict)
    effort: Effort = field(default_factory=Effort)


def redact(recording: Recording) -> Recording:
    """Return the recording without its secrets; its notes say how many of what kind were removed.

    ``headers_size`` stays as recorded.  A body keeps its transferred size where its coding can
    reach that; a note says where not, and which bodies could not be searched.

    Raises:
        ConfigurationError: there is so much to look for that it would take hours.
    """
    scrubber = Scrubber(
        (urlsplit(exchange.url).hostname or "" for exchange in recording.exchanges),
        (each.url for each in recording.exchanges
         if is_public_file(each.method, each.status, each.mime, each.headers)
         and not find_header(each.request_headers, "authorization")),
    )  # fmt: skip
    tally = _Tally()
    for learn in (_learn_urls, _learn_headers, _learn_body):
        for exchange in recording.exchanges:
            learn(scrubber, exchange)
    exchanges = tuple(_redact(exchange, scrubber, tally) for exchange in recording.exchanges)
    if tally.hashes:
        exchanges = tuple(_follow_hashes(exchange, tally) for exchange in exchanges)
    clean = scrubber.replace_text
    return replace(
        recording,
        title=clean(recording.title),
        url=exchanges[0].url if exchanges else clean(recording.url),
        source=clean(recording.source),
        exchanges=exchanges,
        seen=recording.seen and recording.seen.renamed(clean),
        notes=(*map(clean, recording.notes), *_notes(scrubber, tally)),
    )


def _learn_urls(scrubber: Scrubber, exchange: PageExchange) -> None:
    scrubber.learn_url(exchange.url)
    if exchange.initiator is not None:
        scrubber.learn_url(exchange.initiator)
    for name, value in (*exchange.request_headers, *exchange.headers):
        if name.lower() in _URL_HEADERS:
            scrubber.learn_url(value)


def _learn_headers(scrubber: Scrubber, exchange: PageExchange) -> None:
    for name, value in (*exchange.request_headers, *exchange.headers):
        if is_secret_header(name):
            for secret in _header_secrets(name.lower(), value):
                scrubber.learn_value(secret)


def _learn_body(scrubber: Scrubber, exchange: PageExchange) -> None:
    for found in SELF_NAMED.finditer(exchange.request_body or b""):
        scrubber.learn_form(found[0])
    if not exchange.body or not _is_text(exchange.mime):
        return
    with suppress(CodingError):  # which is noted when it is to be changed
        content = decode(exchange.body, content_coding(exchange.headers), SEARCH_LIMIT_BYTES)
        for found in SELF_NAMED.finditer(content):
            scrubber.learn_form(found[0])


def _header_secrets(name: str, value: str) -> Iterable[str]:
    """Return the values within a removed header that could be met again in bodies."""
    if name == "cookie":
        return [pair.partition("=")[2].strip() for pair in value.split(";")]
    if name == "set-cookie":
        return [value.partition(";")[0].partition("=")[2].strip()]
    return value.split()[-1:]


def _redact(exchange: PageExchange, scrubber: Scrubber, tally: _Tally) -> PageExchange:
    url = scrubber.replace_text(exchange.url)
    if url != exchange.url:
        tally.urls[url] = None
    initiator = exchange.initiator
    changed = replace(
        exchange,
        url=url,
        request_headers=_clean_headers(exchange.request_headers, scrubber, tally),
        headers=_clean_headers(exchange.headers, scrubber, tally),
        initiator=None if initiator is None else scrubber.replace_text(initiator),
        request_body=_clean_request(exchange.request_body, scrubber),
    )
    if not scrubber.secrets:
        return changed
    clean, pair = _change_body(changed, scrubber.replace, tally)
    if pair is not None:
        tally.bodies += 1
        tally.hashes.update(_hashes(*pair))
    return clean


def _clean_request(body: bytes | None, scrubber: Scrubber) -> bytes | None:
    """Return a request's body without secrets; ``None`` where it has one by its name.

    Digests of such a body would tell whoever guesses the secret that it is right.
    """
    names = (found[1].decode() for found in _NAMED.finditer(body or b""))
    if any(re.sub("[^a-z]", "", name.lower()) in CERTAIN_NAMES for name in names):
        return None
    return None if body is None else scrubber.replace(body)


def _follow_hashes(exchange: PageExchange, tally: _Tally) -> PageExchange:
    """Let pages that check their scripts (W3C Subresource Integrity, CSP) expect the new ones."""
    headers = []
    for name, value in exchange.headers:
        if any(mark.decode() in value for mark in _INTEGRITY):
            for old, new in tally.hashes.items():
                value = value.replace(old.decode(), new.decode())
        headers.append((name, value))
    exchange = replace(exchange, headers=tuple(headers))

    def change(content: bytes) -> bytes:
        if any(mark in content for mark in _INTEGRITY):
            for old, new in tally.hashes.items():
                content = content.replace(old, new)
        return content

    return _change_body(exchange, change, tally)[0]


def _hashes(old: bytes, new: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield Base64 hashes, old and new, of a changed body and of scripts and styles within it."""
    spans = [slice(None), *(slice(*inline.span(1)) for inline in _INLINE.finditer(old))]
    for span in spans:
        if old[span] != new[span]:
            for name in ("sha256", "sha384", "sha512"):
                before, after = (hashlib.new(name, data[span]).digest() for data in (old, new))
                yield b64encode(before), b64encode(after)


def _is_text(mime: str) -> bool:
    """Return whether a body can hold URLs; unknown types can."""
    return mime == "image/svg+xml" or not mime.startswith(_MEDIA)


def _clean_headers(headers: Headers, scrubber: Scrubber, tally: _Tally) -> Headers:
    cleaned = []
    for name, value in headers:
        if is_secret_header(name):
            tally.headers[name.lower()] = tally.headers.get(name.lower(), 0) + 1
        else:
            fixed = name.lower() in STRUCTURAL_HEADERS
            cleaned.append((name, value if fixed else scrubber.replace_text(value)))
    return tuple(cleaned)


def _change_body(
    exchange: PageExchange, change: Callable[[bytes], bytes], tally: _Tally
) -> tuple[PageExchange, tuple[bytes, bytes] | None]:
    """Return the exchange with its content changed, and the content before and after if it was."""
    if not exchange.body or not _is_text(exchange.mime):
        return exchange, None
    encoding = content_coding(exchange.headers)
    try:
        content = decode(exchange.body, encoding, SEARCH_LIMIT_BYTES)
    except CodingError as error:
        tally.problems[exchange.url] = f"the body was not searched for secrets: {error}"
        return exchange, None
    clean = change(content)
    if clean == content:
        return exchange, None
    coded = encode(clean, encoding, exchange.body_size, tally.effort.take(len(clean)))
    if len(coded) != exchange.body_size:
        sizes = f"{len(coded)} bytes, recorded {exchange.body_size}"
        tally.problems[exchange.url] = f"the body without secrets has {sizes}"
    return replace(exchange, body=coded, body_size=len(coded)), (content, clean)


def _notes(scrubber: Scrubber, tally: _Tally) -> Iterator[str]:
    if tally.headers:
        listed = ", ".join(f"{count} {name}" for name, count in sorted(tally.headers.items()))
        yield f"Secret headers that were removed: {listed}."
    counts = scrubber.count_kinds()
    if counts:
        replaced = (f"{counts[kind]} {words}" for kind, words in _KINDS.items() if kind in counts)
        changed = f"in {len(tally.urls)} URLs and {tally.bodies} bodies"
        yield f"Secret values that were replaced: {', '.join(replaced)}; {changed}."
    guessed = sum(counts.get(kind, 0) for kind in _GUESSED)
    if guessed and tally.urls:
        shown = ", ".join(url[:_LONGEST_URL] for url in list(tally.urls)[:_SHOWN])
        more = ", ..." if len(tally.urls) > _SHOWN else ""
        yield (
            f"{guessed} of these only look like secrets; a script that makes such a URL itself "
            f"misses it, unless you give --keep-secrets: {shown}{more}."
        )
    yield from (f"{url}: {problem}." for url, problem in tally.problems.items())
