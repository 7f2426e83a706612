"""What a browser tells of a load, held against its log, DevTools and bytes of the capture.

A load time or a paint is what a page answers.  DevTools tells when it fired the load event and when
the largest paint was; the network stack what each request waited for, from when to when; and the
capture when the bytes came without which nothing can be shown.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from urllib.parse import urlsplit

from testbed.archive.head import NOT_MODIFIED
from testbed.archive.reading import Archive
from testbed.base.addresses import format_address
from testbed.capture.lookups import DNS_PORT, parse_question
from testbed.capture.packets import SYN
from testbed.client.chromium.milestones import add_up_shifts, milestones_of
from testbed.proof.browser_log import DATE_GRAIN_MS, BrowserLog, LoggedRequest, document_text
from testbed.proof.check import check, of_each
from testbed.proof.evidence import Evidence
from testbed.proof.load_time import BROWSER, BROWSER_BY_QUIC, FIRED_MS, Slack, held_ms, is_near
from testbed.proof.visits import VisitWindow

LOG_GRAIN_MS = 0.0015
"""The log has microseconds."""
PAINT_GRAIN_MS = 4.1
"""To which a browser rounds paints (W3C Paint Timing, section 2.4)."""
CLOCK_MS = 0.11
"""To which it rounds other moments (High Resolution Time 3, section 9.1)."""
SHORT_MS = 1.0
"""A wait that is no longer need not show: an address or a connection may have been there."""
DURATION = re.compile(r"""dur\s*=\s*"?([0-9]+(?:\.[0-9]+)?)""", re.IGNORECASE)
"""Of Server-Timing, in ms (section 2)."""
LARGEST, SHIFT = "largest-contentful-paint", "layout-shift"
BLOCKING = ("script", "stylesheet", "image")
"""Kinds that hold the load event back where a parser found them (HTML, section 4.2.4)."""
PAINTED_WHOLE = ("image/png", "image/jpeg", "image/svg+xml")
"""Of those it is only a whole picture that counts as largest (Largest Contentful Paint)."""

_Times = defaultdict[str, list[float]]
"""By host or address, in ms from the start of a visit, ascending."""


@check("log", "logs", "visits", source="HAR 1.2")
@of_each("logs")
def check_log(seen: Evidence, log: BrowserLog) -> Iterator[str]:
    """What a client's load says of a request or of the page, its log says as well."""
    timed = [each for each in log.requests if each.is_timed]
    first = min(timed, key=lambda each: each.asked_ms, default=None)
    for request in log.requests:
        yield from _differ(request, log, first, browsed=seen.browsed)
    unlogged = [e.url for e in log.unlogged if e.status or not seen.browsed]
    if unlogged:
        yield f"the client's log has no {unlogged[0]}"
    if seen.browsed:
        yield from _differ_of_page(log, real_time=not seen.virtual_time)
    elif log.load.plt_ms != (told_ms := log.moment("onLoad")):
        yield f"plt_ms is {log.load.plt_ms}, the client's log says {told_ms}"


@check("load event", "browsed", "logs", "visits", source="HTML, section 8.2.7")
@of_each("logs")
def check_load_event(seen: Evidence, log: BrowserLog) -> Iterator[str]:
    """A load ended when DevTools says so, and after all that holds a load event back."""
    plt_ms, fired_ms = log.load.plt_ms, log.moment("_loadEventFired")
    document, parsed_ms, dcl_ms = log.document, log.moment("onContentLoad"), log.load.dcl_ms
    grain_ms = FIRED_MS if seen.virtual_time else BROWSER.late_ms
    if fired_ms is None:
        yield "DevTools told of no load event"
    elif not _same(plt_ms, fired_ms, grain_ms):
        yield f"the load time is {plt_ms:.3f} ms, DevTools says {fired_ms:.3f} ms"
    if dcl_ms is not None and not (parsed_ms and _same(dcl_ms, parsed_ms, grain_ms)):
        yield f"DOMContentLoaded ended after {dcl_ms:.3f} ms, DevTools says {parsed_ms} ms"
    if document is None:
        return
    if parsed_ms is not None and not (
        document.told.end_ms - BROWSER.early_ms <= parsed_ms <= plt_ms + BROWSER.early_ms
    ):
        yield f"the document was parsed at {parsed_ms:.3f} ms, before it had come or the load ended"
    lazy = b"lazy" in (document_text(seen.archive) or b"lazy") if seen.has("archive") else True
    due = [document, *(each for each in log.requests if _holds_back(each, log, lazy=lazy))]
    late = [each for each in due if each.told.end_ms > plt_ms + BROWSER.early_ms]
    if late:
        yield (
            f"the load time is {plt_ms:.3f} ms, and {late[0].told.url}, which holds the load event "
            f"back, ended after {late[0].told.end_ms:.3f} ms"
        )


