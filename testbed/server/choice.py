"""Choice of the recorded answer for requests that method and URL do not tell apart.

A request is the recorded one if query, Range and body are equal, but for what the page's rules
ignore; of equal ones the n-th of a visit gets the n-th answer.  What else it gets, the nearest, is
inexact.  Standard library only, like what it imports: a component's Python runs this.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from testbed.archive.head import NOT_MODIFIED
from testbed.archive.posted import RECORDED_BODY, MatchRule, Posted, digest_body, rule_of
from testbed.server.matching import shared_length

VISITS = "visits"
"""The file in the server's folder that has a byte for each visit that has ended."""
CONDITION_WORD = "$http_if_none_match|$http_if_modified_since"
LONGEST_VALIDATOR = 500


@dataclass(frozen=True, slots=True)
class Candidate:
    """A recorded request and its answer.

    ``fixed`` is port, method, host and path, and ``content`` the same for equal answers.
    ``pattern`` is that of conditions which find the answer unchanged, ``unchanged`` the number of
    the answer that they get.
    """

    answer: int
    fixed: str
    url: str
    query: str
    range: str
    length: int
    posted: Posted | None
    status: int
    content: str
    pattern: str = ""
    unchanged: int = 0


class ChosenAnswer(NamedTuple):
    """What a request gets: an answer's number, and whether exactly that was recorded for it."""

    answer: int
    exact: bool


class Chooser:
    """Choices of one server, which counts equal requests from the beginning of each visit."""

    def __init__(self, candidates: Iterable[Candidate], rules: Sequence[MatchRule]) -> None:
        """Take what was recorded, in recorded order."""
        self.rules = rules
        self.groups: dict[str, list[Candidate]] = {}
        for each in candidates:
            self.groups.setdefault(each.fixed, []).append(each)
        self.asked: Counter[object] = Counter()
        self.given: Counter[int] = Counter()
        self.visit = 0

    def begin(self, visit: int) -> None:
        """Count from the beginning if this is another visit than before."""
        if visit != self.visit:
            self.visit = visit
            self.asked.clear()
            self.given.clear()

    def choose(
        self, fixed: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> ChosenAnswer:
        """Return the choice for a request whose ``fixed`` part was recorded.

        Names of ``headers`` are in lower case; ``query`` begins with ``?`` or is empty.
        """
        group = self.groups[fixed]
        rule = rule_of(self.rules, group[0].url.partition("?")[0] + query)
        query, part = rule.cut_query(query), headers.get("range", "")
        condition = condition_of(headers)
        posted = digest_body(body, headers.get("content-type", "")) if body else None
        if posted is not None and RECORDED_BODY in headers:
            posted = Posted(headers[RECORDED_BODY])
        sent = rule.cut_body(posted) if body else ""
        same = [
            each
            for each in group
            if (rule.cut_query(each.query), each.range) == (query, part)
            and _body_of(each, rule, posted) == sent
        ]
        # Without a condition nothing can be answered that it has not changed.
        due = [each for each in same if condition or each.status != NOT_MODIFIED] or same
        if due:
            key = due[0].answer, bool(condition)
            number = self.asked[key]
            self.asked[key] += 1
            found = due[min(number, len(due) - 1)]
            exact = number < len(due) or len({each.content for each in due}) == 1
        else:
            found, exact = self._nearest(group, rule, query, part, len(body)), False
        self.given[found.answer] += 1
        part_of = headers.get("if-range", "")
        if part_of and found.pattern:
            is_tag = part_of.startswith(('"', "W/"))
            exact &= is_current(found.pattern, f"{part_of}|" if is_tag else f"|{part_of}")
        current = is_current(found.pattern, condition)
        return ChosenAnswer(found.unchanged if current else found.answer, exact)

    def _nearest(
        self, group: Sequence[Candidate], rule: MatchRule, query: str, part: str, length: int
    ) -> Candidate:
        def nearness(each: Candidate) -> tuple[int, ...]:
            own = rule.cut_query(each.query)
            same = (
                own == query,
                shared_length(own, query),
                each.range == part,
                each.length == length,
            )
            return *same, each.status != NOT_MODIFIED, -self.given[each.answer], -each.answer

        return max(group, key=nearness)


def pattern_of(headers: Iterable[tuple[str, str]]) -> str:
    """Return the pattern of conditions that find an answer unchanged (RFC 9110 section 13.2.2).

    It is one for nginx and Python, searched in what ``condition_of`` returns; nothing where the
    answer has no validators.  Dates have to be equal, as nginx wants it by itself.
    """
    known = {name.lower(): value for name, value in headers if len(value) <= LONGEST_VALIDATOR}
    etag, date = known.get("etag", ""), known.get("last-modified", "")
    tag = re.escape(etag.removeprefix("W/"))
    patterns = [rf"^(.*[, ])?(W/)?{tag}([, ].*)?\|", r"^\*\|"] if etag else []
    patterns += [rf"^\|{re.escape(date)}$"] if date else []
    return "|".join(patterns)


def condition_of(headers: Mapping[str, str]) -> str:
    """Return the condition of a request as nginx's ``CONDITION_WORD`` has it; nothing if none."""
    named, since = headers.get("if-none-match", ""), headers.get("if-modified-since", "")
    return f"{named}|{since}" if named or since else ""


def is_current(pattern: str, condition: str) -> bool:
    """Return whether a condition finds an answer with the pattern unchanged."""
    return bool(pattern) and re.search(pattern, condition) is not None


def to_order(candidates: Iterable[Candidate], rules: Iterable[MatchRule]) -> dict[str, Any]:
    """Return what ``from_order`` reads back, for JSON."""
    return {"candidates": [asdict(each) for each in candidates], "rules": list(map(asdict, rules))}


def from_order(order: Mapping[str, Any]) -> Chooser:
    """Return the chooser of an order."""
    candidates = [
        Candidate(**(each | {"posted": each["posted"] and Posted(**each["posted"])}))
        for each in order["candidates"]
    ]
    return Chooser(candidates, [MatchRule(**each) for each in order["rules"]])


def visits_of(file: Path) -> int:
    """Return how many visits have ended: ``file`` has a byte for each."""
    return file.stat().st_size if file.exists() else 0


def _body_of(each: Candidate, rule: MatchRule, sent: Posted | None) -> object:
    """Return what of a recorded body is compared: of one that is not known nothing is equal."""
    if not each.length and each.posted is None:
        return ""
    if each.posted is not None and sent is not None and sent.fields is None:
        return rule.cut_body(Posted(each.posted.whole))
    return rule.cut_body(each.posted)
