"""Server blocks of nginx: each request of an origin gets its recorded response, or a miss.

A request takes three steps: its key replaces its URI, the key finds the answer, and an internal
redirect leads there.  With a think time the key leads to a pause, and the pause to the answer.  A
request with a condition has another key where a 304 was recorded, and then its own if need be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.archive.head import (
    BODILESS,
    NOT_MODIFIED,
    PADDING_BYTES,
    PADDING_NAME,
    REASONS,
    SWITCHED,
    header_problem,
    natural_size,
    padding,
    request_problem,
    sent_headers,
)
from testbed.archive.reading import Archive, Entry
from testbed.base.errors import ConfigurationError
from testbed.server.channels import piecewise, socket_rules, talk_problem
from testbed.server.listeners import Listener
from testbed.server.matching import KEY_MARK, Location, Request, make_locations, make_request
from testbed.server.quoting import Constants, quote
from testbed.server.think import Think

MISS = "add_header X-Replay miss always; return 404;"
MISS_URI = "//miss"
# Cookies are primed before a load: the server does not think then, however long a think time is.
PRIMING_KEYS = tuple(f"{KEY_MARK}{method}:prime/" for method in ("GET", "HEAD"))

# A datagram is a packet, and a connection costs no round trip more than its handshake.  Without
# Alt-Svc Chromium takes a server for one of HTTP/1.1, and asks it for six things at a time.
QUIC = """\
    http3 on;
    quic_gso off;
    quic_retry off;
    add_header Alt-Svc {alternative} always;
    add_header_inherit merge;
"""

EMPTY_FILE = "empty"
"""A file of no bytes in the server's folder: the body of responses that have none."""
BODY_SINK = "//body"


def server_block(
    listener: Listener,
    entries: Sequence[Entry],
    constants: Constants,
    tls_directives: str,
    think: Think | None = None,
    channels: Path = Path(),
) -> str:
    """Return the block of ``listener``; ``entries`` are all of the page, numbered in this order.

    ``channels`` is where those are served that nginx cannot serve.
    """
    page = asked_of(listener, entries)
    mine = page.entries
    flags = (" ssl" if listener.tls else "") + (" http2" if listener.h2 else "")
    listens = "".join(
        f"    listen {each}{flags} fastopen=256 backlog=1024;\n" for each in listener.sockets
    )
    if listener.h3:
        listens += "".join(f"    listen {each} quic reuseport;\n" for each in listener.sockets)
        listens += QUIC.format(alternative=quote(alternative_service(listener)))
    method = "$request_method" if page.has_head else "$answered_method"
    key = f"{method}$body_length:$host$request_uri"
    condition = "$condition" if page.is_conditional else ""
    return f"""\
  server {{
{listens}\
{tls_directives}\
{socket_rules(channels) if any(each.status == SWITCHED for _, each in mine) else ""}\
    # Requests are compared as they came: no decoding, query included.  What nginx has read for
    # itself begins with one slash, so that no URL can name the locations below.
    location / {{ rewrite ^ "{KEY_MARK}{condition}{key}" last; }}
    location ^~ "{KEY_MARK}" {{ {_miss(think)} }}
    location = "{BODY_SINK}" {{ internal; return 204; }}
{"".join(_request_location(location, entries, key, think) for location in page.locations)}\
{"" if think is None else _after_thinking(mine)}\
{"".join(response_location(number, entry, constants, channels) for number, entry in mine)}  }}
"""


def alternative_service(listener: Listener) -> str:
    """Return what ``listener`` announces of its HTTP/3, as servers of it do (RFC 7838)."""
    return f'h3=":{listener.port}"; ma=86400'


@dataclass(frozen=True, slots=True)
class Asked:
    """What one origin is asked: its entries with their numbers, and the locations of its requests.

    ``has_head`` says that HEAD was recorded, and is not answered as GET is; ``is_conditional`` that
    a 304 was.
    """

    entries: tuple[tuple[int, Entry], ...]
    has_head: bool
    is_conditional: bool
    locations: tuple[Location, ...]


def asked_of(listener: Listener, entries: Sequence[Entry]) -> Asked:
    """Return what ``listener`` is asked; ``entries`` are all of the page, numbered so."""
    origin = (listener.scheme, listener.host, listener.port)
    mine = tuple(
        (number, entry)
        for number, entry in enumerate(entries)
        if (entry.scheme, entry.host, entry.port) == origin
    )
    has_head = any(entry.method == "HEAD" for _, entry in mine)
    full_answers = {(entry.method, entry.url) for _, entry in mine if entry.status != NOT_MODIFIED}
    requests: dict[bool, list[Request]] = {False: [], True: []}
    for number, entry in mine:
        if entry.status == SWITCHED:
            continue
        again = entry.status == NOT_MODIFIED and (entry.method, entry.url) in full_answers
        for http_method in _methods(entry.method, has_head):
            request = make_request(
                http_method, entry.request_body_size, entry.host, entry.path, number
            )
            requests[again].append(request)
    locations = make_locations(requests[False], requests[True])
    return Asked(mine, has_head, bool(requests[True]), locations)