@check("phases", "virtual_time", "browsed", "logs", "visits", "capture", "hosts", "quic")
@of_each("logs")
def check_phases(seen: Evidence, log: BrowserLog) -> Iterator[str]:
    """Each phase of a request ended with packets of its host: an answer, a handshake, its bytes.

    What the browser waits for in between is nothing but that, so its phases make up the time from
    the begin of a request to its end.
    """
    began_ns = log.visit.zero_ns(seen.capture, seen.clients)
    if began_ns is None:
        return
    answered, left, came_from = _read_packets(seen, log.visit, began_ns)
    slack = BROWSER_BY_QUIC if seen.quic else BROWSER
    slack = slack._replace(late_ms=slack.late_ms + held_ms(seen))
    both = Slack(slack.late_ms, slack.late_ms)  # a request may lie before it leaves
    wrong: dict[str, list[LoggedRequest]] = defaultdict(list)
    for request in filter(log.is_judged, log.requests):
        address = str(request.entry.get("serverIPAddress", ""))
        host = (urlsplit(request.told.url).hostname or "").rstrip(".")
        came, waits, made = came_from[address], request.waits, request.entry["request"]
        fresh = max(waits["dns"], waits["connect"]) >= 0 or made["method"] != "GET"
        gap_ms = request.ready_ms - request.connected_ms
        # Early data of QUIC is sent while the connection opens.
        early_ms = max(0.0, waits["connect"]) if made["httpVersion"] == "h3" else 0.0
        # Of a preflight the browser tells when it is under way.
        early_ms += SHORT_MS if (request.told.initiator or "").startswith("preflight") else 0.0
        # Where others share a connection, a request may have to wait for theirs to leave.
        shares = made["httpVersion"] in ("h2", "h3")
        sent = slack._replace(early_ms=request.waits["wait"]) if shares else both
        for words, holds in (
            ("phases do not make up the time that it took",
             -CLOCK_MS - early_ms <= gap_ms and (fresh or gap_ms <= slack.late_ms)),
            ("address was not found when an answer came",
             waits["dns"] < SHORT_MS
             or is_near(request.found_ms, answered[host], slack)),
            ("connection was not opened when a packet came",
             waits["connect"] < SHORT_MS or is_near(request.connected_ms, came, slack)),
            ("request was not sent when data left",
             is_near(request.sent_ms, left[address], sent)),
            ("answer did not begin when data of its server came",
             is_near(request.head_ms, came, slack)),
            ("answer did not end when data of its server came",
             is_near(request.told.end_ms, came, slack)),
        ):  # fmt: skip
            if not holds and request.told.status:
                wrong[words].append(request)
    for words, requests in wrong.items():
        yield f"{requests[0].told.url}: its {words}, one of {len(requests)}"


@check("paints", "browsed", "logs", "visits", source="W3C Paint Timing; Largest Contentful Paint")
@of_each("logs")
def check_paints(seen: Evidence, log: BrowserLog) -> Iterator[str]:
    """Nothing was painted before the bytes for it had come, and the largest when DevTools says so.

    Of several visits DevTools is asked at the last one alone.
    """
    yield from _check_bytes_of_paints(seen, log)
    if log is seen.logs[-1]:
        yield from _check_timeline(log)


def list_as_told(seen: Evidence) -> tuple[str, ...]:
    """Return the metrics of a browser that nothing shows but its own word, by their names."""
    if not (seen.browsed and seen.has("logs")):
        return ()
    told, load = [], seen.load
    largest = [paint["ms"] for paint in seen.logs[-1].timeline(LARGEST)]
    for name in ("fp_ms", "fcp_ms"):
        value = getattr(load, name)
        if value is not None and not (largest and abs(value - largest[0]) <= PAINT_GRAIN_MS):
            told.append(name)
    if load.first_fcp_ms is not None:
        told.append("first_fcp_ms")
    told += [name for name in ("lcp_element", "long_tasks", "tbt_ms") if getattr(load, name)]
    told += ["timings"] if any(each.kind != "server" for each in load.timings) else []
    return tuple(told)


