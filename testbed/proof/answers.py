"""Answers: a request that its Range or its body tells from others for its URL got its own.

What the server says of that is held against what the client logged of requests and responses.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from testbed.archive.head import NOT_MODIFIED
from testbed.archive.posted import RECORDED_BODY, digest_body
from testbed.archive.reading import Archive, Entry
from testbed.proof.browser_log import LoggedRequest
from testbed.proof.check import check
from testbed.proof.evidence import Evidence

Asked = tuple[str, str, str, str]
"""Method, URL, Range, and the digest of the body."""
Got = tuple[int, int, str]
"""Status, bytes of the body as the client sees it, and Content-Range."""


@check("own answers", "load", "logs", "replay", "archive", source="RFC 9110, sections 9.3 and 14")
def check_own_answers(seen: Evidence) -> Iterator[str]:
    """Equal requests got their recorded answers, each its own, or are counted as inexact."""
    excuses = Counter(each.asked for each in seen.replay.inexact)
    excuses.update(seen.replay.missed)
    recorded: dict[Asked, list[Entry]] = defaultdict(list)
    told_apart: Counter[tuple[str, str]] = Counter()
    for entry in seen.archive.entries:
        posted = "" if entry.posted is None else entry.posted.whole
        if entry.request_body_size and not posted:
            posted = "unknown"
        own = recorded[entry.method, entry.url, entry.range, posted]
        # Of what has not changed a browser tells the answer that its cache has.
        own.append(own[-1] if own and entry.status == NOT_MODIFIED else entry)
    for asked, entries in recorded.items():
        told_apart[asked[:2]] += bool(asked[2] or asked[3] or len(entries) > 1)
    for log in seen.logs:
        left = {asked: Counter(map(_recorded, entries)) for asked, entries in recorded.items()}
        for request in log.requests:
            sent = _asked(request, seen.archive)
            own = recorded.get(sent, []) if sent else []
            is_open = any(entry.decoded_size is None for entry in own)
            if sent is None or is_open or not told_apart[sent[:2]]:
                continue
            got = _got(request.entry["response"])
            answers = left.get(sent, Counter())
            always = len({_recorded(entry) for entry in own}) == 1
            if answers[got] or (always and got in answers):
                answers[got] -= 1
            elif excuses[line := f"{sent[0]} {sent[1]}"]:
                excuses[line] -= 1
            else:
                yield f"{line} got {got[1]} bytes, which is not its own recorded answer"
                return


def _asked(request: LoggedRequest, archive: Archive) -> Asked | None:
    """Return what a request asked; ``None`` where it got nothing, or the log has not all of it."""
    made, url = request.entry["request"], request.told.url.partition("#")[0]
    status, got = request.told.status, request.entry["response"]
    size = got["content"]["size"]
    # Of redirects browsers do not await the body, and 304 has none; what a service worker hands on
    # is not counted as it comes.
    uncounted = size < 0 or (size == 0 and got["bodySize"] != 0)
    if not status or 300 <= status < 400 or uncounted or not request.is_timed:
        return None
    if any(rule.covers(url) for rule in archive.rules):
        return None
    headers = {header["name"].lower(): header["value"] for header in made["headers"]}
    digest = headers.get(RECORDED_BODY, "")
    length = int(headers.get("content-length", 0) or 0)
    if length and not digest:
        data = made.get("postData", {}).get("text", "").encode("utf-8", "replace")
        if len(data) != length:
            return None
        digest = digest_body(data, headers.get("content-type", "")).whole
    return made["method"], url, headers.get("range", ""), digest


def _got(response: Mapping[str, Any]) -> Got:
    return response["status"], response["content"]["size"], _part(
        (header["name"], header["value"]) for header in response["headers"]
    )  # fmt: skip


def _recorded(entry: Entry) -> Got:
    size = entry.body_size if entry.decoded_size is None else entry.decoded_size
    return entry.status, size, _part(entry.headers)


def _part(headers: Any) -> str:
    return next((value for name, value in headers if name.lower() == "content-range"), "")
