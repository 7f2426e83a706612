"""Bodies for every row of a resource table, of exactly the recorded sizes.

The rules for sizes are listed in wings/pages/docs/tables.md under "Sizes".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from testbed.base.errors import ConfigurationError
from wings.pages.synthesis.discovery import Discovery
from wings.pages.synthesis.filler import (
    BLOCK,
    HTML,
    JSON,
    SVG,
    Body,
    Fill,
    Syntax,
    Template,
    TooSmallError,
    filler,
    fixed_bytes,
    least_gzipped,
    write_gzipped,
    write_identity,
)
from wings.pages.synthesis.markup import document_template, script_template, stylesheet_template
from wings.pages.synthesis.media import make_image
from wings.pages.table import MIN_HEADER_BYTES, REDIRECTS, ResourceRow

_MOST_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Synthesis:
    """A whole page: how its objects are found, and their bodies in the order of the rows."""

    discovery: Discovery
    bodies: tuple[Body, ...]


def synthesise(name: str, title: str, rows: Sequence[ResourceRow]) -> Synthesis:
    """Make every body of a page; the same input gives the same bytes on every machine.

    Raises:
        ConfigurationError: the page's own document is too small for what it must ask for.
    """
    page = discover(name, title, rows)
    return Synthesis(page, tuple(_body(page, row, f"{name}/{row.id}", title) for row in rows))


def discover(name: str, title: str, rows: Sequence[ResourceRow]) -> Discovery:
    """Return how the browser finds each row, such that each body holds what it must ask for.

    Raises:
        ConfigurationError: the page's own document is too small for what it must ask for.
    """
    bare: set[str] = set()
    for _ in range(_MOST_ROUNDS):
        page = Discovery(rows, bare)
        too_small = []
        for row in rows:
            try:
                _check_fit(page, row, title)
            except TooSmallError as error:
                if row is page.root:
                    raise ConfigurationError(
                        [f"{name}: row {row.id}: the page cannot hold its references: {error}"]
                    ) from None
                too_small.append(row.id)
        if not too_small:
            return page
        # Their references move to the element that loads them; see wings/pages/docs/tables.md.
        bare.update(too_small)
    raise ConfigurationError(
        [f"{name}: rows {', '.join(too_small[:5])} are still too small for what they ask for after "
         f"{_MOST_ROUNDS} rounds of moving that to others; make them larger"]
    )  # fmt: skip


def _body(page: Discovery, row: ResourceRow, seed: str, title: str) -> Body:
    if row.status == 204:
        return Body(b"", 0)
    text = _text(page, row, title)
    if text is None:
        size = row.transfer_bytes - row.head_size
        return Body(make_image(row.mime, size, filler(seed, size)) if size else b"", size)
    template, syntax = text
    size, decoded = _fit(row, template, syntax)
    if decoded is None:
        return write_identity(template, syntax, size, seed)
    return write_gzipped(template, syntax, decoded, size, seed)


def _text(page: Discovery, row: ResourceRow, title: str) -> tuple[Template, Syntax] | None:
    """Return the template of a row that is text, ``None`` for binary ones."""
    role = page.role(row)
    if row.status in REDIRECTS or page.is_bare(row):
        is_html = row.mime == "text/html" or row.status in REDIRECTS
        return [Fill()], JSON if role == "data" else HTML if is_html else BLOCK
    if role == "document":
        return document_template(page, row, title), HTML
    if role == "style":
        return stylesheet_template(page, row), BLOCK
    if role == "script":
        return script_template(page, row), BLOCK
    if role == "data":
        return [Fill()], JSON
    if row.mime == "image/svg+xml":
        return SVG, HTML
    return None


def _check_fit(page: Discovery, row: ResourceRow, title: str) -> None:
    """Raise TooSmallError if the row's text cannot hold what it must ask for."""
    text = None if row.status == 204 else _text(page, row, title)
    if text is not None:
        _fit(row, *text)


def _fit(row: ResourceRow, template: Template, syntax: Syntax) -> tuple[int, int | None]:
    """Return the sizes as transferred and decoded (``None``: not coded), near the recorded ones.

    As few bytes are taken from the head as possible.
    """
    head = row.head_size
    recorded = row.transfer_bytes - head
    fixed = fixed_bytes(template)
    most = recorded + max(head - MIN_HEADER_BYTES, 0)
    if recorded and row.body_bytes is not None and row.body_bytes != recorded:
        decoded = max(row.body_bytes, fixed)
        least = max(least_gzipped(template, syntax, decoded), recorded)
        if least <= most:
            return least, decoded
    least = max(fixed, recorded)
    if least > most:
        raise TooSmallError(f"{fixed} bytes of fixed text, {recorded} recorded")
    return least, None
