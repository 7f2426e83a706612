"""One entry of a HAR as a claim: sizes, body, cache and initiator in the words of each producer.

Sizes.  DevTools: ``bodySize`` is -1 over HTTP/2 and 0 from the cache, ``_transferSize`` has the
head.  Firefox: ``bodySize`` has the head.  chrome-har: ``bodySize`` has the head over HTTP/2, and
everywhere in its first versions.  WebPageTest: ``_objectSize`` is the body, ``_bytesIn`` all.
mitmproxy: ``headersSize`` is the length of what Python shows of the headers.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from testbed.base.har_format import CREATOR
from wings.pages.exchange import Headers, find_header
from wings.pages.har_export import TABLE_CREATOR, TRANSFERRED
from wings.pages.importing.importer import Claim, head_size, media_type, whole_number
from wings.pages.importing.notes import Notes
from wings.pages.importing.untrusted import Fields, whole_text

_BY_WORKER = ("_fetchedViaServiceWorker", "fromServiceWorker", "_fromServiceWorker")
_STACK_DEPTH = 20
_FAILURE = re.compile(r"(net::ERR_)?[A-Za-z0-9_-]{1,80}")
_WHOLE = 0.9  # of the stated size; a charset that is not known makes less of a difference
_CHARSET = re.compile(r"charset\s*=\s*\"?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
# What the web means by a name (WHATWG Encoding); only these, because Python's names open modules.
_CODECS = {
    **dict.fromkeys(("iso-8859-1", "latin1", "us-ascii", "ascii", "windows-1252"), "cp1252"),
    **{f"windows-125{n}": f"cp125{n}" for n in (0, 1, 3, 4, 5, 6, 7, 8)},
    **{f"iso-8859-{n}": f"iso8859_{n}" for n in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "windows-31j"), "cp932"),
    **dict.fromkeys(("gb2312", "gbk", "gb18030"), "gb18030"),
    **{"iso-8859-9": "cp1254", "euc-jp": "euc_jp", "euc-kr": "cp949", "big5": "big5hkscs"},
    **{"koi8-r": "koi8_r", "koi8-u": "koi8_u", "utf-16le": "utf_16_le", "utf-16be": "utf_16_be"},
}


OWN_PRODUCERS = (CREATOR, TABLE_CREATOR)
"""Names of creators that are ours; what such a file says is screened as all else."""


def make_claim(entry: Fields, start_ms: float | None, producer: str, notes: Notes,
               attached: Mapping[str, bytes]) -> Claim:  # fmt: skip
    """Return what ``entry`` says, in the words of ``producer``, its creator in lower case.

    ``attached`` are bodies beside the HAR by their names.
    """
    request, response = entry.fields("request"), entry.fields("response")
    content = response.fields("content")
    headers, request_headers = _headers(response), _headers(request)
    status = int(response.number("status") or 0)
    cached = _is_cached(entry, response, status)
    body_size, is_exact = _measure(entry, response, headers, producer, cached=cached)
    url = url_of(entry)
    body = _body(content, headers, url, notes, attached)
    if body and len(body) < _WHOLE * (content.size("size") or 0):
        notes.add("Bodies cut short, taken as not recorded", f"{len(body)} bytes of {url}")
        body = None
    redirect = response.text("redirectURL")
    if redirect and 300 <= status < 400 and not find_header(headers, "location"):
        headers = (*headers, ("Location", redirect))
    initiator, kind = _find_initiator(entry, request_headers)
    decoded = content.size("size")
    if body is None and not decoded and body_size:
        decoded = None  # for a redirect it only says that nothing was kept
    return Claim(
        url=url, method=request.text("method") or "GET", status=status,
        protocol=response.text("httpVersion") or request.text("httpVersion"),
        request_headers=request_headers, request_body_size=request.size("bodySize"),
        headers=headers, headers_size=_measure_head(response, headers, producer), body=body,
        body_is_decoded=True, body_size=body_size, size_is_exact=is_exact,
        decoded_size=decoded if body is None else len(body),
        mime=media_type(content.text("mimeType")).replace("x-unknown", ""),
        initiator=initiator, initiator_kind=kind,
        is_frame=entry.text("_resourceType") == "document", start_ms=start_ms,
        dur_ms=entry.number("time"), from_cache=cached, failure=_failure(entry, response),
    )  # fmt: skip


def _failure(entry: Fields, response: Fields) -> str | None:
    """Return how it failed in Chromium's words: we, DevTools or Playwright say it."""
    told = entry.text("_failure") or response.text("_error") or response.text("_failureText")
    return told if _FAILURE.fullmatch(told) else None


def refine(claim: Claim, entry: Fields, notes: Notes) -> Claim:
    """Return ``claim`` with what only our own entries say, so that an export comes back as it was.

    That is the body as transferred, times, and what led to it.
    """
    claim = replace(
        claim, initiator=entry.text("_parent") or None, how=entry.text("_how"),
        after_load=entry.raw("_after_load") is True, made_up=entry.raw("_made_up") is True,
        start_ms=entry.number("_start_ms"), dur_ms=entry.number("_dur_ms"),
    )  # fmt: skip
    text = entry.fields("response").take_text(TRANSFERRED)
    if text is None:
        return claim
    try:
        body = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        notes.add("Bodies as transferred that are no base64, compressed again", claim.url)
        return claim
    return replace(claim, body=body, body_is_decoded=False, body_size=len(body))