def _methods(recorded: str, has_head: bool) -> tuple[str, ...]:
    """Return the methods whose requests a recorded one may answer."""
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
    """Return where a request for response number ``answer`` goes on; no request can name it."""
    return f"//thought/{answer}"


def _after_thinking(mine: Sequence[tuple[int, Entry]]) -> str:
    """Return the locations to which think times lead, and those of the requests that have none."""
    locations = [(MISS_URI, f"internal; {MISS}"), *((key, MISS) for key in PRIMING_KEYS)]
    locations += [(_thought_uri(n), f"internal; {_redirect(n, entry)}") for n, entry in mine]
    return "".join(f"    location = {quote(name)} {{ {what} }}\n" for name, what in locations)


def check_replayable(archive: Archive) -> None:
    """Check that nginx can answer with everything that was recorded.

    Raises:
        ConfigurationError: with every request that cannot be asked, every response that cannot be
            made.
    """
    problems = [
        f"{entry.method} {entry.url[:200]}: {problem}"
        for entry in archive.entries
        for problem in _problems(entry)
    ]
    if problems:
        raise ConfigurationError(
            [f"{archive.name} cannot be replayed: {problem}" for problem in problems]
        )


def _problems(entry: Entry) -> list[str]:
    problems = [header_problem(name, value) for name, value in entry.headers]
    problems.insert(0, request_problem(entry.method, entry.host, entry.path))
    if entry.status == SWITCHED:
        problems.append(talk_problem(entry))
    elif entry.status not in REASONS:
        problems.append(f"a response with status {entry.status} cannot be made")
    elif entry.headers_size is not None:
        natural = natural_size(entry.status, entry.body_size, entry.headers)
        missing = entry.headers_size - natural
        if missing < 0 or 0 < missing <= PADDING_BYTES:
            problems.append(
                f"a response header of {entry.headers_size} bytes cannot be made, nginx "
                f"needs {natural} or at least {natural + PADDING_BYTES + 1}"
            )
    return [problem for problem in problems if problem is not None]


def paddings(entry: Entry) -> tuple[str, ...]:
    """Return the values of the padding headers that bring the head to its recorded size.

    None when no size was recorded, as over HTTP/2.

    Raises:
        ValueError: the recorded head cannot be made.
    """
    if entry.headers_size is None:
        return ()
    return padding(entry.headers_size - natural_size(entry.status, entry.body_size, entry.headers))


def response_uri(answer: int) -> str:
    """Return the URI of response number ``answer``; no request can name it."""
    return f"//{answer}"


def response_location(
    answer: int, entry: Entry, constants: Constants, channels: Path = Path()
) -> str:
    """Return the location that sends the response of ``entry``; a WebSocket's has another."""
    if entry.status == SWITCHED:
        return ""
    headers = sent_headers(entry.headers)
    media_type = ""
    if entry.status != 204:  # nginx gives a 204 no content type of its own
        media_type = next((v for name, v in headers if name.lower() == "content-type"), "")
        headers = tuple(pair for pair in headers if pair[0].lower() != "content-type")
    headers += tuple((PADDING_NAME, value) for value in paddings(entry))
    lines = [
        "types { }",
        f"default_type {quote(media_type)};",
        'add_header Last-Modified "";',
        *(f"add_header {quote(name)} {constants.word(value)} always;" for name, value in headers),
    ]
    if entry.pieces:
        lines += piecewise(answer, channels)
    elif entry.body is None or entry.status in BODILESS:
        lines.append(f"alias {quote(EMPTY_FILE)};")
    else:
        # The configuration is Latin-1, and a path is bytes.
        path = str(entry.body.absolute()).encode("utf-8", "surrogateescape").decode("latin-1")
        lines.append(f"alias {constants.word(path)};")
    if entry.request_body_size:
        # The mirror module's side effect: the answer waits for the whole request.
        lines.append(f"mirror {quote(BODY_SINK)};")
    body = "".join(f"      {line}\n" for line in lines)
    return f"    location = {quote(response_uri(answer))} {{\n      internal;\n{body}    }}\n"
