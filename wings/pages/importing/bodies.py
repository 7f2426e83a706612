"""Bodies of an untrusted recording as a server sends them: coded, of true sizes, or made anew.

One that was not recorded gets a stand-in of its type, in its recorded sizes, which says nothing
and asks for nothing.  The same input gives the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from wings.pages.coding import (
    CANDIDATES,
    CodingError,
    code,
    content_coding,
    decode,
    encode,
    split_codings,
)
from wings.pages.exchange import Headers, without
from wings.pages.importing.importer import Claim
from wings.pages.importing.notes import Notes
from wings.pages.importing.untrusted import Budget
from wings.pages.limits import BODIES_BYTES, BODY_BYTES, mib
from wings.pages.synthesis.filler import (
    BLOCK,
    HTML,
    JSON,
    SVG,
    Fill,
    Syntax,
    Template,
    TooSmallError,
    filler,
    write_gzipped,
    write_identity,
)
from wings.pages.synthesis.media import make_font, make_image

_CODED_AGAIN = "Bodies compressed again, not exactly to the recorded size"
_SYNTHESISED = "Bodies that were not recorded, made in their recorded sizes"
_MAGIC = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
_TEXT = ("text/", "application/json", "application/javascript", "application/x-javascript",
         "application/ecmascript", "application/xml", "application/xhtml", "image/svg")  # fmt: skip
_FONT = ("font/", "application/font-", "application/x-font-")
_FONT_NAMES = (".woff2", ".woff", ".ttf", ".otf")  # often sent as nothing in particular
_BLOCKS = ("text/css", "javascript", "ecmascript")


@dataclass(frozen=True, slots=True)
class Settled:
    """A body as transferred, with its decoded size, and the headers that go with it."""

    body: bytes
    decoded_size: int
    headers: Headers


def new_budget() -> Budget:
    """Return how much decoded content a page may have."""
    return Budget(
        BODIES_BYTES,
        f"the bodies have more than {mib(BODIES_BYTES)} in all; import fewer requests, or "
        "export without bodies: those are made in their recorded sizes",
    )


def settle_body(
    claim: Claim, mime: str, headers: Headers, budget: Budget, notes: Notes, effort: int
) -> Settled:
    """Return the body of ``claim``, whose headers, already clean, are ``headers``.

    ``effort`` is for compressors, as in ``coding``.

    Raises:
        ConfigurationError: the budget is used up.
    """
    headers, encoding = _known_coding(claim, headers, notes)
    if claim.body is None:
        settled = _synthesise(claim, mime, headers, encoding, effort)
        notes.add(_SYNTHESISED, claim.url)
    elif claim.body_is_decoded:
        settled = _from_decoded(claim, claim.body, headers, encoding, notes, effort)
    else:
        settled = _as_served(claim, claim.body, headers, encoding, notes, effort)
    budget.take(max(settled.decoded_size, len(settled.body)))
    return settled


def _known_coding(claim: Claim, headers: Headers, notes: Notes) -> tuple[Headers, str]:
    """Return the headers, without a coding that is none, and the coding."""
    named = content_coding(headers)
    codings = split_codings(named)
    if len(codings) <= 2 and all(name in CANDIDATES for name in codings):
        return headers, named
    notes.add("Content-Encoding left out, unknown", f"{named} of {claim.url}")
    return without(headers, "content-encoding"), ""


def _synthesise(claim: Claim, mime: str, headers: Headers, encoding: str, effort: int) -> Settled:
    size = claim.body_size if claim.body_size is not None else claim.decoded_size or 0
    data, coded = make_body(mime, size, claim.decoded_size, encoding, claim.url, effort)
    if coded:
        return Settled(data, claim.decoded_size or 0, headers)
    return Settled(data, len(data), without(headers, "content-encoding"))


def _from_decoded(
    claim: Claim, data: bytes, headers: Headers, encoding: str, notes: Notes, effort: int
) -> Settled:
    size = claim.body_size
    if not data:
        return Settled(b"", 0, without(headers, "content-encoding"))
    body = _coded(data, encoding, size, effort)
    if size is not None and claim.size_is_exact and len(body) != size:
        example = f"{claim.url}: {len(body)}, recorded {size}"
        what = _CODED_AGAIN if split_codings(encoding) else "Bodies of another than the stated size"
        notes.add(what, example)
    return Settled(body, len(data), headers)


def _coded(data: bytes, encoding: str, size: int | None, effort: int) -> bytes:
    return encode(data, encoding, size or 0, effort) if size is not None else code(data, encoding)


def _as_served(
    claim: Claim, data: bytes, headers: Headers, encoding: str, notes: Notes, effort: int
) -> Settled:
    try:
        return Settled(data, len(decode(data, encoding, BODY_BYTES)), headers)
    except CodingError as error:
        problem = str(error)
    last = (split_codings(encoding) or ("identity",))[-1]
    undone = not data.startswith(_MAGIC.get(last, b"\0\0\0\0")) and "limit" not in problem
    if undone:
        # Crawlers in a browser keep what they saw, and the header of what was sent.
        notes.add("Bodies kept decoded, compressed again", claim.url)
        body = _coded(data, encoding, claim.body_size, effort)
        return Settled(body, len(data), headers)
    notes.add("Bodies that do not decode, sent without Content-Encoding", f"{claim.url}: {problem}")
    return Settled(data, len(data), without(headers, "content-encoding"))


def make_body(
    mime: str, size: int, decoded_size: int | None, encoding: str, url: str, effort: int = 2
) -> tuple[bytes, bool]:
    """Return a body of ``size`` bytes as transferred, and whether it is under ``encoding``.

    Text is, if the decoded size is known and the coding can join the two.  Films are bytes that do
    not decode.
    """
    if not size:
        return b"", False
    if not is_text(mime):
        return _binary(mime, url, size), False
    template, syntax = _template(mime)
    if split_codings(encoding) and decoded_size is not None:
        # Text that fixed codes bring to the size, any coding can; better ones reach half of it.
        for target in (size, 2 * size + 64):
            try:
                packed = write_gzipped(template, syntax, decoded_size, target, url).data
                coded = encode(decode(packed, "gzip", decoded_size), encoding, size, effort)
            except (TooSmallError, CodingError):
                continue
            if len(coded) == size:
                return coded, True
    try:
        return write_identity(template, syntax, size, url).data, False
    except TooSmallError:
        return b" " * size, False


def _binary(mime: str, url: str, size: int) -> bytes:
    fill = filler(url, size)
    if mime.startswith("image/"):
        return make_image(mime.replace("image/jpg", "image/jpeg"), size, fill)
    if mime.startswith(_FONT) or urlsplit(url).path.lower().endswith(_FONT_NAMES):
        try:
            return make_font(size, fill)
        except ValueError:
            return fill
    return fill


def is_text(mime: str) -> bool:
    """Return whether bodies of the type are text; those of no type are."""
    return not mime or mime.startswith(_TEXT) or mime.endswith(("+json", "+xml"))


def _template(mime: str) -> tuple[Template, Syntax]:
    if "json" in mime:
        return [Fill()], JSON
    if "svg" in mime:
        return SVG, HTML
    if any(word in mime for word in _BLOCKS):
        return [Fill()], BLOCK
    if mime == "text/html":
        return [b"<!doctype html>", Fill()], HTML
    return [Fill()], HTML if "xml" in mime else BLOCK