def url_of(entry: Fields) -> str:
    """Return the URL that was asked for."""
    return entry.text("_full_url") or entry.fields("request").text("url")


def is_workers(entry: Fields) -> bool:
    """Return whether a service worker answered, in the words of DevTools and of chrome-har."""
    response = entry.fields("response")
    return any(message.raw(name) is True for message in (entry, response) for name in _BY_WORKER)


def _is_cached(entry: Fields, response: Fields, status: int) -> bool:
    """Return whether the browser did not fetch it, by each producer's words, or by a 304."""
    before = entry.fields("cache").raw("beforeRequest")
    on_disk = entry.raw("_fromDiskCache") is True or response.raw("fromDiskCache") is True
    if status == 304 or is_workers(entry):
        return True
    if entry.has("_fromCache") or on_disk or isinstance(before, dict):
        return True
    # Before it had a field for that, DevTools said that nothing was transferred.
    nothing = response.has("_transferSize") and response.number("_transferSize") == 0
    return nothing and 200 <= status < 300 and bool(response.fields("content").size("size"))


def _headers(message: Fields) -> Headers:
    """Return the headers; some writers have an object of names and values."""
    if isinstance(message.raw("headers"), dict):
        named = message.fields("headers")
        return tuple((whole_text(name), named.text(name)) for name in named.names())
    return tuple((item.text("name"), item.text("value")) for item in message.members("headers"))


def _measure(
    entry: Fields, response: Fields, headers: Headers, producer: str, *, cached: bool
) -> tuple[int | None, bool]:
    """Return the transferred bytes of the body (``None``: unknown), and whether they are exact.

    It is the best that the entry says; ``cached``: its counters are of another load, or 0.
    """
    length = whole_number(find_header(headers, "content-length"))
    if cached:
        return length, True
    object_size = entry.size("_objectSize")
    if object_size:
        return object_size, True
    head = response.size("headersSize") or 0
    total = response.size("_transferSize") or entry.size("_bytesIn") or 0
    body = response.size("bodySize")
    if producer == "firefox" and body and body >= head:
        total, body = body, None
    most = max(total, body or 0)
    if length is not None and (length <= most or not most):
        return length, True
    if body and not (total and body >= total):
        return body, True
    if total or body:
        return max((total or body or 0) - head, 0), False
    # Nothing was transferred, or it was not counted; the decoded size says which.
    return 0 if response.fields("content").size("size") == 0 else None, True


def _measure_head(response: Fields, headers: Headers, producer: str) -> int | None:
    """Return the bytes of the response head in HTTP/1.1 form; ``None`` when unknown."""
    if producer != "mitmproxy":
        return response.size("headersSize") or None
    status = int(response.number("status") or 0)
    line = f"{response.text('httpVersion')} {status} {response.text('statusText')}"
    return head_size(line, headers)


def _body(
    content: Fields, headers: Headers, url: str, notes: Notes, attached: Mapping[str, bytes]
) -> bytes | None:
    """Return the decoded body; ``None`` where the file has none."""
    size = content.size("size")
    if name := content.text("_file"):
        if name not in attached:
            notes.add("Bodies that are not with the HAR, taken as not recorded", url)
        return attached.get(name)
    text = content.take_text("text")
    if text is None or (not text and size):
        return b"" if size == 0 else None
    if content.text("encoding").lower() != "base64":
        declared = find_header(headers, "content-type") or content.text("mimeType")
        return _encode_text(text, declared, size)
    try:
        plain = "".join(text.split())  # some writers break lines, and some leave the padding out
        return base64.b64decode((plain + "=" * (-len(plain) % 4)).encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        notes.add("Bodies that are no base64, taken as not recorded", url)
        return None


def _encode_text(text: str, content_type: str, size: int | None) -> bytes:
    """Return the bytes that ``text`` was: HAR holds Unicode, whatever the charset was.

    They are in the charset that ``content_type`` names if that gives ``size`` bytes, or UTF-8;
    half a surrogate pair becomes a question mark.
    """
    utf8 = text.encode("utf-8", "replace")
    charset = _CHARSET.search(content_type)
    codec = _CODECS.get(charset.group(1).lower()) if charset else None
    if codec is None or size is None or len(utf8) == size:
        return utf8
    try:
        encoded = text.encode(codec)
    except UnicodeEncodeError:
        return utf8
    return encoded if len(encoded) == size else utf8


def _find_initiator(entry: Fields, request_headers: Headers) -> tuple[str | None, str]:
    """Return the initiator's URL (``None``: unknown), and ``parser``, ``script`` or nothing.

    DevTools writes an object, chrome-har and WebPageTest a URL and ``_initiator_type``; Firefox
    nothing, so that the ``Referer`` has to do.
    """
    if isinstance(entry.raw("_initiator"), dict):
        initiator = entry.fields("_initiator")
        kind = initiator.text("type")
        url = initiator.text("url") or next(_frames(initiator.fields("stack")), "")
    else:
        url, kind = entry.text("_initiator"), entry.text("_initiator_type")
    kind = kind.strip().lower()
    referer = find_header(request_headers, "referer")
    return url or referer or None, kind if kind in ("parser", "script") else ""


def _frames(stack: Fields) -> Iterator[str]:
    """Yield URLs of a call stack's frames, the innermost first, across asynchronous calls."""
    for _ in range(_STACK_DEPTH):
        for frame in stack.members("callFrames"):
            if url := frame.text("url"):
                yield url
        if not stack.has("parent"):
            return
        stack = stack.fields("parent")
