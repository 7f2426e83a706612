"""A body for a response whose own was not recorded: of its type, in its recorded sizes.

It says nothing and asks for nothing.  The same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from testbed.pages.coding import CodingError, decode, encode, split_codings
from testbed.pages.importing.font import make_font
from testbed.pages.synthesis.gif import make_gif
from testbed.pages.synthesis.jpeg import make_jpeg
from testbed.pages.synthesis.png import make_png
from testbed.pages.synthesis.text import (
    BLOCK,
    HTML,
    JSON,
    Fill,
    Syntax,
    Template,
    TooSmallError,
    filler,
    write_gzipped,
    write_identity,
)

_IMAGES: dict[str, Callable[[int, bytes], bytes]] = {
    "image/png": make_png,
    "image/jpeg": make_jpeg,
    "image/jpg": make_jpeg,
}
_TEXT = ("text/", "application/json", "application/javascript", "application/x-javascript",
         "application/ecmascript", "application/xml", "application/xhtml", "image/svg")  # fmt: skip
_FONT = ("font/", "application/font-", "application/x-font-")
_FONT_NAMES = (".woff2", ".woff", ".ttf", ".otf")  # often sent as nothing in particular
_BLOCKS = ("text/css", "javascript", "ecmascript")
_SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1">'


def make_body(
    mime: str, size: int, decoded_size: int | None, encoding: str, url: str, effort: int = 2
) -> tuple[bytes, bool]:
    """A body of ``size`` bytes as transferred, and whether it is under ``encoding``.

    Text is, if the decoded size is known and the coding can join the two.  Films are bytes that do
    not decode.
    """
    if not size:
        return b"", False
    if not _is_text(mime):
        fill = filler(url, size)
        try:
            return _maker(mime, url)(size, fill), False
        except ValueError:
            return fill, False
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


def _maker(mime: str, url: str) -> Callable[[int, bytes], bytes]:
    if mime.startswith("image/"):
        return _IMAGES.get(mime, make_gif)
    if mime.startswith(_FONT) or urlsplit(url).path.lower().endswith(_FONT_NAMES):
        return make_font
    return lambda _, fill: fill


def _is_text(mime: str) -> bool:
    return not mime or mime.startswith(_TEXT) or mime.endswith(("+json", "+xml"))


def _template(mime: str) -> tuple[Template, Syntax]:
    if "json" in mime:
        return [Fill()], JSON
    if "svg" in mime:
        return [_SVG, Fill(), b"</svg>"], HTML
    if any(word in mime for word in _BLOCKS):
        return [Fill()], BLOCK
    if mime == "text/html":
        return [b"<!doctype html>", Fill()], HTML
    return [Fill()], HTML if "xml" in mime else BLOCK
