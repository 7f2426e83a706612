"""References of documents and style sheets: changes the URLs that they load, and nothing else.

Sources: WHATWG HTML section 4, CSS Syntax Level 3.  What is not changed keeps its bytes; what a
person follows (links, forms) and what a script builds is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape, unescape
from html.parser import HTMLParser
from itertools import accumulate

Change = Callable[[str], str | None]
"""Says what a URL becomes: itself to leave it as it is, ``None`` to cut it."""

_CSS_STRING = r"\"(?:\\[\s\S]|[^\"\\\n])*\"|'(?:\\[\s\S]|[^'\\\n])*'"
_CSS_BARE = r"(?:\\[0-9a-f]{1,6}\s?|\\[\s\S]|[^\"'()\\\s])*"
_CSS_TOKEN = re.compile(
    rf"""
    (?P<comment> /\*[\s\S]*?(?:\*/|\Z) )
    | (?P<url> url\( \s* (?: (?P<quoted>{_CSS_STRING}) | (?P<bare>{_CSS_BARE}) ) \s* \) )
    | (?P<string> {_CSS_STRING} )
    | (?P<at> @[\w-]+ )
    | (?P<name> (?:\\[\s\S]|[\w-])+ )
    | (?P<end> [;{{}}] )
    | [\s\S]
    """,
    re.VERBOSE | re.IGNORECASE,
)
_CSS_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(\n)|([\s\S]))")
# Neither asks for anything: an empty style sheet, and a picture or font that does not decode.
_CUT_SHEET, _CUT = "data:text/css,", "data:,"
_LOADING = {
    **dict.fromkeys(("audio", "embed", "frame", "iframe", "input", "script", "track"), ("src",)),
    **dict.fromkeys(("body", "table", "td", "th", "tr"), ("background",)),
    **dict.fromkeys(("img", "source"), ("src", "srcset")), "image": ("href", "xlink:href"),
    "link": ("href", "imagesrcset"), "object": ("data",), "video": ("src", "poster"),
}  # fmt: skip
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
# latin-1 gives each byte one character and back, so that what is not changed stays as it was.
LOSSLESS = "latin-1"


def change_css(text: str, change: Change) -> str:
    """Return ``text`` with every URL that it loads as ``change`` says."""
    pieces: list[str] = []
    rule = ""
    for token in _CSS_TOKEN.finditer(text):
        kind, raw = token.lastgroup, token.group()
        if kind == "at":
            rule = raw.lower()
        elif kind == "end":
            rule = ""
        elif rule != "@namespace" and (
            token["url"] is not None or (kind == "string" and rule == "@import")
        ):
            raw = _changed(token, change, imported=rule == "@import")
        pieces.append(raw)
    return "".join(pieces)


def _changed(token: re.Match[str], change: Change, *, imported: bool) -> str:
    quoted = token["quoted"] or token["string"]
    url = unescape_css(quoted[1:-1] if quoted else token["bare"])
    new = change(url)
    if new == url:
        return token.group()
    if new is None:
        new = _CUT_SHEET if imported else _CUT
    return f'url("{_quote(new)}")'


def unescape_css(text: str) -> str:
    """Return the text that a CSS string or URL means."""

    def plain(match: re.Match[str]) -> str:
        if match[1]:
            code = int(match[1], 16)
            return chr(code) if 0 < code < 0x110000 else "\N{REPLACEMENT CHARACTER}"
        return "" if match[2] else match[3]

    return _CSS_ESCAPE.sub(plain, text)


def _quote(url: str) -> str:
    return url.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\a ")


def change_html(text: str, change: Change) -> str:
    """Return ``text`` with every URL that it loads as ``change`` says.

    Raises:
        ValueError: the document has a ``<base>``, which would change what every URL means.
    """
    finder = _Finder(text)
    pieces: list[str] = []
    at = 0
    for start, end, what in finder.spans:
        pieces.append(text[at:start])
        raw = text[start:end]
        pieces.append(change_css(raw, change) if what == "style" else _tag(what, raw, change))
        at = end
    return "".join(pieces) + text[at:]


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
    tag = what.removeprefix("<")
    head = len(what)
    attributes = list(_ATTRIBUTE.finditer(raw, head))
    values = {match[1].lower(): _value(match) for match in reversed(attributes)}
    loading = () if tag == "link" and _is_followed(values.get("rel", "")) else _LOADING.get(tag, ())
    pieces, at = [raw[:head]], head
    for match in attributes:
        name = match[1].lower()
        pieces.append(raw[at : match.start()])
        pieces.append(_attribute(match, name, loading, change))
        at = match.end()
    return "".join(pieces) + raw[at:]


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
    """Change a list of URLs, each with how wide or dense it is; ``None`` when all are cut."""
    changed = [(change(each[1]), each) for each in _CANDIDATE.finditer(value)]
    if all(new == each[1] for new, each in changed):
        return value
    kept = (f"{new}{(each[2] or '').rstrip()}" for new, each in changed if new is not None)
    return ", ".join(kept) or None


CHANGED = {"text/html": change_html, "text/css": change_css}
"""By media type; scripts are left alone."""