def _differ(
    request: LoggedRequest, log: BrowserLog, first: LoggedRequest | None, *, browsed: bool
) -> Iterator[str]:
    told, url = request.told, request.told.url
    logged = {name: request.waits[name] for name in ("dns", "connect")}
    # Of an older revision the log alone has these.
    if browsed and told.blocked_ms is not None:
        timings = request.entry["timings"]
        logged |= {"blocked": request.waits["blocked"], "tls": float(timings.get("ssl", -1)),
                   "queued": float(timings.get("_queued", 0))}  # fmt: skip
    for name, waited in logged.items():
        value = getattr(told, f"{name}_ms")
        if not _same(-1.0 if value is None else value, waited, LOG_GRAIN_MS):
            yield f"{url}: {name}_ms is {value}, its log says {waited:g} ms"
    if told.transfer_bytes is not None:
        size = request.entry["response"]["_transferSize"]
        # What the network has not ended has none in the log.
        if size >= 0 and told.transfer_bytes != size:
            yield f"{url}: {told.transfer_bytes} bytes, its log says {size}"
    if (told.status or not browsed) and told.status != request.entry["response"]["status"]:
        yield f"{url}: status {told.status}, its log says {request.entry['response']['status']}"
    after_ms = request.logged_ms - log.started_ms
    if browsed:
        # What came from within the browser has no such time, though it may be the page itself.
        other = (
            request.is_timed
            and first is not None
            and not _same(request.asked_ms - first.asked_ms, request.logged_ms - first.logged_ms,
                          DATE_GRAIN_MS)
        )  # fmt: skip
    else:
        lasted_ms = told.end_ms - told.start_ms
        other = not (
            _same(told.start_ms, after_ms, LOG_GRAIN_MS)
            and _same(lasted_ms, request.entry["time"], LOG_GRAIN_MS)
        )
    if other:
        yield f"{url}: it began after {told.start_ms:.3f} ms, its log has other times"


def _differ_of_page(log: BrowserLog, *, real_time: bool) -> Iterator[str]:
    load, document = log.load, log.document
    for name, logged in milestones_of(log.page.get("_seen"), 0.0, real_time=real_time).items():
        value = getattr(load, name)
        if name != "ttfb_ms" and value != logged:
            yield f"{name} is {value}, the browser's log says {logged}"
    for name, moment, grain in (
        ("plt_ms", log.moment("onLoad"), LOG_GRAIN_MS),
        ("ttfb_ms", document.head_ms if document and load.ttfb_ms else None, BROWSER.early_ms),
    ):
        value = getattr(load, name)
        if (value is None) != (moment is None) or not _same(value or 0, moment or 0, grain):
            yield f"{name} is {value}, the browser's log says {moment}"
    moments = (at for each in load.requests for at in (each.start_ms, each.end_ms))
    if load.settled_ms is not None and not any(
        _same(load.settled_ms, at, LOG_GRAIN_MS) for at in (load.plt_ms, *moments)
    ):
        yield f"settled_ms is {load.settled_ms}, when no request began or ended"


def _holds_back(request: LoggedRequest, log: BrowserLog, *, lazy: bool) -> bool:
    """Whether the load event waits for it: the page's own parser found it, and it is not lazy."""
    return (
        request.kind in BLOCKING[: 2 if lazy else 3]
        and request.is_parsed
        and request.entry.get("_initiator") == log.page["title"]
        and not request.entry["request"].get("_isLinkPreload")
        and request.told.status > 0
        and request.told.start_ms < log.load.plt_ms
    )


def _read_packets(seen: Evidence, visit: VisitWindow, began_ns: int) -> tuple[_Times, ...]:
    """Return when look-ups were answered, and when data left and data or openings came."""
    answered, left, came = _Times(list), _Times(list), _Times(list)
    for packet in seen.capture.packets:
        if not packet.source or not visit.holds(packet.at_ns):
            continue
        at_ms = (packet.at_ns - began_ns) / 1e6
        if packet.protocol == "UDP" and packet.source_port == DNS_PORT:
            asked = parse_question(packet.payload)
            if asked is not None:
                answered[asked[0]].append(at_ms)
        elif packet.source in seen.clients and packet.payload_bytes:
            left[format_address(packet.target)].append(at_ms)
        elif packet.target in seen.clients and (packet.payload_bytes or packet.flags & SYN):
            came[format_address(packet.source)].append(at_ms)
    return answered, left, came


def _check_bytes_of_paints(seen: Evidence, log: BrowserLog) -> Iterator[str]:
    load, document = log.load, log.document
    first_ms, content_ms, largest_ms = load.fp_ms, load.fcp_ms, load.lcp_ms
    if first_ms is not None and content_ms is not None and first_ms > content_ms:
        yield f"the first paint was after {first_ms:g} ms, that of contents after {content_ms:g} ms"
    if content_ms is not None and largest_ms is not None and content_ms > largest_ms:
        yield f"contents were painted after {content_ms:g} ms, the largest after {largest_ms:g} ms"
    told_ms = min((each for each in (first_ms, content_ms) if each is not None), default=None)
    if told_ms is None or document is None:
        return
    body_line = find_body(seen.archive) if seen.has("archive") else None
    needed = [(document.told.url, document.head_ms)]
    needed += [
        (each.told.url, each.told.end_ms)
        for each in log.requests
        if body_line is not None and _blocks_paints(each, log, body_line)
    ]
    url, needed_ms = max(needed, key=lambda each: each[1])
    if told_ms < needed_ms - PAINT_GRAIN_MS:
        yield f"the first paint was after {told_ms:g} ms, {url} came after {needed_ms:.3f} ms"


