"""Compares a body as transferred with the body that the browser's scripts saw."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from email.message import Message

from testbed.pages.coding import CodingError, decode
from testbed.pages.recorder.seen import Body
from testbed.pages.recorder.transfer import Transfer

MOST_DECODED_BYTES = 1 << 28
# What browsers take a text for that does not say (WHATWG Encoding).
_FALLBACKS = ("utf-8", "windows-1252")


def decode_body(transfer: Transfer) -> bytes:
    """The body without its content coding.

    Raises:
        CodingError: it does not decode, or the browser did not keep it.
    """
    if transfer.body is None:
        raise CodingError("the body was not kept")
    return decode(transfer.body, transfer.header("content-encoding"), MOST_DECODED_BYTES)


def agrees(data: bytes, content_type: str, seen: Body) -> bool:
    """Whether ``data``, decoded, is what the browser showed as ``seen``."""
    if not seen.text:
        return hashlib.sha256(data).hexdigest() == seen.sha256
    return any(
        hashlib.sha256(text).hexdigest() == seen.sha256 for text in _texts(data, content_type)
    )


def _texts(data: bytes, content_type: str) -> Iterator[bytes]:
    """What ``data`` may be as UTF-8: the protocol gives texts as the browser understood them."""
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
