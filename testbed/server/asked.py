"""What an origin is asked: locations for most requests, candidates for those to choose between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from testbed.archive.head import NOT_MODIFIED, SWITCHED, sent_headers
from testbed.archive.posted import MatchRule
from testbed.archive.reading import Entry
from testbed.server.choice import Candidate, pattern_of
from testbed.server.listeners import Listener
from testbed.server.matching import Location, Request, make_locations, make_request

SAFE = ("GET", "HEAD", "OPTIONS")
"""Methods whose requests say all by their heads (RFC 9110 section 9.2.1)."""
VALIDATED = (200, 206)
# What of a response its 304 repeats (RFC 9110 section 15.4.5).
REPEATED = ("cache-control", "content-location", "etag", "expires", "vary")


@dataclass(frozen=True, slots=True)
class Asked:
    """What one origin is asked: its answers with their numbers, and the locations of its requests.

    ``has_head`` says that HEAD was recorded, and is not answered as GET is; ``is_conditional`` that
    a 304 was, or can be the answer.  Between ``candidates`` locations cannot tell.
    """

    entries: tuple[tuple[int, Entry], ...]
    has_head: bool
    is_conditional: bool
    locations: tuple[Location, ...]
    candidates: tuple[Candidate, ...]


def answer_of(entries: Sequence[Entry], number: int) -> Entry:
    """Return an answer: that of an entry, or, as far behind them all, its 304 (RFC 9110, 13)."""
    if number < len(entries):
        return entries[number]
    entry = entries[number - len(entries)]
    headers = tuple(pair for pair in entry.headers if pair[0].lower() in REPEATED)
    return replace(entry, status=NOT_MODIFIED, headers=headers, headers_size=None, body=None,
                   body_size=0, decoded_size=0, request_body_size=0)  # fmt: skip


def asked_of(
    listener: Listener,
    entries: Sequence[Entry],
    rules: Sequence[MatchRule] = (),
    *,
    validates: bool = False,
) -> Asked:
    """Return what ``listener`` is asked; ``entries`` are all of the page, numbered so.

    With ``validates`` conditions are held against validators, as they always are by ``choice``.
    """
    origin = (listener.scheme, listener.host, listener.port)
    mine = tuple(
        (number, entry)
        for number, entry in enumerate(entries)
        if (entry.scheme, entry.host, entry.port) == origin
    )
    has_head = any(entry.method == "HEAD" for _, entry in mine)
    groups: dict[str, list[tuple[int, Entry]]] = {}
    for number, entry in mine:
        for method in () if entry.status == SWITCHED else _methods(entry.method, has_head):
            fixed = f"{method}:{entry.host}{entry.path.partition('?')[0]}"
            groups.setdefault(fixed, []).append((number, entry))
    requests: dict[bool, list[Request]] = {False: [], True: []}
    candidates: list[Candidate] = []
    chosen = []
    for fixed, group in groups.items():
        if _needs_choice([entry for _, entry in group], rules):
            chosen.append(fixed)
            candidates += [
                _candidate(f"{listener.port} {fixed}", *of, len(entries)) for of in group
            ]
            continue
        method = fixed.partition(":")[0]
        full = {entry.url for _, entry in group if entry.status != NOT_MODIFIED}
        for number, entry in group:
            asked = (method, entry.request_body_size, entry.host, entry.path)
            again = entry.status == NOT_MODIFIED and entry.url in full
            requests[again].append(make_request(*asked, number))
        for number, entry in group if validates else ():  # behind a 304 that was recorded
            if pattern := _pattern(entry):
                asked = (method, 0, entry.host, entry.path)
                found = make_request(*asked, len(entries) + number)
                requests[True].append(replace(found, when=pattern))
    locations = make_locations(requests[False], requests[True], chosen)
    unchanged = {request.answer for request in requests[True] if request.when}
    unchanged |= {candidate.unchanged for candidate in candidates if candidate.pattern}
    mine += tuple((number, answer_of(entries, number)) for number in sorted(unchanged))
    return Asked(mine, has_head, bool(requests[True]), locations, tuple(candidates))


def _needs_choice(group: Sequence[Entry], rules: Sequence[MatchRule]) -> bool:
    """Return whether more than method, host, path and query tells these requests apart."""
    if any(entry.method not in SAFE or entry.range for entry in group):
        return True
    if any(rule.covers(entry.url) for rule in rules for entry in group):
        return True
    if len(group) == 1:  # as almost all are
        return False
    answers = {(e.path, _content(e)) for e in group if e.status != NOT_MODIFIED}
    return len(answers) > len({path for path, _ in answers})


def _candidate(fixed: str, number: int, entry: Entry, count: int) -> Candidate:
    return Candidate(
        answer=number, fixed=fixed, url=entry.url, query="".join(entry.path.partition("?")[1:]),
        range=entry.range, length=entry.request_body_size, posted=entry.posted,
        status=entry.status, content=_content(entry), pattern=_pattern(entry),
        unchanged=count + number,
    )  # fmt: skip


def _content(entry: Entry) -> str:
    """Return what is the same for equal answers."""
    body = None if entry.body is None else entry.body.name
    answer = (entry.status, entry.headers_size, sent_headers(entry.headers), body)
    return sha256(repr(answer).encode()).hexdigest()[:16]


def _pattern(entry: Entry) -> str:
    """Return the pattern of conditions to which the answer is that it has not changed."""
    is_read = entry.method in ("GET", "HEAD") and entry.status in VALIDATED
    return pattern_of(sent_headers(entry.headers)) if is_read else ""


def _methods(recorded: str, has_head: bool) -> tuple[str, ...]:
    """Return the methods whose requests a recorded one may answer."""
    return ("GET", "HEAD") if recorded == "GET" and has_head else (recorded,)


def candidates_of(pages: Iterable[Asked]) -> tuple[Candidate, ...]:
    """Return what requests are chosen for, of all origins; of most pages nothing."""
    return tuple(candidate for page in pages for candidate in page.candidates)
