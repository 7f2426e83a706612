"""Reader of built pages: which objects a page has, and what the server answers for each.

The archive is a HAR 1.2 file (W3C Web Performance, HTTP Archive format) with a few fields of our
own, whose names begin with an underscore as HAR asks, beside bodies named by their SHA-256.
Standard library only and few imports, because guests run this.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Any

from testbed.archive.failures import SERVED, FailureKind, kind_of
from testbed.archive.posted import MatchRule, Posted, read_posted, read_rules
from testbed.base.errors import ConfigurationError
from testbed.model.device import BrowserDevice, read_device

HAR_NAME = "page.har"
FACTS_NAME = "page.toml"
TLS_FOLDER = "tls"
DEFAULT_PORTS = {"http": 80, "https": 443}
NOT_REPLAYED = frozenset({
    # nginx's own, one connection's (RFC 9110 section 7.6.1), or about another address or load.
    *("server", "date", "content-length", "connection", "keep-alive", "proxy-connection"),
    *("transfer-encoding", "trailer", "upgrade", "alt-svc", "nel", "report-to"),
    *("reporting-endpoints", "accept-ranges", "public-key-pins", "strict-transport-security"),
})  # fmt: skip
"""Response headers (lower case) that an archive may hold but the server does not send."""
THIRD_PARTIES = "third-parties"
LARGEST_HAR_BYTES = 256 << 20
LARGEST_NUMBER = 1 << 31  # of bytes, or milliseconds
# The archive may be a stranger's: these are all the names that become files or configuration.
_BODY = re.compile(r"bodies/[0-9a-f]{64}")
_HOST = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,250}")  # a file name with ".pem"
_PORT = re.compile(r"[0-9]{1,5}")
_KINDS: dict[type | UnionType, tuple[str, ...]] = {
    str: ("id", "url", "method", "protocol", "mime", "how"),
    int: ("status", "body_size", "request_body_size", "depth", "after_load"),
    int | None: ("headers_size", "decoded_size"),
    float | int | None: ("gap_ms", "start_ms", "dur_ms", "wait_ms"),
    str | None: ("parent", "carrier", "location", "failure"),
}
"""What JSON must hold for each field of an entry; ``split_url`` sees to the others."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded exchange.

    ``headers`` are the response headers that are replayed: all but ``NOT_REPLAYED``.
    ``headers_size`` counts the response head in HTTP/1.1 form from the status line to the blank
    line (``None``: unknown, as for HTTP/2), ``body_size`` the body as transferred (still
    compressed), ``decoded_size`` the body as the browser sees it (``None``: unknown), and
    ``request_body_size`` the request's body; all in bytes.  ``body`` is ``None`` when the body is
    empty.  ``parent`` is the URL of the recorded parent, ``carrier`` the URL of the object whose
    bytes really hold the reference (the parent unless it was too small to hold one).  ``gap_ms``
    is the recorded time from the end of the parent to the start of this request; negative means
    that the parent was still arriving.  ``after_load``: requested after the load event, so that
    a load need not ask for it.  ``path`` includes the query.  ``made_up``: the body was not
    recorded, and one of its size stands in for it.  ``failure`` is how the request ended in the
    browser, if it failed there (``failures``); the status is 0 where no response came.
    ``wait_ms``: for how long its first byte was waited for; ``None``: unknown.  ``range`` is what
    part the request asked for, or nothing, and ``posted`` says what its body was (``None``: it had
    none, or nobody knows).  ``pieces`` are those of a body that came bit by bit: how many ms behind
    the one before, and how many bytes; ``open``: it had no end.
    """

    id: str
    url: str
    scheme: str
    host: str
    port: int
    path: str
    method: str
    status: int
    protocol: str
    headers: tuple[tuple[str, str], ...]
    headers_size: int | None
    body_size: int
    decoded_size: int | None
    request_body_size: int
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
    after_load: bool
    made_up: bool = False
    failure: str | None = None
    wait_ms: float | None = None
    range: str = ""
    posted: Posted | None = None
    pieces: tuple[tuple[float, int], ...] = ()
    open: bool = False

    @property
    def fails(self) -> FailureKind | None:
        """The kind of its failure; ``None`` if it did not fail."""
        return None if self.failure is None else kind_of(self.failure)

    @property
    def is_answered(self) -> bool:
        """Whether a response was recorded, whatever became of it."""
        return self.status != 0 or self.failure is None

    @property
    def transfer_bytes(self) -> int:
        """Response bytes above TCP: head, as far as it is known, and body."""
        return (self.headers_size or 0) + self.body_size


@dataclass(frozen=True, slots=True)
class ServedOrigin:
    """Scheme, host and port (RFC 6454), and whether any response was recorded over HTTP/2."""

    scheme: str
    host: str
    port: int
    h2: bool


@dataclass(frozen=True, slots=True)
class Archive:
    """A built page; ``entries`` are in recorded order, ``digest`` is the SHA-256 of the HAR file.

    The HAR names every body by its hash, so the digest covers the bodies as well; where the page
    has ``rules`` of what does not count in a request, it covers those too.  ``failures`` are the
    requests that got no response.  ``device`` is the one that the page was recorded on; ``None``:
    the browser as it is.
    """

    name: str
    title: str
    root_url: str
    entries: tuple[Entry, ...]
    digest: str
    pinned: bool = False
    failures: tuple[Entry, ...] = ()
    device: BrowserDevice | None = None
    rules: tuple[MatchRule, ...] = ()

    @property
    def recorded(self) -> tuple[Entry, ...]:
        """All requests, whether they got a response or not."""
        return (*self.entries, *self.failures)

    @property
    def served(self) -> tuple[Entry, ...]:
        """What a server answers: the responses, then the failures that it makes again itself.

        Where an end serves others, its server cuts what no connection led to.
        """
        ends = {(entry.host, entry.port) for entry in self.entries}
        made = (each for each in self.failures if each.fails in SERVED
                or (each.fails != "kept" and (each.host, each.port) in ends))  # fmt: skip
        return (*self.entries, *made)

    @property
    def origins(self) -> tuple[ServedOrigin, ...]:
        """Every origin of the page once, in the order of first use."""
        h2_by_origin: dict[tuple[str, str, int], bool] = {}
        for entry in self.served:
            key = (entry.scheme, entry.host, entry.port)
            h2_by_origin[key] = h2_by_origin.get(key, False) or entry.protocol == "h2"
        return tuple(ServedOrigin(*key, h2) for key, h2 in h2_by_origin.items())

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host of the page once, in the order of first use."""
        return tuple(dict.fromkeys(entry.host for entry in self.served))

    @property
    def dead_ends(self) -> frozenset[tuple[str, int]]:
        """Hosts and ports to which no connection led when the page was recorded."""
        served = {(each.host, each.port) for each in self.served}
        failing = (each for each in self.failures if each.fails in ("unresolved", "refused"))
        return frozenset((each.host, each.port) for each in failing) - served

    @property
    def unserved(self) -> tuple[str, ...]:
        """Hosts with an address at which nobody listens."""
        refusing = (each.host for each in self.failures if each.fails == "refused")
        return tuple(host for host in dict.fromkeys(refusing) if host not in self.hosts)

    def list_blocked(self, words: str) -> tuple[str, ...]:
        """Return the page's hosts that are meant by ``words``, a value of the knob ``block``."""
        own = self.entries[0].host.split(".")[-2:]
        return tuple(
            host
            for host in self.hosts
            if any(f".{host}".endswith(f".{word}") for word in words.split())
            or (words == THIRD_PARTIES and host.split(".")[-2:] != own)
        )

    def without(self, hosts: Collection[str]) -> Archive:
        """Return the page of which nothing is due on ``hosts``, or that those led to."""
        if not hosts:
            return self
        gone: set[str] = set()
        kept = []
        for entry in self.entries:
            if entry.host in hosts or entry.parent in gone:
                gone.add(entry.url)
                entry = replace(entry, after_load=True)
            kept.append(entry)
        return replace(self, entries=tuple(kept))

    @property
    def tls_hosts(self) -> tuple[str, ...]:
        """Every host that was asked over https once, in the order of first use."""
        return tuple(dict.fromkeys(e.host for e in self.served if e.scheme == "https"))


