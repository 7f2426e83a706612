"""Recorded responses as nginx locations: status, head of the recorded size, and body.

Requests come here by an internal redirect, as that of ``error_page``: it takes the status that is
wanted, and it turns every method but HEAD into GET, so that a file can answer a POST.
"""

from __future__ import annotations

from testbed.archive.head import (
    BODILESS,
    PADDING_BYTES,
    PADDING_NAME,
    REASONS,
    header_problem,
    natural_size,
    padding,
    request_problem,
    sent_headers,
)
from testbed.archive.reading import Archive, Entry
from testbed.base.errors import ConfigurationError
from testbed.server.words import Constants, quote

EMPTY_FILE = "empty"
"""A file of no bytes in the server's folder: the body of responses that have none."""
BODY_SINK = "//body"


def check_replayable(archive: Archive) -> None:
    """See that nginx can answer with everything that was recorded.

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
    found = [header_problem(name, value) for name, value in entry.headers]
    found.insert(0, request_problem(entry.method, entry.host, entry.path))
    if entry.status not in REASONS:
        found.append(f"a response with status {entry.status} cannot be made")
    elif entry.headers_size is not None:
        natural = natural_size(entry.status, entry.body_size, entry.headers)
        missing = entry.headers_size - natural
        if missing < 0 or 0 < missing <= PADDING_BYTES:
            found.append(
                f"a response header of {entry.headers_size} bytes cannot be made, nginx "
                f"needs {natural} or at least {natural + PADDING_BYTES + 1}"
            )
    return [problem for problem in found if problem is not None]


def paddings(entry: Entry) -> tuple[str, ...]:
    """The values of the padding headers that bring the head to its recorded size.

    None when no size was recorded, as over HTTP/2.

    Raises:
        ValueError: the recorded head cannot be made.
    """
    if entry.headers_size is None:
        return ()
    return padding(entry.headers_size - natural_size(entry.status, entry.body_size, entry.headers))


def response_uri(answer: int) -> str:
    """The URI of response number ``answer``; no request can name it."""
    return f"//{answer}"


def response_location(answer: int, entry: Entry, constants: Constants) -> str:
    """The location that sends the response of ``entry``."""
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
    if entry.body is None or entry.status in BODILESS:
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
