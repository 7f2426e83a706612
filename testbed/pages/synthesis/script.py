"""Scripts that ask for further objects when they run, as loaders and advertisements do."""

from __future__ import annotations

from testbed.pages.synthesis.discovery import Discovery, Reference, Role
from testbed.pages.synthesis.text import Fill, Template
from testbed.pages.table.resources import Row

TAGS: dict[Role, str] = {
    "document": "iframe",
    "style": "link",
    "script": "script",
    "data": "json",
    "image": "img",
}

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


def call(page: Discovery, reference: Reference) -> str:
    """JavaScript that asks for the reference, and later for what comes after it."""
    row = reference.row
    tag, url = TAGS[page.role(row)], page.written_url(reference)
    then = calls(page, page.after(row))
    return f'ff("{tag}","{url}",function(){{{then}}})' if then else f'ff("{tag}","{url}")'


def calls(page: Discovery, references: list[Reference]) -> str:
    """JavaScript that asks for all of them, in order."""
    return ";".join(call(page, reference) for reference in references)


def script_template(page: Discovery, row: Row) -> Template:
    """The script of a row: the requests that it makes, then filler."""
    return [calls(page, page.carried_by(row)).encode(), Fill()]