def read_archive(folder: Path) -> Archive:
    """Read the built page in ``folder``.

    Raises:
        ConfigurationError: there is no built page, or it is not one of ours.
    """
    path = folder / HAR_NAME
    try:
        if path.stat().st_size > LARGEST_HAR_BYTES:
            raise OSError(errno.EFBIG, f"larger than {LARGEST_HAR_BYTES} bytes")
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            [f"{path}: {error.strerror}; build the page with `./run.sh pages build NAME`"]
        ) from None
    try:
        log = json.loads(raw)["log"]
        page = log["pages"][0]
        made_up = page.get("_made_up") is True  # as a whole, from a table that was imported
        recorded = [_entry(folder, item, made_up) for item in log["entries"]]
        entries = tuple(entry for entry in recorded if entry.is_answered)
        if not entries:
            raise ValueError("no entries")
        device, rules = page.get("_device"), _read_rules(folder / FACTS_NAME)
        covered = raw + (repr(rules).encode() if rules else b"")
        return Archive(name=str(page["id"]), title=str(page["title"]), root_url=entries[0].url,
                       entries=entries, digest=hashlib.sha256(covered).hexdigest(),
                       pinned=page.get("_pinned", False) is True, rules=rules,
                       failures=tuple(each for each in recorded if not each.is_answered),
                       device=None if device is None else read_device(device))  # fmt: skip
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            [f"{path}: not a page archive ({error!r}); record, import or build the page again"]
        ) from None


