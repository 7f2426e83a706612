"""Digests of what requests send, and a page's own rules of what in a request does not count.

An archive keeps no request's body, which may hold what a person typed: only digests, of the whole
and of each member of a JSON document or a form.  Standard library only: servers in a guest and the
Python of a component run this.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import parse_qsl

WHOLE_CHARS, FIELD_CHARS = 16, 8
"""Of SHA-256 in hexadecimal: 64 bits of a body, 32 of a member."""
MOST_FIELDS = 1000
RECORDED_BODY = "x-recorded-body"
"""The header by which a client that has digests alone says which body it stands for."""
_BOUNDARY = re.compile(r'multipart/.*;\s*boundary="?([^";,]+)', re.IGNORECASE)
_FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Posted:
    """Digests of a request's body: of all of it, and of its members by their paths, if it has any.

    The boundary of a multipart body, which browsers draw, is no part of it.
    """

    whole: str
    fields: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class MatchRule:
    """What does not count of requests whose URL is like ``url`` (with ``*``): keys, members, body.

    A member of a JSON body or a form is named by the last part of its path, or by all of it.
    """

    url: str
    ignore_query: tuple[str, ...] = ()
    ignore_fields: tuple[str, ...] = ()
    ignore_body: bool = False

    def covers(self, url: str) -> bool:
        """Return whether it is about requests for ``url``."""
        return fnmatchcase(url, self.url)

    def cut_query(self, query: str) -> str:
        """Return ``query``, which begins with ``?`` or is empty, without the keys to ignore."""
        parts = query[1:].split("&")
        kept = [part for part in parts if part.partition("=")[0] not in self.ignore_query]
        return query if len(kept) == len(parts) else "?" + "&".join(kept) if kept else ""

    def cut_body(self, posted: Posted | None) -> object:
        """Return what of a body is compared; ``None`` where nothing is known of it."""
        if self.ignore_body:
            return ""
        if posted is None or posted.fields is None or not self.ignore_fields:
            return None if posted is None else posted.whole
        ignored = set(self.ignore_fields)
        return {path: digest for path, digest in posted.fields.items()
                if not ignored & {path, *path.split(".")}}  # fmt: skip


def digest_body(body: bytes, content_type: str) -> Posted:
    """Return the digests of a request's body."""
    boundary = _BOUNDARY.match(content_type)
    if boundary is not None:
        body = body.replace(boundary[1].strip().encode("latin-1", "replace"), b"")
    fields: dict[str, str] = {}
    for path, value in _members(body, content_type):
        fields[path] = _digest(f"{fields.get(path, '')}{value}".encode(), FIELD_CHARS)
        if len(fields) > MOST_FIELDS:
            fields = {}
            break
    return Posted(_digest(body, WHOLE_CHARS), fields or None)


def read_posted(value: object) -> Posted | None:
    """Return what an archive says of a request's body, ``None`` if it is nothing.

    Raises:
        TypeError: it is something else.
    """
    if value is None:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("whole"), str):
        raise TypeError(f"digests of a request's body are {value!r}")
    fields = value.get("fields")
    if fields is not None and not (
        isinstance(fields, dict) and all(map(_is_text, fields.values()))
    ):
        raise TypeError(f"digests of a request's members are {fields!r}")
    return Posted(value["whole"], fields)


def read_rules(values: object) -> tuple[MatchRule, ...]:
    """Return the rules of a page's ``[[match]]`` tables.

    Raises:
        ValueError: a sentence about what is wrong with one.
    """
    if not isinstance(values, list) or not all(isinstance(each, dict) for each in values):
        raise ValueError("match is to be tables: [[match]]")
    return tuple(_read_rule(each) for each in values)


def rule_of(rules: Iterable[MatchRule], url: str) -> MatchRule:
    """Return the first rule about ``url``; one that ignores nothing where there is none."""
    return next((rule for rule in rules if rule.covers(url)), MatchRule(url))


def name_of(rules: Iterable[MatchRule], url: str) -> str:
    """Return ``url`` without the keys of its query that the rules ignore."""
    path, mark, query = url.partition("?")
    return path + rule_of(rules, url).cut_query(mark + query)


def _read_rule(table: dict[str, Any]) -> MatchRule:
    kinds = {"url": str, "ignore_query": list, "ignore_fields": list, "ignore_body": bool}
    for key, value in table.items():
        if key not in kinds:
            raise ValueError(f"match has no key {key!r}; the keys are {', '.join(kinds)}")
        if type(value) is not kinds[key] or (
            isinstance(value, list) and not all(map(_is_text, value))
        ):
            raise ValueError(f"match: {key} is {value!r}, expected a {kinds[key].__name__}")
    if "url" not in table or len(table) < 2:
        raise ValueError("match: each rule has a url, and what to ignore there")
    lists = {key: tuple(value) for key, value in table.items() if isinstance(value, list)}
    return MatchRule(**(table | lists))


def _members(body: bytes, content_type: str) -> Iterator[tuple[str, str]]:
    try:
        text = body.decode("utf-8")
        if content_type.lower().startswith(_FORM):
            yield from parse_qsl(text, keep_blank_values=True)
        elif text.lstrip()[:1] in ("{", "["):
            yield from _leaves("", json.loads(text))
    except (ValueError, RecursionError):
        return


def _leaves(path: str, value: object) -> Iterator[tuple[str, str]]:
    children: Iterable[tuple[object, object]] = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    else:
        yield path, json.dumps(value)
        return
    yield path, type(value).__name__  # an empty one counts as well
    for name, child in children:
        yield from _leaves(f"{path}.{name}" if path else str(name), child)


def _digest(data: bytes, chars: int) -> str:
    return hashlib.sha256(data).hexdigest()[:chars]


def _is_text(value: object) -> bool:
    return isinstance(value, str)
