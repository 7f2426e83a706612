"""Framing of recorded bodies: whole, or cut short, and by what (RFC 9112 section 6)."""

from __future__ import annotations

from dataclasses import replace

from testbed.archive.head import BODILESS
from wings.pages.coding import (
    CodingError,
    CutShortError,
    content_coding,
    decode,
    decode_start,
    split_chunks,
)
from wings.pages.exchange import find_header
from wings.pages.importing.bodies import is_text
from wings.pages.importing.importer import Claim, head_size, media_type, whole_number
from wings.pages.importing.notes import Notes
from wings.pages.limits import BODY_BYTES

_CHUNKED = "Chunked bodies that end before their last chunk"
_SHORT = "Bodies shorter than their Content-Length"


def make_exchange(claim: Claim, line: str, body: bytes | None, notes: Notes) -> Claim:
    """Return the claim with what its headers and status line say, and its body if there is one."""
    length = whole_number(find_header(claim.headers, "content-length"))
    claim = replace(
        claim, headers_size=head_size(line, claim.headers), body_size=length,
        mime=media_type(find_header(claim.headers, "content-type")),
        initiator=find_header(claim.request_headers, "referer") or None,
    )  # fmt: skip
    return claim if body is None else with_body(claim, body, notes)


def with_body(claim: Claim, data: bytes, notes: Notes, cut_by: str = "") -> Claim:
    """Return the claim with the body ``data``, as recorded, without its transfer coding.

    ``cut_by`` is what the recorder says that it stopped for.  A recorder may have undone a coding
    and left its header.  Of a body that is cut short text is kept; other media would not decode,
    so that they are made up where their size is known.  A note says which, and why.
    """
    stated = whole_number(find_header(claim.headers, "content-length"))
    cause = f"Bodies cut short by the recorder ({cut_by})" if cut_by else ""
    if "chunked" in find_header(claim.headers, "transfer-encoding").lower():
        content, is_whole = split_chunks(data)
        if is_whole or content:
            data, cause = content, cause or ("" if is_whole else _CHUNKED)
    if not cause and stated is not None and len(data) < stated:
        bodiless = claim.method == "HEAD" or claim.status in BODILESS or 300 <= claim.status < 400
        cause = "" if bodiless or _was_decoded(claim, data) else _SHORT
    if not cause:
        return replace(claim, body=data, body_size=len(data) if stated is None else stated)
    shown = f"{len(data)} of {'?' if stated is None else stated} bytes, {claim.url}"
    if not is_text(claim.served_mime) and stated:
        notes.add(f"{cause}, made up in their stated size", shown)
        return replace(claim, body_size=stated)
    notes.add(f"{cause}, kept as far as they go", shown)
    try:
        data = decode_start(data, content_coding(claim.headers), BODY_BYTES)
    except CodingError:  # the coding was undone before, or is none that is known
        return replace(claim, body=data, body_size=len(data))
    return replace(claim, body=data, body_is_decoded=True, decoded_size=len(data))


def _was_decoded(claim: Claim, data: bytes) -> bool:
    """Return whether a body is shorter than stated because its coding was undone."""
    coding = content_coding(claim.headers)
    try:
        decode(data, coding, BODY_BYTES)
    except CodingError as error:
        return not isinstance(error, CutShortError)
    return bool(coding.strip())
