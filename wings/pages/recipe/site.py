"""Sites of recipes: a package's files spread over several hosts, as a web server answers them.

Starting at the index document, every file that documents and style sheets load is found, and the
reference to it becomes ``//host/path``.  References out of the package are cut: nothing that a
recipe makes may reach out.
"""

from __future__ import annotations

import posixpath
import zlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from urllib.parse import quote, unquote_to_bytes, urlsplit

from testbed.base.errors import ConfigurationError
from wings.pages.exchange import PageExchange, Recording
from wings.pages.recipe.description import Recipe
from wings.pages.recipe.references import CHANGED, LOSSLESS, Change

_MIMES = {
    "css": "text/css", "htm": "text/html", "html": "text/html", "txt": "text/plain",
    "js": "application/javascript", "mjs": "application/javascript",
    "json": "application/json", "map": "application/json", "xml": "application/xml",
    "gif": "image/gif", "ico": "image/x-icon", "jpeg": "image/jpeg", "jpg": "image/jpeg",
    "png": "image/png", "svg": "image/svg+xml", "webp": "image/webp",
    "mp4": "video/mp4", "webm": "video/webm",
    "eot": "application/vnd.ms-fontobject", "otf": "font/otf", "ttf": "font/ttf",
    "woff": "font/woff", "woff2": "font/woff2",
}  # fmt: skip
"""Media types by the name's ending, the same on every machine."""
UNKNOWN = "application/octet-stream"
_TEXT = {"application/javascript", "application/json", "application/xml", "image/svg+xml"}
_SAFE = "/!$&'()*+,;=:@~"
GZIP_LEVEL = 6  # nginx's and Apache's usual one, and that of the measured sizes
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_CACHED = "public, max-age=604800"


def mime_of(path: str) -> str:
    """Return the media type that a server would give the file."""
    return _MIMES.get(path.rpartition(".")[2].lower(), UNKNOWN)


def is_text(mime: str) -> bool:
    """Return whether a server would compress it."""
    return mime.startswith("text/") or mime in _TEXT


@dataclass(frozen=True, slots=True)
class SiteFile:
    """One thing that can be asked for: its URL without the scheme (``//host/path``), and bytes."""

    url: str
    path: str
    data: bytes

    @property
    def mime(self) -> str:
        """Media type, from the name's ending."""
        return mime_of(self.path)


@dataclass(frozen=True, slots=True)
class Split:
    """A split page: its files, the index document first, and a sentence for each cut reference."""

    files: tuple[SiteFile, ...]
    notes: tuple[str, ...]


def split(recipe: Recipe, package: Mapping[str, bytes]) -> Split:
    """Split the files of ``package`` as ``recipe`` says.

    Raises:
        ConfigurationError: the recipe does not fit the package; every problem is named.
    """
    package = _edited(recipe, package)
    work = _Work(recipe, package)
    work.reach(recipe.index, "")
    for path in recipe.also:
        if path not in package:
            work.problems.append(f"recipe.also: the package has no file {path!r}")
        else:
            work.reach(path, "", host=recipe.main)
    while work.waiting:
        path = work.waiting.popleft()
        work.contents[path] = _changed(path, package[path], work)
    if work.problems:
        raise ConfigurationError([f"{recipe.name}: {problem}" for problem in work.problems])
    files = tuple(SiteFile(url, path, work.contents[path]) for url, path in work.urls.items())
    return Split(files, tuple(dict.fromkeys(work.notes)))


