"""What one origin of nginx answers: each request its recorded response, or a miss that says so.

A request takes three steps: its key replaces its URI, the key finds the answer, and an internal
redirect leads there.  With a think time the key leads to a pause, and the pause to the answer.  A
request with a condition has another key where a 304 was recorded, and then its own if need be.
"""

from __future__ import annotations

from collections.abc import Sequence

from testbed.archive.head import NOT_MODIFIED
from testbed.archive.reading import Entry
from testbed.server.listeners import Listener
from testbed.server.matching import KEY_MARK, Location, Request, make_locations, make_request
from testbed.server.responses import BODY_SINK, response_location, response_uri
from testbed.server.think import Think
from testbed.server.words import Constants, quote

MISS = "add_header X-Replay miss always; return 404;"
MISS_URI = "//miss"
# Cookies are primed before a load: nobody thinks about that, however long a think time is.
PRIMING_KEYS = tuple(f"{KEY_MARK}{method}:prime/" for method in ("GET", "HEAD"))


def server_block(
    listener: Listener,
    entries: Sequence[Entry],
    constants: Constants,
    tls_directives: str,
    think: Think | None = None,
) -> str:
    """The block of ``listener``; ``entries`` are all of the page, numbered in this order."""
    origin = (listener.scheme, listener.host, listener.port)
    mine = [
        (number, entry)
        for number, entry in enumerate(entries)
        if (entry.scheme, entry.host, entry.port) == origin
    ]
    flags = (" ssl" if listener.tls else "") + (" http2" if listener.h2 else "")
    has_head = any(entry.method == "HEAD" for _, entry in mine)
    method = "$request_method" if has_head else "$answered_method"
    whole = {(entry.method, entry.url) for _, entry in mine if entry.status != NOT_MODIFIED}
    asked: dict[bool, list[Request]] = {False: [], True: []}
    for number, entry in mine:
        again = entry.status == NOT_MODIFIED and (entry.method, entry.url) in whole
        for each in _methods(entry.method, has_head):
            request = make_request(each, entry.request_body_size, entry.host, entry.path, number)
            asked[again].append(request)
    key = f"{method}$body_length:$host$request_uri"
    condition = "$condition" if asked[True] else ""
    locations = make_locations(asked[False], asked[True])
    return f"""\
  server {{
    listen {listener.socket}{flags} fastopen=256 backlog=1024;
{tls_directives}\
    # Requests are compared as they came: no decoding, query included.  What nginx has read for
    # itself begins with one slash, so that no URL can name the locations below.
    location / {{ rewrite ^ "{KEY_MARK}{condition}{key}" last; }}
    location ^~ "{KEY_MARK}" {{ {_miss(think)} }}
    location = "{BODY_SINK}" {{ internal; return 204; }}
{"".join(_request_location(location, entries, key, think) for location in locations)}\
{"" if think is None else _after_thinking(mine)}\
{"".join(response_location(number, entry, constants) for number, entry in mine)}  }}
"""


def _methods(recorded: str, has_head: bool) -> tuple[str, ...]:
    """The methods whose requests a recorded one may answer."""
    return ("GET", "HEAD") if recorded == "GET" and has_head else (recorded,)


def _request_location(
    location: Location, entries: Sequence[Entry], key: str, think: Think | None
) -> str:
    sign = "^~" if location.prefix else "="
    what = _miss(think)
    if location.match == "plain":
        what = f'rewrite ^ "{KEY_MARK}{key}" last;'
    if location.answer is not None:
        entry = entries[location.answer]
        what = f"set $replay {location.match}; " + (
            _redirect(location.answer, entry)
            if think is None
            else think.directives(f"{entry.method} {entry.url}", _thought_uri(location.answer))
        )
    return f"    location {sign} {quote(location.name)} {{ {what} }}\n"


def _redirect(answer: int, entry: Entry) -> str:
    return f'error_page 418 ={entry.status} "{response_uri(answer)}"; return 418;'


def _miss(think: Think | None) -> str:
    return MISS if think is None else think.directives("miss", MISS_URI)


def _thought_uri(answer: int) -> str:
    """Where a request goes on that response number ``answer`` answers; no request can name it."""
    return f"//thought/{answer}"


def _after_thinking(mine: Sequence[tuple[int, Entry]]) -> str:
    """The locations to which think times lead, and those of the requests that have none."""
    found = [(MISS_URI, f"internal; {MISS}"), *((key, MISS) for key in PRIMING_KEYS)]
    found += [(_thought_uri(n), f"internal; {_redirect(n, entry)}") for n, entry in mine]
    return "".join(f"    location = {quote(name)} {{ {what} }}\n" for name, what in found)
