"""Changes the URLs that a document loads, and nothing else of it (WHATWG HTML, section 4).

Attributes are replaced where they stand, so that every other byte stays as it was.  What a person
follows (links, forms) and what a script builds is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape, unescape
from html.parser import HTMLParser
from itertools import accumulate

from testbed.pages.recipe.css import Change, change_css

_LOADING = {
    "audio": ("src",),
    "body": ("background",),
    "embed": ("src",),
    "frame": ("src",),
    "iframe": ("src",),
    "image": ("href", "xlink:href"),
    "img": ("src", "srcset"),
    "input": ("src",),
    "link": ("href", "imagesrcset"),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "table": ("background",),
    "td": ("background",),
    "th": ("background",),
    "tr": ("background",),
    "track": ("src",),
    "video": ("src", "poster"),
}
_FOLLOWED = frozenset({
    *("alternate", "author", "bookmark", "canonical", "copyright", "contents", "first", "glossary"),
    *("help", "home", "index", "last", "license", "me", "next", "prev", "search", "start", "up"),
})  # fmt: skip
"""Kinds of ``<link>`` that load nothing, unless the element is a style sheet as well."""

_ATTRIBUTE = re.compile(
    r"""([^\s/>="'][^\s/>=]*)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s>"'][^\s>]*))?""", re.DOTALL
)
_CANDIDATE = re.compile(r"\s*,*\s*(\S*[^\s,])(\s+[^,]*)?(?:,|$)")
OUTSIDE = "data-outside-"
"""The name of an attribute that was cut begins so: an element without it asks for nothing."""


def change_html(text: str, change: Change) -> str:
    """``text`` with every URL that it loads as ``change`` says.

    Raises:
        ValueError: the document has a ``<base>``, which would change what every URL means.
    """
    found = _Finder(text)
    made: list[str] = []
    at = 0
    for start, end, what in found.spans:
        made.append(text[at:start])
        raw = text[start:end]
        made.append(change_css(raw, change) if what == "style" else _tag(what, raw, change))
        at = end
    return "".join(made) + text[at:]


class _Finder(HTMLParser):
    """Where start tags and the contents of ``<style>`` stand: (start, end, "style" or the tag)."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self._lines = (0, *accumulate(len(line) for line in text.split("\n")))
        self._style: int | None = None
        self.spans: list[tuple[int, int, str]] = []
        self.feed(text)
        self.close()

    def _here(self) -> int:
        line, column = self.getpos()
        return self._lines[line - 1] + line - 1 + column

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag that may load."""
        if tag == "base" and any(name == "href" for name, _ in attrs):
            raise ValueError("the document has a <base>; remove it by an edit of the recipe")
        start = self._here()
        end = start + len(self.get_starttag_text() or "")
        if tag in _LOADING or any(name == "style" for name, _ in attrs):
            # "style" is what the contents of <style> are called; the element itself loads nothing.
            self.spans.append((start, end, f"<{tag}"))
        if tag == "style":
            self._style = end

    def handle_endtag(self, tag: str) -> None:
        """Note the contents of a ``<style>`` that ends here."""
        if tag == "style" and self._style is not None:
            self.spans.append((self._style, self._here(), "style"))
            self._style = None


def _tag(what: str, raw: str, change: Change) -> str:
    """A start tag with its loading attributes changed."""
    tag = what.removeprefix("<")
    head = len(what)
    attributes = list(_ATTRIBUTE.finditer(raw, head))
    values = {match[1].lower(): _value(match) for match in reversed(attributes)}
    loading = () if tag == "link" and _is_followed(values.get("rel", "")) else _LOADING.get(tag, ())
    made, at = [raw[:head]], head
    for match in attributes:
        name = match[1].lower()
        made.append(raw[at : match.start()])
        made.append(_attribute(match, name, loading, change))
        at = match.end()
    return "".join(made) + raw[at:]


def _is_followed(rel: str) -> bool:
    words = set(rel.lower().split())
    return "stylesheet" not in words and bool(words & _FOLLOWED)


def _attribute(match: re.Match[str], name: str, loading: tuple[str, ...], change: Change) -> str:
    value = _value(match)
    if match[2] is None or (name != "style" and name not in loading):
        return match.group()
    new: str | None
    if name == "style":
        new = change_css(value, change)
    elif name in ("srcset", "imagesrcset"):
        new = _change_srcset(value, change)
    else:
        # Browsers strip white space around a URL (WHATWG URL, section 4.4).
        new = change(value.strip())
        if new == value.strip():
            return match.group()
    if new == value:
        return match.group()
    return f"{OUTSIDE}{match.group()}" if new is None else f'{match[1]}="{escape(new)}"'


def _value(match: re.Match[str]) -> str:
    raw = match[2] or ""
    return unescape(raw[1:-1] if raw[:1] in ("'", '"') else raw)


def _change_srcset(value: str, change: Change) -> str | None:
    """A list of candidates, each a URL and how wide or dense it is; ``None`` when all are cut."""
    changed = [(change(url), url, how) for url, how in _candidates(value)]
    if all(new == url for new, url, _ in changed):
        return value
    return ", ".join(f"{new}{how}" for new, _, how in changed if new is not None) or None


def _candidates(value: str) -> Iterator[tuple[str, str]]:
    for match in _CANDIDATE.finditer(value):
        yield match[1], (match[2] or "").rstrip()