def _read_rules(facts: Path) -> tuple[MatchRule, ...]:
    """Return the page's own rules, which are in its ``page.toml``; most have none, and no file.

    Raises:
        ValueError: they are wrong.
    """
    text = facts.read_text("utf-8") if facts.is_file() else ""
    if "match" not in text:
        return ()
    import tomllib  # few pages need it

    return read_rules(tomllib.loads(text).get("match", []))


def tls_of(page: Path) -> Path | None:
    """Return the built page's certificates; a page without an https origin has none."""
    folder = page / TLS_FOLDER
    return folder if folder.is_dir() else None


def split_url(url: str) -> tuple[str, str, int, str]:
    """Return scheme, host, port, and path with query of an absolute http or https URL.

    Raises:
        ValueError: it is none.
    """
    scheme, _, rest = url.partition("://")
    if scheme not in DEFAULT_PORTS:
        raise ValueError(f"{url}: only http and https are served")
    end = min((rest.find(mark) for mark in "/?" if mark in rest), default=len(rest))
    authority, path = rest[:end], rest[end:]
    if authority.startswith("["):
        raise ValueError(f"{url}: {authority} is an address; the lab serves host names")
    host, colon, port = authority.partition(":")
    if not _HOST.fullmatch(host):
        raise ValueError(f"{url}: {host!r} is no host name")
    if colon and not (_PORT.fullmatch(port) and 0 < int(port) < 65536):
        raise ValueError(f"{url}: {port!r} is no port")
    number = int(port) if colon else DEFAULT_PORTS[scheme]
    return scheme, host, number, path if path.startswith("/") else f"/{path}"


def _entry(folder: Path, item: dict[str, Any], made_up: bool) -> Entry:
    request, response = item["request"], item["response"]
    scheme, host, port, path = split_url(request["url"])
    entry = Entry(
        id=item["_id"], url=request["url"], scheme=scheme, host=host, port=port, path=path,
        method=request["method"], status=response["status"],
        protocol=response["httpVersion"].lower(),
        headers=tuple((header["name"], header["value"]) for header in response["headers"]
                      if header["name"].lower() not in NOT_REPLAYED),
        headers_size=_known(response["headersSize"]), body_size=response["bodySize"],
        decoded_size=_known(response["content"]["size"]),
        request_body_size=max(request["bodySize"], 0), mime=response["content"]["mimeType"],
        body=None if item["_body"] is None else folder / _body_name(item["_body"]),
        location=response["redirectURL"] or None, parent=item["_parent"], carrier=item["_carrier"],
        how=item["_how"], gap_ms=item["_gap_ms"], start_ms=item["_start_ms"],
        dur_ms=item["_dur_ms"], depth=item["_depth"], after_load=item["_after_load"],
        made_up=item["_body"] is not None and (made_up or item.get("_made_up") is True),
        failure=item.get("_failure"),
        wait_ms=item.get("_wait_ms"),
        range=_range(request.get("headers", [])), posted=read_posted(item.get("_posted")),
        pieces=tuple((float(ms), int(size)) for ms, size in item.get("_pieces", ())),
        open=item.get("_open") is True,
    )  # fmt: skip
    _check(entry)
    return entry


def _range(headers: list[dict[str, str]]) -> str:
    return next((str(h["value"]) for h in headers if h["name"].lower() == "range"), "")


def _check(entry: Entry) -> None:
    for kind, names in _KINDS.items():
        for name in names:
            if not isinstance(getattr(entry, name), kind):
                raise TypeError(f"{entry.url}: {name} is {getattr(entry, name)!r}")
    for name, value in entry.headers:
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"{entry.url}: a header is {name!r}: {value!r}")
    sizes = [entry.status, entry.body_size, entry.request_body_size, entry.depth]
    sizes += [size for _, size in entry.pieces]
    sizes += [entry.headers_size or 0, entry.decoded_size or 0]
    if entry.pieces and sum(size for _, size in entry.pieces) != entry.body_size:
        raise ValueError(f"{entry.url}: the pieces are not the body")
    times = [entry.gap_ms or 0, entry.start_ms or 0, entry.dur_ms or 0, entry.wait_ms or 0]
    times += [ms for ms, _ in entry.pieces]
    if min(sizes) < 0 or not all(abs(number) < LARGEST_NUMBER for number in [*sizes, *times]):
        raise ValueError(f"{entry.url}: a number below 0 or beyond {LARGEST_NUMBER}")


def _body_name(name: str) -> str:
    if not _BODY.fullmatch(name):
        raise ValueError(f"{name!r} is no body of an archive")
    return name


def _known(size: int) -> int | None:
    """Return ``size``, or ``None`` for HAR's -1, which is not known."""
    return None if size < 0 else size
