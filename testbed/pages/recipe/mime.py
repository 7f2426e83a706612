"""Media types by the name's ending, the same on every machine, and which of them compress."""

from __future__ import annotations

_MIMES = {
    "css": "text/css",
    "eot": "application/vnd.ms-fontobject",
    "gif": "image/gif",
    "htm": "text/html",
    "html": "text/html",
    "ico": "image/x-icon",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "js": "application/javascript",
    "json": "application/json",
    "map": "application/json",
    "mjs": "application/javascript",
    "mp4": "video/mp4",
    "otf": "font/otf",
    "png": "image/png",
    "svg": "image/svg+xml",
    "ttf": "font/ttf",
    "txt": "text/plain",
    "webm": "video/webm",
    "webp": "image/webp",
    "woff": "font/woff",
    "woff2": "font/woff2",
    "xml": "application/xml",
}
UNKNOWN = "application/octet-stream"
_TEXT = frozenset(
    ("application/javascript", "application/json", "application/xml", "image/svg+xml")
)


def mime_of(path: str) -> str:
    """The media type that a server would give the file."""
    return _MIMES.get(path.rpartition(".")[2].lower(), UNKNOWN)


def is_text(mime: str) -> bool:
    """Whether a server would compress it."""
    return mime.startswith("text/") or mime in _TEXT