@dataclass(slots=True)
class _Work:
    """What is known so far; ``urls`` maps each URL to its file, in the order of discovery."""

    recipe: Recipe
    package: Mapping[str, bytes]
    urls: dict[str, str] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    waiting: deque[str] = field(default_factory=deque)
    seen: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def reach(self, path: str, query: str, host: str | None = None) -> str:
        """Return the URL of a file, without its scheme; ``query`` is empty or begins with ``?``."""
        if host is None and path != self.recipe.index:
            rules = (rule.host for rule in self.recipe.hosts if fnmatchcase(path, rule.match))
            host = next(rules, None)
        url = f"//{host or self.recipe.main}/{quote(path, safe=_SAFE)}{query}"
        self.urls.setdefault(url, path)
        if path not in self.seen:
            self.seen.add(path)
            self.waiting.append(path)
        return url

    def change(self, base: str) -> Change:
        """Return what becomes of a URL in the file ``base``."""

        def changed(url: str) -> str | None:
            try:
                parts = urlsplit(url)
            except ValueError:
                self.notes.append(f"{base}: {url!r} is not a URL; cut")
                return None
            if parts.netloc or parts.scheme in ("http", "https", "ftp", "file"):
                self.notes.append(f"{base}: {url} is outside; cut")
                return None
            if parts.scheme or not parts.path:
                return url
            path = _resolve(base, parts.path)
            if path not in self.package:
                self.notes.append(f"{base}: {url} is not in the package; cut")
                return None
            before, mark, fragment = url.partition("#")
            query = before[before.find("?") :] if "?" in before else ""
            return self.reach(path, query) + mark + fragment

        return changed


def _resolve(base: str, path: str) -> str:
    """Return the file of the package that ``path`` means in ``base``; ``..`` stops at the root."""
    plain = unquote_to_bytes(path.encode(LOSSLESS, "replace")).decode(errors="replace")
    joined = posixpath.join("/", posixpath.dirname(base), plain)
    return posixpath.normpath(joined).lstrip("/")


def _changed(path: str, data: bytes, work: _Work) -> bytes:
    change = CHANGED.get(mime_of(path))
    if change is None:
        return data
    try:
        return change(data.decode(LOSSLESS), work.change(path)).encode(LOSSLESS)
    except ValueError as error:
        work.problems.append(f"{path}: {error}")
        return data


def _edited(recipe: Recipe, package: Mapping[str, bytes]) -> Mapping[str, bytes]:
    problems = []
    edited = dict(package)
    if recipe.index not in edited:
        problems.append(f"recipe.index: the package has no file {recipe.index!r}")
    for edit in recipe.edits:
        occurrences = edited.get(edit.file, b"").count(edit.old.encode())
        if occurrences != 1:
            held = f"{edit.file} holds {edit.old!r} {occurrences} times"
            problems.append(f"recipe.edits: {held}, expected once")
            continue
        edited[edit.file] = edited[edit.file].replace(edit.old.encode(), edit.new.encode())
    if problems:
        raise ConfigurationError([f"{recipe.name}: {problem}" for problem in problems])
    return edited


def make_site(recipe: Recipe, pages: Split, source: str) -> Recording:
    """Return every file that the page may ask for, as exchanges; the index first."""
    scheme, protocol = recipe.scheme, recipe.http
    root = f"{scheme}:{pages.files[0].url}"
    exchanges = []
    for file in pages.files:
        data, encoding = _compressed(file)
        url = f"{scheme}:{file.url}"
        exchanges.append(PageExchange(
            url=url, status=200, protocol=protocol, headers=_headers(recipe, file, encoding),
            body=data, body_size=len(data), decoded_size=len(file.data), mime=file.mime,
            initiator=None if url == root else root, how="root" if url == root else "other",
        ))  # fmt: skip
    return Recording(title=recipe.title, url=root, recorded=recipe.recorded, source=source,
                     exchanges=tuple(exchanges), notes=pages.notes)  # fmt: skip


def _compressed(file: SiteFile) -> tuple[bytes, str]:
    """Return the body as a server sends it, and its content coding (empty for none)."""
    if not is_text(file.mime):
        return file.data, ""
    compressor = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    data = compressor.compress(file.data) + compressor.flush()
    return (data, "gzip") if len(data) < len(file.data) else (file.data, "")


def _headers(recipe: Recipe, file: SiteFile, encoding: str) -> tuple[tuple[str, str], ...]:
    headers = [("Content-Type", file.mime)]
    if encoding:
        headers.append(("Content-Encoding", encoding))
    if is_text(file.mime):
        headers.append(("Vary", "Accept-Encoding"))
    headers.append(("Cache-Control", _CACHED))
    if not file.url.startswith(f"//{recipe.main}/"):
        # Fonts and modules of another origin need leave; static hosts give it for everything.
        headers.append(("Access-Control-Allow-Origin", "*"))
    return tuple(headers)
