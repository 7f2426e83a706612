"""Changes the URLs that a style sheet loads, and nothing else of it (CSS Syntax Level 3).

``url()`` and the text form of ``@import`` load; names of XML name spaces do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Change = Callable[[str], str | None]
"""Says what a URL becomes: itself to leave it as it stands, ``None`` to cut it."""

_STRING = r"\"(?:\\[\s\S]|[^\"\\\n])*\"|'(?:\\[\s\S]|[^'\\\n])*'"
_BARE = r"(?:\\[0-9a-f]{1,6}\s?|\\[\s\S]|[^\"'()\\\s])*"
_TOKEN = re.compile(
    rf"""
    (?P<comment> /\*[\s\S]*?(?:\*/|\Z) )
    | (?P<url> url\( \s* (?: (?P<quoted>{_STRING}) | (?P<bare>{_BARE}) ) \s* \) )
    | (?P<string> {_STRING} )
    | (?P<at> @[\w-]+ )
    | (?P<name> (?:\\[\s\S]|[\w-])+ )
    | (?P<end> [;{{}}] )
    | [\s\S]
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(\n)|([\s\S]))")
# Neither asks for anything: an empty style sheet, and a picture or font that does not decode.
_CUT_SHEET, _CUT = "data:text/css,", "data:,"


def change_css(text: str, change: Change) -> str:
    """``text`` with every URL that it loads as ``change`` says."""
    made: list[str] = []
    rule = ""
    for token in _TOKEN.finditer(text):
        kind, raw = token.lastgroup, token.group()
        if kind == "at":
            rule = raw.lower()
        elif kind == "end":
            rule = ""
        elif rule != "@namespace" and (
            token["url"] is not None or (kind == "string" and rule == "@import")
        ):
            raw = _changed(token, change, imported=rule == "@import")
        made.append(raw)
    return "".join(made)


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
    """The text that a CSS string or URL stands for."""

    def plain(match: re.Match[str]) -> str:
        if match[1]:
            code = int(match[1], 16)
            return chr(code) if 0 < code < 0x110000 else "\N{REPLACEMENT CHARACTER}"
        return "" if match[2] else match[3]

    return _ESCAPE.sub(plain, text)


def _quote(url: str) -> str:
    return url.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\a ")
