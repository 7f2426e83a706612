"""Rules of matching that two recordings of one page suggest: what differs in equal requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import zip_longest
from urllib.parse import parse_qsl, urlsplit

from testbed.archive.posted import MatchRule
from testbed.archive.reading import Archive, Entry

_Place = tuple[str, str]
"""Method, and URL without its query."""


def suggest_rules(page: Archive, other: Archive) -> Iterator[MatchRule]:
    """Yield a rule for each URL that both asked for and in whose requests something differs.

    Equal requests need none; the others are compared in their order.
    """
    mine, others = _by_place(page), _by_place(other)
    for place, entries in mine.items():
        pairs = _unequal(entries, others.get(place, []))
        if any(rule.covers(each.url) for rule in page.rules for each in entries) or not pairs:
            continue
        keys = {key for one, two in pairs for key in _differing(_query(one), _query(two))}
        fields, is_whole = set[str](), False
        for one, two in pairs:
            if _sent(one) != _sent(two):
                differing = _differing(_fields(one), _fields(two))
                fields |= {path.rpartition(".")[2] or path for path in differing}
                is_whole |= not differing or "" in differing
        if keys or fields or is_whole:
            url = f"{place[1]}*" if any("?" in each.url for each in entries) else place[1]
            named = () if is_whole else tuple(sorted(fields))
            yield MatchRule(url, tuple(sorted(keys)), named, is_whole)


def describe_rule(rule: MatchRule) -> str:
    """Return the rule as a table of ``page.toml``."""
    values = {"url": rule.url, "ignore_query": rule.ignore_query,
              "ignore_fields": rule.ignore_fields, "ignore_body": rule.ignore_body}  # fmt: skip
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items() if value]
    return "\n".join(("[[match]]", *lines))


def idle_rules(page: Archive) -> Iterator[str]:
    """Yield a sentence for each rule of the page that is about none of its requests."""
    for rule in page.rules:
        if not any(rule.covers(entry.url) for entry in page.entries):
            yield f"match: {rule.url} is like no URL of the page"


def _by_place(page: Archive) -> dict[_Place, list[Entry]]:
    places: dict[_Place, list[Entry]] = {}
    for entry in page.entries:
        places.setdefault((entry.method, entry.url.partition("?")[0]), []).append(entry)
    return places


def _unequal(entries: list[Entry], others: list[Entry]) -> list[tuple[Entry, Entry]]:
    keys = [{(each.url, _sent(each)) for each in those} for those in (entries, others)]
    left = ([each for each in those if (each.url, _sent(each)) not in known]
            for those, known in zip((entries, others), reversed(keys), strict=True))  # fmt: skip
    return [(one, two) for one, two in zip_longest(*left) if one and two]


def _sent(entry: Entry) -> tuple[int, str]:
    return entry.request_body_size, "" if entry.posted is None else entry.posted.whole


def _query(entry: Entry) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(entry.url).query, keep_blank_values=True))


def _fields(entry: Entry) -> dict[str, str]:
    return dict(entry.posted.fields or {}) if entry.posted else {}


def _differing(one: dict[str, str], two: dict[str, str]) -> list[str]:
    return [name for name in one | two if one.get(name) != two.get(name)]
