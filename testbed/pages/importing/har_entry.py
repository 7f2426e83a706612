"""One entry of a HAR as a claim: sizes, body, initiator, in the words of each producer."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from testbed.pages.exchange import Headers, find_header
from testbed.pages.har import TRANSFERRED
from testbed.pages.importing.claim import Claim, Notes
from testbed.pages.importing.json_file import Fields


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes of a body as transferred (``None``: unknown), and whether they were counted."""

    body: int | None
    is_exact: bool


def measure(
    entry: Fields, response: Fields, headers: Headers, *, producer: str, cached: bool
) -> Size:
    """The best that the entry says; ``cached``: its counters are of another load, or 0."""
    length = _content_length(headers)
    if cached:
        return Size(length, True)
    object_size = entry.size("_objectSize")
    if object_size:
        return Size(object_size, True)
    head = response.size("headersSize") or 0
    total = response.size("_transferSize") or entry.size("_bytesIn") or 0
    body = response.size("bodySize")
    if producer == "firefox" and body and body >= head:
        total, body = body, None
    most = max(total, body or 0)
    if length is not None and (length <= most or not most):
        return Size(length, True)
    if body and not (total and body >= total):
        return Size(body, True)
    if total or body:
        return Size(max((total or body or 0) - head, 0), False)
    # Nothing was transferred, or it was not counted; the decoded size tells which.
    return Size(0 if response.fields("content").size("size") == 0 else None, True)


def measure_head(response: Fields, headers: Headers, producer: str) -> int | None:
    """Bytes of the response head in HTTP/1.1 form; ``None`` when unknown."""
    if producer != "mitmproxy":
        return response.size("headersSize") or None
    status = int(response.number("status") or 0)
    line = f"{response.text('httpVersion')} {status} {response.text('statusText')}"
    return len(line) + 4 + sum(len(name) + len(value) + 4 for name, value in headers)


def _content_length(headers: Headers) -> int | None:
    value = find_header(headers, "content-length").strip()
    return int(value) if value.isascii() and value.isdigit() and len(value) < 16 else None


_DEPTH = 20


def find_initiator(entry: Fields, request_headers: Headers) -> tuple[str | None, str]:
    """URL of the initiator (``None``: unknown) and its kind: ``parser``, ``script`` or nothing.

    DevTools writes an object, chrome-har and WebPageTest a URL and ``_initiator_type``; Firefox
    nothing, so that the ``Referer`` has to do.
    """
    if isinstance(entry.raw("_initiator"), dict):
        initiator = entry.fields("_initiator")
        kind = _kind(initiator.text("type"))
        url = initiator.text("url") or next(_frames(initiator.fields("stack")), "")
    else:
        url = entry.text("_initiator")
        kind = _kind(entry.text("_initiator_type"))
    referer = find_header(request_headers, "referer")
    return url or referer or None, kind


def _kind(text: str) -> str:
    kind = text.strip().lower()
    return kind if kind in ("parser", "script") else ""


def _frames(stack: Fields) -> Iterator[str]:
    """URLs of the frames of a call stack, the innermost first, across asynchronous calls."""
    for _ in range(_DEPTH):
        for frame in stack.members("callFrames"):
            if url := frame.text("url"):
                yield url
        if not stack.has("parent"):
            return
        stack = stack.fields("parent")


_CREATORS = frozenset({"firstflight", "testbed.page"})


def is_own(creator: str) -> bool:
    """Whether we are the producer of that name."""
    return creator in _CREATORS


def refine(claim: Claim, entry: Fields, notes: Notes) -> Claim:
    """``claim`` with what only our own entries say: the body as transferred, what led to it."""
    claim = replace(
        claim,
        initiator=entry.text("_parent") or None,
        how=entry.text("_how"),
        after_load=entry.raw("_after_load") is True,
        start_ms=entry.number("_start_ms"),
        dur_ms=entry.number("_dur_ms"),
    )
    text = entry.fields("response").take_text(TRANSFERRED)
    if text is None:
        return claim
    try:
        body = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        notes.add("Bodies as transferred that are no base64, compressed again", claim.url)
        return claim
    return replace(claim, body=body, body_is_decoded=False, body_size=len(body))


def order_by_parent(claims: Sequence[Claim]) -> list[Claim]:
    """The claims in their order, except that each stands behind the one that led to it.

    In a table, what has no recorded start comes last, also when it led to others; an archive that
    is written anew resolves what led to a request among those before it.
    """
    first = {claim.url: index for index, claim in reversed(list(enumerate(claims)))}
    placed: dict[int, None] = {}
    for index in range(len(claims)):
        waiting: dict[int, None] = {}
        at: int | None = index
        while at is not None and at not in placed and at not in waiting:
            waiting[at] = None
            at = first.get(claims[at].initiator or "")
        placed |= dict.fromkeys(reversed(waiting))
    return [claims[index] for index in placed]


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


def encode_text(text: str, content_type: str, size: int | None) -> bytes:
    """``text`` in the charset that ``content_type`` names if that gives ``size`` bytes, or UTF-8.

    Half a surrogate pair becomes a question mark.
    """
    utf8 = text.encode("utf-8", "replace")
    found = _CHARSET.search(content_type)
    codec = _CODECS.get(found.group(1).lower()) if found else None
    if codec is None or size is None or len(utf8) == size:
        return utf8
    try:
        other = text.encode(codec)
    except UnicodeEncodeError:
        return utf8
    return other if len(other) == size else utf8
