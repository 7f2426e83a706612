"""The matching rule: nginx's longest prefix over our locations, against the rule as it is said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from testbed.server.matching import (
    KEY_MARK,
    LONGEST_STEP,
    Location,
    Match,
    make_locations,
    make_request,
)
from tests.server.pages import HOST, make_entry, on_loopback

# Method, bytes of the body, path with query.
Asked = tuple[str, int, str]
LONG = "x" * 260
QUERIES = st.lists(st.sampled_from(["a", "b", "&", "=", "?", "/", LONG]), max_size=6).map("".join)
URLS = st.tuples(
    st.sampled_from(["/", "/p", f"/{LONG}", f"/{LONG}{LONG}p"]),
    st.one_of(st.just(""), QUERIES.map(lambda query: f"?{query}")),
).map("".join)
REQUESTS = st.tuples(st.sampled_from(["GET", "GET", "POST"]), st.sampled_from([0, 0, 5]), URLS)


def reference(recorded: Sequence[Asked], asked: Asked) -> tuple[Match, int | None]:
    """The rule in plain words: equal is best, then the longest common prefix, then the first."""
    if asked in recorded:
        return "exact", recorded.index(asked)
    path = asked[2].partition("?")[0]
    best, longest = None, -1
    for index, (method, size, url) in enumerate(recorded):
        if (method, size, url.partition("?")[0]) == (asked[0], asked[1], path):
            shared = 0
            while url[: shared + 1] == asked[2][: shared + 1] and shared < min(
                len(url), len(asked[2])
            ):
                shared += 1
            if shared > longest:
                best, longest = index, shared
    return ("miss", None) if best is None else ("inexact", best)


def find(locations: Sequence[Location], key: str) -> tuple[Match, int | None]:
    """What nginx does: an equal location, else the longest prefix."""
    for location in locations:
        if not location.prefix and location.name == key:
            return location.match, location.answer
    around = [e for e in locations if e.prefix and key.startswith(e.name)]
    if not around:
        return "miss", None
    longest = max(around, key=lambda e: len(e.name))
    return longest.match, longest.answer


def locate(recorded: Sequence[Asked]) -> tuple[Location, ...]:
    return make_locations(
        make_request(method, size, HOST, url, index)
        for index, (method, size, url) in enumerate(recorded)
    )


def key_of(asked: Asked) -> str:
    request = make_request(asked[0], asked[1], HOST, asked[2], 0)
    return request.fixed + request.query


@given(recorded=st.lists(REQUESTS, min_size=1, max_size=12), asked=REQUESTS)
@example(recorded=[("GET", 0, "/p?x"), ("GET", 0, "/p?abc")], asked=("GET", 0, "/p?abd"))
@example(recorded=[("GET", 0, "/p"), ("GET", 0, "/p?y")], asked=("GET", 0, "/p?z"))
@example(recorded=[("GET", 0, "/p?y"), ("GET", 0, "/p?z")], asked=("GET", 0, "/p"))
@example(recorded=[("GET", 0, "/p?a")], asked=("GET", 0, "/p?a&b"))
@example(recorded=[("POST", 5, "/p")], asked=("POST", 0, "/p"))
def test_the_answer_is_that_of_the_rule(recorded: list[Asked], asked: Asked) -> None:
    locations = locate(recorded)
    assert find(locations, key_of(asked)) == reference(recorded, asked)
    for each in recorded:
        assert find(locations, key_of(each)) == reference(recorded, each)


@given(recorded=st.lists(REQUESTS, min_size=1, max_size=12))
def test_locations_are_unique_and_no_step_is_too_long(recorded: list[Asked]) -> None:
    locations = locate(recorded)
    names = [(location.name, location.prefix) for location in locations]
    assert len(names) == len(set(names))
    prefixes = [KEY_MARK, *(location.name for location in locations if location.prefix)]
    for location in locations:
        shorter = (len(p) for p in prefixes if location.name.startswith(p) and location.name != p)
        assert len(location.name) - max(shorter) <= LONGEST_STEP


def test_many_queries_in_a_chain_are_no_burden() -> None:
    recorded = [("GET", 0, "/p?" + "a" * length) for length in range(1500)]
    locations = locate(recorded)
    assert len(locations) <= 2 * len(recorded) + 10
    assert find(locations, key_of(("GET", 0, "/p?" + "a" * 700 + "b"))) == ("inexact", 700)


# Of these all is in the head, and each is recorded once: nothing has to be chosen.
LOCATED = REQUESTS.filter(lambda each: each[0] == "GET" and not each[1])


@settings(max_examples=12)
@given(
    recorded=st.lists(LOCATED, min_size=1, max_size=10, unique=True),
    asked=st.lists(LOCATED, min_size=1, max_size=10),
)
def test_nginx_answers_by_the_rule(
    tmp_path_factory: pytest.TempPathFactory, recorded: list[Asked], asked: list[Asked]
) -> None:
    folder: Path = tmp_path_factory.mktemp("rule")
    entries = [
        make_entry(url, b"%d" % index, folder, method=method, request_body_size=size)
        for index, (method, size, url) in enumerate(recorded)
    ]
    expected: list[tuple[Match, int | None]] = []
    with on_loopback(folder, *entries) as site, site.connected() as connection:
        for each in (*recorded, *asked):
            method, size, url = each
            response = connection.ask(method, url, b"x" * size)
            expected.append(reference(recorded, each))
            _, index = expected[-1]
            if index is None:
                assert (response.status, response.headers["X-Replay"]) == (404, "miss"), each
            else:
                assert (response.status, response.body) == (200, b"%d" % index), each
    replay = site.replay()
    matches = [match for match, _ in expected]
    assert replay.exact == matches.count("exact")
    assert len(replay.inexact) == matches.count("inexact")
    assert len(replay.missed) == matches.count("miss")
    assert replay.most_per_connection == len(expected)
