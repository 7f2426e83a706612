"""Checks of the server's log: lengths against the page and the client, and its connections.

A response is the recorded one only if its head and its body have their lengths, to the byte; over
HTTP/2 and 3 heads are compressed (RFC 7541, RFC 9204), and the body alone is held against the page.
It arrived only if the client counts the body at least, and no more than the server sent: after a
redirect Chromium leaves the head out of what it reports.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from testbed.archive.head import BODILESS, natural_size
from testbed.archive.reading import Entry
from testbed.model import PageLoad, ServedConnection
from testbed.server.replay_log import LoggedAnswer

CLOSE_SAVES = len("keep-alive") - len("close")
"""A head that says ``Connection: close`` is so much shorter than the recorded one."""


def check_lengths(answered: Sequence[LoggedAnswer], load: PageLoad) -> tuple[str, ...]:
    """Return a sentence for each way in which responses were not the recorded ones.

    Responses that nginx could not send completely do not count: their client gave them up, and
    reports that itself.
    """
    complete = [a for a in answered if a.complete and (a.entry is None or a.entry.is_answered)]
    return (
        *_name("failures", "made", (_wrong_failure(answer) for answer in answered)),
        *_name("bodies", "sent", (_wrong_body(answer) for answer in complete)),
        *_name("response heads", "sent", (_wrong_head(answer) for answer in complete)),
        *_name("responses", "received", _wrongly_received(answered, load)),
        *_name("bodies", "received", (f"{url}: other bytes" for url in load.altered)),
    )


def says_close(answer: LoggedAnswer) -> bool:
    """Return whether the answer announced that the connection ends with it (HTTP/1.x)."""
    entry = answer.entry
    if entry is None or not entry.is_answered or not answer.protocol.startswith("HTTP/1."):
        return False
    return answer.sent_bytes - answer.body_bytes == _head_bytes(entry) - CLOSE_SAVES


def _head_bytes(entry: Entry) -> int:
    if entry.headers_size is not None:
        return entry.headers_size
    return natural_size(entry.status, entry.body_size, entry.headers)


def _wrong_failure(answer: LoggedAnswer) -> str | None:
    """Return what is wrong with an answer to what was recorded without one, or with a bare 404."""
    if answer.entry is None or answer.entry.is_answered or answer.entry.fails == "rule":
        return None
    return _differs(answer.request, answer.sent_bytes, 0)


def _wrong_body(answer: LoggedAnswer) -> str | None:
    if answer.entry is None:
        return None
    bodiless = answer.request.startswith("HEAD ") or answer.entry.status in BODILESS
    expected = 0 if bodiless else answer.entry.body_size
    return _differs(answer.request, answer.body_bytes, expected)


def _wrong_head(answer: LoggedAnswer) -> str | None:
    if answer.entry is None or not answer.protocol.startswith("HTTP/1.") or says_close(answer):
        return None
    return _differs(
        answer.request, answer.sent_bytes - answer.body_bytes, _head_bytes(answer.entry)
    )


def _wrongly_received(answered: Iterable[LoggedAnswer], load: PageLoad) -> Iterator[str | None]:
    sent: dict[str, list[LoggedAnswer]] = defaultdict(list)
    for answer in answered:
        sent[answer.request.partition(" ")[2]].append(answer)
    for request in load.requests:
        url = request.url.partition("#")[0]
        # Of what failed, or did not come over the network, nothing needs to have arrived.
        if not request.status or not request.transfer_bytes or url not in sent:
            continue
        # Browsers do not wait for the bodies of redirects.
        bodiless = 300 <= request.status < 400
        if not any(
            (0 if bodiless else answer.body_bytes) <= request.transfer_bytes <= answer.sent_bytes
            for answer in sent[url]
        ):
            yield _differs(url, request.transfer_bytes, sent[url][0].sent_bytes)


def _differs(what: str, actual: int, expected: int) -> str | None:
    return None if actual == expected else f"{what}: {actual} bytes instead of {expected}"


def _name(what: str, how: str, differences: Iterable[str | None]) -> Iterator[str]:
    wrong = [difference for difference in differences if difference is not None]
    if wrong:
        yield f"{len(wrong)} {what} were not {how} as recorded, the first {wrong[0]}"


def list_connections(answered: Iterable[LoggedAnswer]) -> tuple[ServedConnection, ...]:
    """Return each connection that carried a request, in the order of its first answer."""
    by_number: dict[str, list[LoggedAnswer]] = {}
    for answer in answered:
        by_number.setdefault(answer.connection, []).append(answer)
    return tuple(
        ServedConnection(
            client=requests[0].client,
            server=requests[0].server,
            requests=len(requests),
            announced_close=any(map(says_close, requests)),
            asked_close=any(answer.asked_close for answer in requests),
            missed=any(a.entry is None or not a.entry.is_answered for a in requests),
            early=sum(answer.early for answer in requests),
            resumed=requests[0].resumed,
            group=requests[0].group,
        )
        for requests in by_number.values()
    )
