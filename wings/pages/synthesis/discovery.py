"""Discovery of objects by the browser: which bytes name it, and what makes them name it.

The rules are listed in wings/pages/docs/tables.md under "Discovery".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from testbed.base.errors import ConfigurationError
from wings.pages.table import DOCUMENT_TYPES, REDIRECTS, ResourceRow

Role = Literal["document", "style", "script", "data", "image"]

UNTYPED_SCRIPT_BYTES = 1000
# Browsers carry a list of host names that they never ask over plain HTTP (HSTS preloading), and
# most recorded hosts are on it today.  Names below .test (RFC 6761) never are.  One common
# registrable domain keeps all frames in one process and one connection pool, as in 2013.
HOST_SUFFIX = ".p.test"
_SCRIPTS = frozenset(
    {"application/javascript", "application/x-javascript", "text/javascript", "text/ecmascript"}
)
# What opaque response blocking cuts short when it is asked for across origins without CORS.
_DATA = frozenset({
    *("application/json", "text/json", "text/csv", "text/vtt", "text/event-stream"),
    *("application/pdf", "application/zip", "application/gzip", "application/x-gzip"),
    *("application/x-protobuf", "application/wasm", "application/dash+xml"),
    *("application/rss+xml", "application/atom+xml", "multipart/mixed"),
})  # fmt: skip
_EXTENSIONS = {
    "text/html": "html", "application/xhtml+xml": "html", "text/css": "css",
    "application/json": "json", "image/png": "png", "image/jpeg": "jpg", "image/gif": "gif",
    "image/svg+xml": "svg", "text/plain": "txt", "application/x-shockwave-flash": "swf",
    **dict.fromkeys(_SCRIPTS, "js"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RowReference:
    """How one row is found.

    ``carrier`` is the row whose bytes name it.  ``after``, if not ``None``, is the row whose
    element must have loaded (or failed) first.  ``document`` is the HTML row that the element
    belongs to.
    """

    row: ResourceRow
    carrier: str
    after: str | None
    document: str


class Discovery:
    """The discovery of every row of a page, given the rows that must carry nothing (``bare``)."""

    def __init__(self, rows: Sequence[ResourceRow], bare: Iterable[str] = ()) -> None:
        self.rows = rows
        self.by_id = {row.id: row for row in rows}
        self._bare = frozenset(bare)
        self._target = {row.parent or "": row for row in rows if row.how == "redirect"}
        self.root = self._chain_end(rows[0])
        if self.role(self.root) != "document":
            what = f"(status {self.root.status}, from {self.root.host})"
            raise ConfigurationError(
                [f"row {self.root.id}: the page itself is not text/html but "
                 f"{self.root.mime or 'of no known type'} {what}; where there is a document, begin "
                 "with it: import the file with --url and the document's address"]
            )  # fmt: skip
        self._found: dict[str, RowReference] = {}

    def role(self, row: ResourceRow) -> Role:
        """Return what the browser takes the row for; a redirect is what its chain ends in."""
        return _own_role(self._chain_end(row))

    def url(self, row: ResourceRow) -> str:
        """Return the URL that the row is served at."""
        name = f"{row.id}.{_EXTENSIONS.get(row.mime, 'bin')}"
        return f"{row.scheme}://{row.host}{HOST_SUFFIX}/{name}"

    def written_url(self, reference: RowReference) -> str:
        """Return the URL as bytes name it: without the scheme where the text around has the same.

        Style sheets are read with their own scheme, scripts with their document's.
        """
        carrier = self.by_id[reference.carrier]
        base = carrier if _own_role(carrier) == "style" else self.by_id[reference.document]
        url = self.url(reference.row)
        same = base.scheme == reference.row.scheme
        return url.removeprefix(f"{base.scheme}:") if same else url

    def is_bare(self, row: ResourceRow) -> bool:
        """Return whether the row's body names nothing at all."""
        return row.id in self._bare

    def depth(self, row: ResourceRow) -> int:
        """Return how many recorded steps the row is from the root."""
        steps = 0
        while row.parent is not None:
            row = self.by_id[row.parent]
            steps += 1
        return steps

    @cached_property
    def references(self) -> tuple[RowReference, ...]:
        """Every row that an element or a style rule asks for, in table order."""
        return tuple(
            self.find(row) for row in self.rows if row.how != "redirect" and row.parent is not None
        )

    def find(self, row: ResourceRow) -> RowReference:
        """Return how a row is found that is neither the root nor a redirect's target."""
        if row.id not in self._found:
            self._found[row.id] = self._find(row)
        return self._found[row.id]

    def document_of(self, row: ResourceRow) -> str:
        """Return the HTML row in which this row's content acts: itself, or the one around it."""
        if _own_role(row) == "document" and not self.is_bare(row):
            return row.id
        head = self._chain_head(row)
        return self.root.id if head.parent is None else self.find(head).document

    def redirect_target(self, row: ResourceRow) -> ResourceRow | None:
        """Return the row that this one redirects to."""
        return self._target.get(row.id)

    def carrier_url(self, row: ResourceRow) -> str | None:
        """Return the URL of the object that names the row; ``None`` for the root."""
        if row.parent is None:
            return None
        carrier = row.parent if row.how == "redirect" else self.find(row).carrier
        return self.url(self.by_id[carrier])

    @cached_property
    def carried(self) -> dict[str, list[RowReference]]:
        """What each row's bytes ask for at once, by its id."""
        return _grouped((ref.carrier, ref) for ref in self.references if ref.after is None)

    @cached_property
    def later(self) -> dict[str, list[RowReference]]:
        """What is asked for when a row's element has loaded, by its id."""
        return _grouped((ref.after, ref) for ref in self.references if ref.after is not None)

    @cached_property
    def within(self) -> dict[str, list[RowReference]]:
        """What elements of a document ask for, by its id."""
        return _grouped((ref.document, ref) for ref in self.references)

    def _find(self, row: ResourceRow) -> RowReference:
        parent = self.by_id[row.parent or self.root.id]
        if self._can_carry(parent, row):
            return RowReference(row, parent.id, None, self.document_of(parent))
        head = self._chain_head(parent)
        while head.parent is not None:
            reference = self.find(head)
            if _own_role(self.by_id[reference.carrier]) != "style":
                return RowReference(row, reference.carrier, head.id, reference.document)
            # What a style rule asks for fires no event; its style sheet does.
            head = self._chain_head(self.by_id[reference.carrier])
        return RowReference(row, self.root.id, None, self.root.id)

    def _can_carry(self, parent: ResourceRow, row: ResourceRow) -> bool:
        if parent.status != 200 or self.is_bare(parent):
            return False
        role = _own_role(parent)
        if role == "style":
            return self.role(row) in ("image", "style")
        return role in ("document", "script")

    def _chain_head(self, row: ResourceRow) -> ResourceRow:
        while row.how == "redirect" and row.parent is not None:
            row = self.by_id[row.parent]
        return row

    def _chain_end(self, row: ResourceRow) -> ResourceRow:
        while row.status in REDIRECTS:
            row = self._target[row.id]
        return row


def _grouped(pairs: Iterable[tuple[str, RowReference]]) -> dict[str, list[RowReference]]:
    groups: defaultdict[str, list[RowReference]] = defaultdict(list)
    for key, reference in pairs:
        groups[key].append(reference)
    return groups


def _own_role(row: ResourceRow) -> Role:
    if row.status == 204:
        return "image"
    if row.mime in DOCUMENT_TYPES:
        return "document"
    if row.mime == "text/css":
        return "style"
    if row.mime in _DATA or row.mime.endswith(("+json", "/xml")):
        return "data"
    if row.mime.startswith("text/") or row.mime in _SCRIPTS:
        return "script"
    if not row.mime and (row.body_bytes or 0) >= UNTYPED_SCRIPT_BYTES:
        return "script"
    return "image"
