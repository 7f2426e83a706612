"""Reads a built page: which objects it has, and what exactly the server answers for each.

The archive is a HAR 1.2 file (W3C Web Performance, HTTP Archive format) with a few fields of our
own, whose names begin with an underscore as HAR asks, beside bodies named by their SHA-256.
Standard library only and few imports, because guests run this.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.errors import ConfigurationError

HAR_NAME = "page.har"


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded exchange.

    ``headers`` are the end-to-end response headers beyond Server, Date, Content-Length and
    Connection.  ``headers_size`` counts the response head from the status line to the blank line,
    ``body_size`` the body as transferred (still compressed), ``decoded_size`` the body as the
    browser sees it; all in bytes.  ``body`` is ``None`` when the body is empty.  ``parent`` is
    the URL of the recorded parent, ``carrier`` the URL of the object whose bytes really hold the
    reference (the parent unless it was too small to hold one).  ``gap_ms`` is the recorded time
    from the end of the parent to the start of this request; negative means that the parent was
    still arriving.
    """

    id: str
    url: str
    host: str
    path: str
    method: str
    status: int
    headers: tuple[tuple[str, str], ...]
    headers_size: int
    body_size: int
    decoded_size: int
    mime: str
    body: Path | None
    location: str | None
    parent: str | None
    carrier: str | None
    how: str
    gap_ms: float | None
    start_ms: float | None
    dur_ms: float | None
    depth: int

    @property
    def transfer_bytes(self) -> int:
        """Response bytes on the wire above TCP: head and body."""
        return self.headers_size + self.body_size


@dataclass(frozen=True, slots=True)
class Archive:
    """A built page; ``entries`` are in recorded order, ``digest`` is the SHA-256 of the HAR file.

    The HAR names every body by its hash, so the digest covers the bodies as well.
    """

    name: str
    title: str
    root_url: str
    entries: tuple[Entry, ...]
    digest: str

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host of the page once, in the order of first use."""
        return tuple(dict.fromkeys(entry.host for entry in self.entries))


def read_archive(folder: Path) -> Archive:
    """Read the built page in ``folder``.

    Raises:
        ConfigurationError: there is no built page, or it is not one of ours.
    """
    path = folder / HAR_NAME
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            [f"{path}: {error.strerror}; build the page with `./run.sh pages build NAME`"]
        ) from None
    try:
        log = json.loads(raw)["log"]
        page = log["pages"][0]
        entries = tuple(_entry(folder, item) for item in log["entries"])
        if not entries:
            raise ValueError("no entries")
        return Archive(
            name=page["id"],
            title=page["title"],
            root_url=entries[0].url,
            entries=entries,
            digest=hashlib.sha256(raw).hexdigest(),
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ConfigurationError(
            [f"{path}: not a page archive ({error!r}); build it again, `./run.sh pages build NAME`"]
        ) from None


def _entry(folder: Path, item: dict[str, Any]) -> Entry:
    request, response = item["request"], item["response"]
    url: str = request["url"]
    scheme, rest = url.split("://", 1)
    if scheme != "http":
        raise ValueError(f"{url}: only http is served")
    host, slash, path = rest.partition("/")
    return Entry(
        id=item["_id"],
        url=url,
        host=host,
        path=slash + path,
        method=request["method"],
        status=response["status"],
        headers=tuple((header["name"], header["value"]) for header in response["headers"]),
        headers_size=response["headersSize"],
        body_size=response["bodySize"],
        decoded_size=response["content"]["size"],
        mime=response["content"]["mimeType"],
        body=None if item["_body"] is None else folder / item["_body"],
        location=response["redirectURL"] or None,
        parent=item["_parent"],
        carrier=item["_carrier"],
        how=item["_how"],
        gap_ms=item["_gap_ms"],
        start_ms=item["_start_ms"],
        dur_ms=item["_dur_ms"],
        depth=item["_depth"],
    )