def _blocks_paints(request: LoggedRequest, log: BrowserLog, body_line: int) -> bool:
    """Whether nothing is painted before it (HTML, section 4.2.4.3: in the head, not the body).

    The preload scanner takes what is in the body for blocking as well.
    """
    entry = request.entry
    return (
        entry.get("_renderBlocking") == "blocking"
        and request.kind in BLOCKING[:2]
        and request.is_parsed
        and entry.get("_initiator") == log.page["title"]
        and 0 < entry.get("_initiator_line", 0) < body_line
        and request.told.status > 0
    )


def _check_timeline(log: BrowserLog) -> Iterator[str]:
    load, largest, shifts = log.load, log.timeline(LARGEST), log.timeline(SHIFT)
    moments = [paint["ms"] for paint in largest]
    if load.lcp_ms is not None and not (
        moments and any(_same(load.lcp_ms, each, PAINT_GRAIN_MS) for each in moments)
    ):
        yield f"the largest paint was after {load.lcp_ms:g} ms, DevTools says {moments}"
    own = [paint for paint in largest if _same(load.lcp_ms or 0.0, paint["ms"], PAINT_GRAIN_MS)]
    named = {paint.get("url") for paint in own}
    if "lcp" in (log.page.get("_seen") or {}) and load.lcp_url not in named and named:
        yield f"the largest paint was of {load.lcp_url}, DevTools says {named}"
    if load.lcp_ms is None and moments and load.fcp_ms is not None:
        yield f"there was no largest paint, DevTools says {moments}"
    if load.fcp_ms is not None and moments and load.fcp_ms > moments[0] + PAINT_GRAIN_MS:
        yield f"contents were painted after {load.fcp_ms:g} ms, the first of them {moments[0]} ms"
    ends = {each.told.url: each for each in log.requests if each.told.status}
    for paint in largest:
        picture = ends.get(paint.get("url", ""))
        if picture is None:
            continue
        whole = picture.entry["response"]["content"]["mimeType"] in PAINTED_WHOLE
        came_ms = picture.told.end_ms if whole else picture.head_ms
        if paint["ms"] < came_ms - PAINT_GRAIN_MS:
            yield (
                f"{picture.told.url} was painted after {paint['ms']:g} ms, it came after "
                f"{came_ms:.3f} ms"
            )
    yield from _check_timings(log)
    last_ms = max((at for at, _ in (log.page.get("_seen") or {}).get("shifts") or ()), default=0.0)
    known = [(e["ms"], e["value"]) for e in shifts if e["ms"] <= last_ms + CLOCK_MS]
    if load.cls is not None and not _same(load.cls, add_up_shifts(known), 1e-9):
        yield f"the layout shift is {load.cls:g}, DevTools says {add_up_shifts(known):g}"


def _check_timings(log: BrowserLog) -> Iterator[str]:
    """An element is painted after its picture came, and a server's timings are in its answer."""
    answers = defaultdict(list)
    for request in log.requests:
        answers[request.told.url].append(request)
    for timing in log.load.timings:
        own = answers.get(timing.url, ())
        # What is not whole in the log is a cache's to tell.
        if not own or any(each.told.status in (0, NOT_MODIFIED) for each in own):
            continue
        came_ms = min(each.head_ms for each in own)
        if timing.kind == "element" and timing.start_ms < came_ms - PAINT_GRAIN_MS:
            yield f"{timing.url} was painted after {timing.start_ms:g} ms, came after {came_ms:g}"
        told = "\n".join(
            header["value"]
            for each in own
            for header in each.entry["response"].get("headers", ())
            if header["name"].lower() == "server-timing"
        )
        lasted = {0.0, *map(float, DURATION.findall(told))}
        if timing.kind == "server" and not (timing.name in told and timing.lasted_ms in lasted):
            yield f"{timing.url}: it says {timing.name} {timing.lasted_ms:g} ms, its head {told!r}"


def find_body(page: Archive) -> int | None:
    """Return the line of the document where its body begins, from 1; ``None``: it is not said."""
    text = document_text(page)
    place = -1 if text is None else text.lower().find(b"<body")
    return None if text is None or place < 0 else text.count(b"\n", 0, place) + 1


def _same(one: float, other: float, grain: float) -> bool:
    return abs(one - other) <= grain + 1e-9
