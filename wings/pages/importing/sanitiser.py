"""Sanitiser of untrusted URLs, headers, methods, statuses and protocols, as the lab replays them.

Sources: RFC 3986, RFC 1123 section 2.1, RFC 9110, and the WHATWG URL standard for what browsers
mend.
"""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote

from testbed.archive.head import REASONS, header_problem, request_problem
from testbed.archive.reading import DEFAULT_PORTS
from wings.pages.exchange import Headers, HttpProtocol
from wings.pages.importing.notes import Notes
from wings.pages.importing.untrusted import whole_text
from wings.pages.limits import HEAD_BYTES, RAW_URL_BYTES

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_NAMED = frozenset({"about", "blob", "chrome", "chrome-extension", "data", "devtools", "file",
                    "filesystem", "javascript", "moz-extension", "ws", "wss"})  # fmt: skip
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
# What browsers take for a part of an address, in decimal or hexadecimal (WHATWG URL 3.5).
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_ADDRESS = ("addresses instead of host names: record it under a name, "
            "--resolver-rule 'MAP www.mine.test ADDRESS'")  # fmt: skip
_OWN_NAMES = frozenset({"prime"})
_KEPT = "!$%&'()*+,-./:;=?@[\\]^_`{|}~"
_DOTS = re.compile(r"/(\.|%2e)", re.IGNORECASE)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_H2 = ("h2", "h3", "http/2", "http/3", "http2", "http3", "quic", "spdy")


class UnusableError(Exception):
    """The URL cannot be replayed; the message is the kind of reason, for counting."""


def clean_url(raw: str) -> str:
    """Return the URL in percent-encoded ASCII, without fragment, user information, default port.

    Raises:
        UnusableError: no lab can serve it.
    """
    if len(raw) > RAW_URL_BYTES:
        raise UnusableError(f"URLs of more than {RAW_URL_BYTES} characters")
    text = re.sub("[\t\r\n]", "", whole_text(raw)).strip("".join(map(chr, range(33))))
    scheme_match = _SCHEME.match(text)
    if scheme_match is None:
        raise UnusableError("no absolute URL")
    scheme = scheme_match.group(1).lower()
    if scheme not in DEFAULT_PORTS:
        raise UnusableError(f"{scheme}: URLs" if scheme in _NAMED else "an unknown kind of URL")
    text = text[scheme_match.end() :].partition("#")[0].lstrip("/\\")
    end = min((text.find(mark) for mark in "/\\?" if mark in text), default=len(text))
    host, port = split_authority(text[:end].rpartition("@")[2], scheme)
    path, mark, query = text[end:].partition("?")
    path = quote(_without_dots(path.replace("\\", "/")), safe=_KEPT)
    shown = "" if port == DEFAULT_PORTS[scheme] else f":{port}"
    target = f"{path or '/'}{mark}{quote(query, safe=_KEPT)}"
    if request_problem("GET", host, target) is not None:
        raise UnusableError("URLs that nginx cannot be asked for")
    return f"{scheme}://{host}{shown}{target}"


def has_user(raw: str) -> bool:
    """Return whether the URL has user information, which ``clean_url`` leaves out."""
    authority = raw.partition("://")[2]
    return "@" in re.split(r"[/\\?#]", authority, maxsplit=1)[0]


def split_authority(text: str, scheme: str) -> tuple[str, int]:
    """Return host name and port.

    Raises:
        UnusableError: they are none, or the lab cannot serve them.
    """
    if text.startswith("["):  # RFC 3986 section 3.2.2
        raise UnusableError(_ADDRESS)
    name, colon, digits = text.partition(":")
    if colon and digits and not (digits.isascii() and digits.isdigit() and len(digits) < 6):
        raise UnusableError("no port")
    port = int(digits) if digits else DEFAULT_PORTS[scheme]
    if not 0 < port < 65536:
        raise UnusableError("no port")
    if scheme == "https" and port == DEFAULT_PORTS["http"]:
        raise UnusableError("https on port 80, where the lab speaks plain HTTP")
    return _clean_host(name), port


def _clean_host(name: str) -> str:
    host = name.lower().removesuffix(".")
    if not host.isascii():
        try:
            host = ascii_host(host)
        except UnicodeError:
            raise UnusableError("host names that are none") from None
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise UnusableError("host names that are none")
    if _NUMBER.fullmatch(labels[-1]):
        raise UnusableError(_ADDRESS)
    if labels[-1] == "localhost":
        raise UnusableError("localhost, which a browser takes for its own machine")
    if host in _OWN_NAMES:
        raise UnusableError("a host name that the lab needs")
    return host


def ascii_host(name: str) -> str:
    """Return a host name as browsers ask for it (RFC 3492; UTS 46, not transitional).

    Raises:
        UnicodeError: it is none.
    """
    lower = "".join(map(str.lower, unicodedata.normalize("NFKC", name)))
    labels = lower.replace("\u3002", ".").split(".")
    return ".".join(
        # Python's codec is of 2003, when these two became others.
        f"xn--{label.encode('punycode').decode()}" if set(label) & set("\u00df\u03c2")
        else label.encode("idna").decode()
        for label in labels
    ).lower()  # fmt: skip


def _without_dots(path: str) -> str:
    """Return ``path`` without ``.`` and ``..``, as browsers send it (RFC 3986 section 5.2.4)."""
    if not _DOTS.search(path):
        return path
    out: list[str] = []
    segments = path.split("/")[1:]
    for index, segment in enumerate(segments):
        name = segment.lower().replace("%2e", ".")
        if name == ".." and out:
            out.pop()
        if name not in (".", ".."):
            out.append(segment)
        elif index == len(segments) - 1:
            out.append("")
    return "/" + "/".join(out)


def clean_headers(headers: Headers, url: str, notes: Notes) -> Headers:
    """Return the headers that can be sent; what is left out or changed is noted.

    Pseudo-headers of HTTP/2 are no headers.  chrome-har joins headers of one name by line feeds.
    """
    kept: list[tuple[str, str]] = []
    size = 0
    for name, joined in headers:
        if name.startswith(":"):
            continue
        if header_problem(name, "") is not None:
            notes.add("Headers left out, names that are none", f"{name} of {url}")
            continue
        for value in joined.split("\n"):
            clean = _CONTROLS.sub("", value).strip(" \t")
            if clean != value.strip("\r \t"):
                notes.add("Headers without their control characters", f"{name} of {url}")
            size += len(name) + len(clean) + 4
            if size > HEAD_BYTES:
                notes.add(f"Headers left out, heads of more than {HEAD_BYTES} bytes", url)
            elif header_problem(name, clean) is not None:
                notes.add("Headers left out, values that nginx cannot send", f"{name} of {url}")
            else:
                kept.append((name, clean))
    return tuple(kept)


def replayed_status(status: int) -> int | None:
    """Return the status that is sent for ``status``; ``None`` if there was no whole response."""
    if status == 304:  # what the browser had is what a first load fetches
        return 200
    return status if status in REASONS and status < 600 else None


def status_problem(status: int) -> str:
    """Return why a status cannot be replayed, as a kind of requests."""
    if status <= 0:
        return "without a response"
    return "switched to another protocol" if status == 101 else "statuses that are none"


def replayed_protocol(text: str, scheme: str) -> HttpProtocol:
    """Return ``h2`` for HTTP/2 and HTTP/3; over plain HTTP no browser speaks either."""
    return "h2" if scheme == "https" and text.strip().lower().startswith(_H2) else "http/1.1"
