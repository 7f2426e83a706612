"""Checks of the server's log: lengths against the page and the client, and its connections.

A response is the recorded one only if its head and its body have their lengths, to the byte; over
HTTP/2 heads are compressed (RFC 7541), and the body alone is held against the page.  It arrived
only if the client counts the body at least, and no more than the server sent: after a redirect
Chromium leaves the head out of what it reports.
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

    What nginx could not send to its end was given up by the client, which says so itself.
    """
    whole = [one for one in answered if one.complete]
    return (
        *_name("bodies", "sent", (_wrong_body(one) for one in whole)),
        *_name("response heads", "sent", (_wrong_head(one) for one in whole)),
        *_name("responses", "received", _wrongly_received(answered, load)),
        *_name("bodies", "received", (f"{url}: other bytes" for url in load.altered)),
    )


def says_close(one: LoggedAnswer) -> bool:
    """Return whether the answer announced that the connection ends with it (HTTP/1.x)."""
    if one.entry is None or not one.protocol.startswith("HTTP/1."):
        return False
    return one.sent_bytes - one.body_bytes == _head_bytes(one.entry) - CLOSE_SAVES


def _head_bytes(entry: Entry) -> int:
    if entry.headers_size is not None:
        return entry.headers_size
    return natural_size(entry.status, entry.body_size, entry.headers)


def _wrong_body(one: LoggedAnswer) -> str | None:
    if one.entry is None:
        return None
    bodiless = one.request.startswith("HEAD ") or one.entry.status in BODILESS
    due = 0 if bodiless else one.entry.body_size
    return _differs(one.request, one.body_bytes, due)


def _wrong_head(one: LoggedAnswer) -> str | None:
    if one.entry is None or not one.protocol.startswith("HTTP/1.") or says_close(one):
        return None
    return _differs(one.request, one.sent_bytes - one.body_bytes, _head_bytes(one.entry))


def _wrongly_received(answered: Iterable[LoggedAnswer], load: PageLoad) -> Iterator[str | None]:
    sent: dict[str, list[LoggedAnswer]] = defaultdict(list)
    for one in answered:
        sent[one.request.partition(" ")[2]].append(one)
    for seen in load.requests:
        url = seen.url.partition("#")[0]
        # Of what failed, or did not come over the network, nothing needs to have arrived.
        if not seen.status or not seen.transfer_bytes or url not in sent:
            continue
        # Browsers do not wait for the bodies of redirects.
        bodiless = 300 <= seen.status < 400
        if not any(
            (0 if bodiless else one.body_bytes) <= seen.transfer_bytes <= one.sent_bytes
            for one in sent[url]
        ):
            yield _differs(url, seen.transfer_bytes, sent[url][0].sent_bytes)


def _differs(what: str, found: int, due: int) -> str | None:
    return None if found == due else f"{what}: {found} bytes instead of {due}"


def _name(what: str, how: str, found: Iterable[str | None]) -> Iterator[str]:
    wrong = [one for one in found if one is not None]
    if wrong:
        yield f"{len(wrong)} {what} were not {how} as recorded, the first {wrong[0]}"


def list_connections(answered: Iterable[LoggedAnswer]) -> tuple[ServedConnection, ...]:
    """Return each connection that carried a request, in the order of its first answer."""
    by_number: dict[str, list[LoggedAnswer]] = {}
    for one in answered:
        by_number.setdefault(one.connection, []).append(one)
    return tuple(
        ServedConnection(
            client=requests[0].client,
            server=requests[0].server,
            requests=len(requests),
            announced_close=any(map(says_close, requests)),
            asked_close=any(one.asked_close for one in requests),
            missed=any(one.entry is None for one in requests),
        )
        for requests in by_number.values()
    )
