"""Style sheets that import others and use images as backgrounds."""

from __future__ import annotations

from testbed.pages.synthesis.discovery import Discovery
from testbed.pages.synthesis.text import Fill, Template
from testbed.pages.table.resources import Row


def style_class(row: Row) -> str:
    """The class of the element that uses the row as its background."""
    return f"r{row.id}"


def stylesheet_template(page: Discovery, row: Row) -> Template:
    """The style sheet of a row: imports (first, as CSS asks), rules, then filler."""
    imports, rules = [], []
    for reference in page.carried_by(row):
        url = page.written_url(reference)
        if page.role(reference.row) == "style":
            imports.append(f'@import "{url}";')
        else:
            rules.append(f".{style_class(reference.row)}{{background:url({url})}}")
    return ["".join(imports + rules).encode(), Fill()]
