"""Matching of requests to recorded responses: mahimahi's published rule, as nginx locations.

Source: Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015, section
3.2, and its ``replayserver.cc``.  Method, length of the body, host and path must be equal; among
what is left the longest common prefix of the query wins, and among equals the first recorded.

nginx itself looks for the longest prefix: for a set of queries, one prefix location at each place
where they part is enough.  ``docs/decisions/replay-server.md`` says more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

Match = Literal["exact", "inexact", "miss", "plain", "choose"]

KEY_MARK = "//"
"""How keys begin: as no path does that nginx has read, because it merges slashes."""
CONDITION = "~"
"""Begins, after the mark, the keys of requests that have a condition (RFC 9110 section 13.1)."""
CHOSEN = "@"
"""Begins, after the mark, the keys by which requests are looked for that ``choice`` answers."""
# nginx 1.22 keeps in one byte how much longer a location's name is than that of the one around it.
LONGEST_STEP = 255


@dataclass(frozen=True, slots=True)
class Request:
    """A recorded request: what must be equal, the query with its ``?`` or nothing, its response.

    ``when`` is a pattern of the conditions that get this response; nothing: all.
    """

    fixed: str
    query: str
    answer: int
    when: str = ""


@dataclass(frozen=True, slots=True)
class Location:
    """One nginx location: keys that are ``name``, or (``prefix``) begin with it, get ``answer``.

    The match ``plain`` has none: the request is looked for as if it had no condition, or need not
    be chosen for, and so is one whose condition is not like the pattern ``when``.  To the match
    ``choose`` the program answers that has ``choice``.
    """

    name: str
    prefix: bool
    match: Match
    answer: int | None
    when: str = ""


def make_request(method: str, body_bytes: int, host: str, path: str, answer: int) -> Request:
    """Return the recorded request whose response is number ``answer``; ``path`` has the query."""
    length = f":{body_bytes}" if body_bytes else ""
    path, mark, query = path.partition("?")
    return Request(f"{KEY_MARK}{method}{length}:{host}{path}", mark + query, answer)


def make_locations(
    requests: Iterable[Request],
    revalidations: Iterable[Request] = (),
    chosen: Iterable[str] = (),
) -> tuple[Location, ...]:
    """Return the locations that answer requests by the rule; both are in recorded order.

    ``revalidations`` are those that were answered 304: they answer a request that has a condition
    and is theirs to the last byte.  Any other is asked for in full.  ``chosen`` are methods with
    host and path (``GET:host/path``) whose requests these locations do not tell apart.
    """
    groups: dict[str, dict[str, int]] = defaultdict(dict)
    for request in requests:
        # The first of two equal requests answers both.
        groups[request.fixed].setdefault(request.query, request.answer)
    exact: dict[str, Location] = {}
    prefixes: dict[str, Location] = {}
    for fixed, answers in groups.items():
        for query, answer in answers.items():
            exact[fixed + query] = Location(fixed + query, False, "exact", answer)
        first = next(iter(answers.values()))
        exact.setdefault(fixed, Location(fixed, False, "inexact", first))
        for query, answer in branches(answers):
            prefixes[fixed + query] = Location(fixed + query, True, "inexact", answer)
    for request in revalidations:
        name = f"{KEY_MARK}{CONDITION}{request.fixed.removeprefix(KEY_MARK)}{request.query}"
        exact.setdefault(name, Location(name, False, "exact", request.answer, request.when))
        prefixes[KEY_MARK + CONDITION] = Location(KEY_MARK + CONDITION, True, "plain", None)
    for fixed in chosen:
        name = KEY_MARK + CHOSEN + fixed
        exact[name] = Location(name, False, "choose", None)
        prefixes[f"{name}?"] = Location(f"{name}?", True, "choose", None)
        prefixes[KEY_MARK + CHOSEN] = Location(KEY_MARK + CHOSEN, True, "plain", None)
    bridges = _bridges(exact, prefixes)
    return (*exact.values(), *prefixes.values(), *bridges)


def branches(answers: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the prefixes of queries with answers: of those that a query has, the longest is right.

    ``answers`` maps ``?...`` or nothing to a response, in recorded order.  What is yielded first
    is ``?``, for every query.
    """
    order = list(answers)
    rank = {query: place for place, query in enumerate(order)}
    queries = [query for query in order if query]
    yield "?", answers[(queries or order)[0]]
    groups = [sorted(queries)] if queries else []
    while groups:
        group = groups.pop()
        # Of sorted texts the first and the last share what all of them share.
        shared = shared_length(group[0], group[-1])
        parting: dict[str, list[str]] = defaultdict(list)
        for query in group:
            if len(query) > shared:
                parting[query[shared]].append(query)
        for members in parting.values():
            yield members[0][: shared + 1], answers[min(members, key=rank.__getitem__)]
            if len(members) > 1:
                groups.append(members)


def shared_length(query: str, other: str) -> int:
    """Return the length of the longest common prefix."""
    low, high = 0, min(len(query), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if query[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _bridges(exact: Mapping[str, Location], prefixes: Mapping[str, Location]) -> list[Location]:
    """Return the prefix locations that shorten steps of more than ``LONGEST_STEP``.

    A key that gets no further than a bridge is answered as by the location around the bridge.
    """
    bridges: dict[str, Location] = {}
    around: list[Location] = [Location(KEY_MARK, True, "miss", None)]
    for name in sorted({*exact, *prefixes}):
        while not name.startswith(around[-1].name):
            around.pop()
        while len(name) - len(around[-1].name) > LONGEST_STEP:
            bridge = Location(
                name[: len(around[-1].name) + LONGEST_STEP],
                True,
                around[-1].match,
                around[-1].answer,
            )
            bridges[bridge.name] = bridge
            around.append(bridge)
        if name in prefixes:
            around.append(prefixes[name])
    return list(bridges.values())
