"""Markup of synthesised pages: documents, scripts and style sheets that ask for their objects."""

from __future__ import annotations

from html import escape

from wings.pages.synthesis.discovery import Discovery, Role, RowReference
from wings.pages.synthesis.filler import Fill, Template
from wings.pages.table import ResourceRow

_MARKUP = {
    "document": '<iframe src="{url}"{then}></iframe>',
    "style": '<link rel="stylesheet" href="{url}"{then}>',
    "script": '<script src="{url}"{then}></script>',
    "data": '<script async crossorigin src="{url}"{then}></script>',
    "image": '<img alt="" src="{url}"{then}>',
}
_DOCTYPE = b"<!doctype html>"
TAGS: dict[Role, str] = {"document": "iframe", "style": "link", "script": "script", "data": "json",
                         "image": "img"}  # fmt: skip
# ff(tag, url, then): insert an element; afterwards call `then`.  A late style sheet gets its style
# computed at once, else its images would be asked for after the load event.  JSON is fetched as a
# cross-origin script (a bare array runs and does nothing): unlike fetch(), that holds back the
# load event, and the CORS mode keeps opaque response blocking away.
LOADER = (
    'function ff(t,u,d){var l=t=="link",j=t=="json",e=document.createElement(j?"script":t);'
    'if(j)e.crossOrigin="anonymous";if(l)e.rel="stylesheet";'
    "e.onload=e.onerror=function(){l&&document.body.offsetWidth;d&&d()};"
    'e[l?"href":"src"]=u;document.body.appendChild(e)}'
)


def document_template(page: Discovery, row: ResourceRow, title: str) -> Template:
    """Return the document of a row: what it asks for, with filler between the elements."""
    hooks = _background_hooks(page, row)
    references = page.carried[row.id]
    script = _inline_script(page, row, references)
    if not (references or hooks or script) and _is_tiny(row):
        return [Fill()]
    parts: list[bytes | Fill] = [_DOCTYPE]
    if row is page.root:
        # An empty icon: the browser must not ask for /favicon.ico.
        head = f'<html><head><meta charset="utf-8"><title>{escape(title)}</title>'
        parts.append(f'{head}<link rel="icon" href="data:,">'.encode())
    if script:
        parts.append(f"<script>{script}</script>".encode())
    if references or hooks or script:
        parts.append(b"<body>")
    parts += [f'<i class="{name}"></i>'.encode() for name in hooks]
    reached = 0.0
    for fraction, reference in _placed(page, row, references):
        parts += [Fill(fraction - reached), _element(page, reference)]
        reached = fraction
    parts.append(Fill(1.0 - reached))
    if hooks:
        # Styles are computed before the load event, so that backgrounds count towards it.
        parts.append(b"<script>document.body.offsetWidth</script>")
    return parts


def _is_tiny(row: ResourceRow) -> bool:
    sizes = (row.transfer_bytes - row.head_size, row.body_bytes)
    return any(size is not None and size < len(_DOCTYPE) for size in sizes)


def _placed(
    page: Discovery, row: ResourceRow, references: list[RowReference]
) -> list[tuple[float, RowReference]]:
    """Return each reference with the fraction of the document where it is, in that order."""
    timed = {ref.row.id: _fraction(page, row, ref.row) for ref in references}
    untimed = [ref for ref in references if timed[ref.row.id] is None]
    spread = [ref for ref in untimed if page.role(ref.row) != "style"]
    even = {ref.row.id: (i + 0.5) / len(spread) for i, ref in enumerate(spread)}

    def place(reference: RowReference) -> float:
        fraction = timed[reference.row.id]
        return even.get(reference.row.id, 0.0) if fraction is None else fraction

    return sorted(((place(ref), ref) for ref in references), key=lambda item: item[0])


def _fraction(page: Discovery, document: ResourceRow, row: ResourceRow) -> float | None:
    """Return how much of the parent had arrived, by time, when the row was asked for."""
    if row.parent != document.id:
        return 1.0
    if row.gap_ms is None or not document.dur_ms:
        return None
    return min(max(1.0 + row.gap_ms / document.dur_ms, 0.0), 1.0)


def _element(page: Discovery, reference: RowReference) -> bytes:
    row = reference.row
    url = page.written_url(reference)
    then = f' onload="c{row.id}()" onerror="c{row.id}()"' if page.later[row.id] else ""
    return _MARKUP[page.role(row)].format(url=url, then=then).encode()


def _inline_script(page: Discovery, row: ResourceRow, references: list[RowReference]) -> str:
    """Return the loader, if scripts need it, and what happens after this document's elements."""
    after = ((ref.row.id, calls(page, page.later[ref.row.id])) for ref in references)
    later = "".join(f"function c{name}(){{{then}}}" for name, then in after if then)
    loads = any(ref.after is not None or _in_script(page, ref) for ref in page.within[row.id])
    return (LOADER if loads else "") + later


def _in_script(page: Discovery, reference: RowReference) -> bool:
    return page.role(page.by_id[reference.carrier]) == "script"


def _background_hooks(page: Discovery, row: ResourceRow) -> list[str]:
    """Return classes of the elements that make style rules of this document take effect."""
    images = [ref for ref in page.within[row.id] if page.role(ref.row) == "image"]
    styled = (ref for ref in images if page.role(page.by_id[ref.carrier]) == "style")
    return [style_class(ref.row) for ref in styled]


def call(page: Discovery, reference: RowReference) -> str:
    """Return JavaScript that asks for the reference, and later for what comes after it."""
    row = reference.row
    tag, url = TAGS[page.role(row)], page.written_url(reference)
    then = calls(page, page.later[row.id])
    return f'ff("{tag}","{url}",function(){{{then}}})' if then else f'ff("{tag}","{url}")'


def calls(page: Discovery, references: list[RowReference]) -> str:
    """Return JavaScript that asks for all of them, in order."""
    return ";".join(call(page, reference) for reference in references)


def script_template(page: Discovery, row: ResourceRow) -> Template:
    """Return the script of a row: the requests that it makes, then filler."""
    return [calls(page, page.carried[row.id]).encode(), Fill()]


def style_class(row: ResourceRow) -> str:
    """Return the class of the element that uses the row as its background."""
    return f"r{row.id}"


def stylesheet_template(page: Discovery, row: ResourceRow) -> Template:
    """Return the style sheet of a row: imports (first, as CSS asks), rules, then filler."""
    imports, rules = [], []
    for reference in page.carried[row.id]:
        url = page.written_url(reference)
        if page.role(reference.row) == "style":
            imports.append(f'@import "{url}";')
        else:
            rules.append(f".{style_class(reference.row)}{{background:url({url})}}")
    return ["".join(imports + rules).encode(), Fill()]
