"""Rules that two recordings suggest, and rules that are about nothing."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import Any

from testbed.archive.posted import MatchRule, digest_body, read_rules
from testbed.archive.reading import Archive, Entry
from tests.server.pages import HOST, make_archive, make_entry
from wings.pages.match_rules import describe_rule, idle_rules, suggest_rules


def post(path: str, body: str, **more: Any) -> Entry:
    posted = digest_body(body.encode(), "application/json")
    return make_entry(path, method="POST", request_body_size=len(body), posted=posted, **more)


def recorded(t: int) -> Archive:
    return make_archive(
        make_entry(f"/x?cb={t}&a=1"),
        post("/rum", f'{{"page": 1, "at": {{"ts": {t}}}}}'),
        post("/beacon", f"sent at {t}"),
        post("/graphql", '{"query": 1}'),
    )


def test_what_differs_is_suggested() -> None:
    rules = list(suggest_rules(recorded(5), recorded(123)))
    assert rules == [
        MatchRule(f"http://{HOST}/x*", ignore_query=("cb",)),
        MatchRule(f"http://{HOST}/rum", ignore_fields=("ts",)),
        MatchRule(f"http://{HOST}/beacon", ignore_body=True),
    ]
    text = "\n".join(map(describe_rule, rules))
    assert list(read_rules(tomllib.loads(text)["match"])) == rules
    assert not list(suggest_rules(replace(recorded(5), rules=tuple(rules)), recorded(6)))


def test_equal_recordings_need_no_rule() -> None:
    assert not list(suggest_rules(recorded(5), recorded(5)))


def test_a_rule_about_nothing_is_a_problem() -> None:
    page = replace(recorded(5), rules=(MatchRule("http://other/*", ignore_body=True),))
    assert list(idle_rules(page)) == ["match: http://other/* is like no URL of the page"]
