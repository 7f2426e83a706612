"""Server blocks of nginx: each request of an origin gets its recorded response, or a miss.

A request takes three steps: its key replaces its URI, the key finds the answer, and an internal
redirect leads there.  With a think time the key leads to a pause, and the pause to the answer.  A
request with a condition has another key where a 304 was recorded, and then its own if need be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from testbed.archive.head import (
    BODILESS,
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
from testbed.server.asked import Asked
from testbed.server.channels import piecewise, socket_rules, talk_problem
from testbed.server.choice import CONDITION_WORD
from testbed.server.listeners import Listener
from testbed.server.matching import CHOSEN, KEY_MARK, Location
from testbed.server.quoting import Constants, quote
from testbed.server.think import Think, silence_s

MISS = "add_header X-Replay miss always; return 404;"
MISS_URI = "//miss"
# CORS refuses a response without headers; by its own 444 nginx closes without an answer.
BREAK = "return 444;"
RESET = f"reset_timedout_connection on; {BREAK}"
SILENCE = "//silence"
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
CHOICE = "choice"
"""The upstream that chooses answers: it says which, and nginx gives it."""


def server_block(
    listener: Listener,
    page: Asked,
    constants: Constants,
    tls_directives: str,
    think: Think | None = None,
) -> str:
    """Return the block of ``listener``, which is asked ``page``."""
    mine, entries = page.entries, dict(page.entries)
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
    first = f"{KEY_MARK}{condition}{key}"
    chosen = f"{KEY_MARK}{CHOSEN}{method}:$host$request_uri" if page.candidates else first
    asked = f"{listener.port} {method}:$host$request_uri"

    def located(location: Location) -> str:
        onward = first if location.name.startswith(KEY_MARK + CHOSEN) else f"{KEY_MARK}{key}"
        return _request_location(location, entries, onward, asked, think)

    return f"""\
  server {{
{listens}\
{tls_directives}\
{socket_rules() if any(each.status == SWITCHED for _, each in mine) else ""}\
    # Requests are compared as they came: no decoding, query included.  What nginx has read for
    # itself begins with one slash, so that no URL can name the locations below.
    location / {{ rewrite ^ "{chosen}" last; }}
    location ^~ "{KEY_MARK}" {{ {_miss(think)} }}
    location = "{BODY_SINK}" {{ internal; return 204; }}
{"".join(map(located, page.locations))}\
{"".join(_given_locations(page, entries, think))}\
{"" if think is None else _after_thinking(mine)}\
{"".join(response_location(number, entry, constants) for number, entry in mine)}  }}
"""


def alternative_service(listener: Listener) -> str:
    """Return what ``listener`` announces of its HTTP/3, as servers of it do (RFC 7838)."""
    return f'h3=":{listener.port}"; ma=86400'


def _request_location(
    location: Location, entries: Mapping[int, Entry], onward: str, asked: str, think: Think | None
) -> str:
    """Return a location of nginx; a request goes ``onward`` that it does not answer itself."""
    sign = "^~" if location.prefix else "="
    what = _miss(think)
    if location.match == "plain":
        what = f'rewrite ^ "{onward}" last;'
    elif location.match == "choose":
        what = f'proxy_set_header X-Asked "{asked}"; proxy_pass http://{CHOICE};'
    elif location.when:
        given = f'rewrite ^ "{_given_uri("exact", location.answer)}" last;'
        what = f'set $asked_condition "{CONDITION_WORD}"; if ($asked_condition ~ '
        what += f'{quote(location.when)}) {{ {given} }} rewrite ^ "{onward}" last;'
    elif location.answer is not None:
        what = _give(location.match, location.answer, entries, think)
    return f"    location {sign} {quote(location.name)} {{ {what} }}\n"


def _give(match: str, answer: int, entries: Mapping[int, Entry], think: Think | None) -> str:
    """Return the directives that send a request, and what matched it, to its answer."""
    entry = entries[answer]
    return f"set $replay {match}; " + (
        _redirect(answer, entry)
        if think is None
        else think.directives(f"{entry.method} {entry.url}", _thought_uri(answer))
    )


def _given_uri(match: str, answer: int | None) -> str:
    """Return where a request goes that is to have an answer; no request can name it."""
    return f"//{match}/{answer}"


def _given_locations(
    page: Asked, entries: Mapping[int, Entry], think: Think | None
) -> Iterator[str]:
    """Yield the locations to which choices and conditions lead."""
    given = {(m, n) for each in page.candidates for n in (each.answer, each.unchanged)
             for m in ("exact", "inexact") if n == each.answer or each.pattern}  # fmt: skip
    given |= {("exact", each.answer) for each in page.locations if each.when and each.answer}
    for match, answer in sorted(given):
        what = f"internal; {_give(match, answer, entries, think)}"
        yield f"    location = {quote(_given_uri(match, answer))} {{ {what} }}\n"


def _redirect(answer: int, entry: Entry) -> str:
    if not entry.is_answered:
        silent = silence_s(entry) is not None
        return f'rewrite ^ "{SILENCE if silent else ""}{response_uri(answer)}" last;'
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
        for entry in archive.served
        for problem in _problems(entry)
    ]
    if problems:
        raise ConfigurationError(
            [f"{archive.name} cannot be replayed: {problem}" for problem in problems]
        )


def _problems(entry: Entry) -> list[str]:
    problems = [header_problem(name, value) for name, value in entry.headers]
    problems.insert(0, request_problem(entry.method, entry.host, entry.path))
    if not entry.is_answered:
        problems = problems[:1]
    elif entry.status == SWITCHED:
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


def _failing_locations(uri: str, entry: Entry) -> str:
    """Return the location that fails as ``entry`` did, behind one that is silent as long."""
    ending = RESET if "RESET" in (entry.failure or "") else BREAK
    what = {uri: "return 404;" if entry.fails == "rule" else ending}
    if (waits_s := silence_s(entry)) is not None:
        what[SILENCE + uri] = f"echo_sleep {waits_s:.3f}; echo_exec {uri};"
    return "".join(f"    location = {quote(at)} {{ internal; {do} }}\n" for at, do in what.items())


def response_location(answer: int, entry: Entry, constants: Constants) -> str:
    """Return the location that sends the response of ``entry``, or fails as it did.

    A WebSocket's has another.
    """
    if entry.status == SWITCHED:
        return ""
    if not entry.is_answered:
        return _failing_locations(response_uri(answer), entry)
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
        lines += piecewise(answer)
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
