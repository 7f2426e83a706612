"""Conduct of a client: what it asked for, when, in which order and over how many connections.

Each client has rules that it states (``testbed/client``), and which are stated here once more, so
that a client that keeps others than these is found: what both read would be wrong on both sides.
Bytes of requests are those that left, in clear or opened with the client's keys.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from math import inf
from urllib.parse import urlsplit

from testbed.archive.reading import Entry
from testbed.base.addresses import format_address
from testbed.base.seeding import think_factor
from testbed.capture.application import METHODS
from testbed.capture.flows import Flow, payloads, progress
from testbed.capture.handshakes import read_sent
from testbed.capture.packets import FIN, HTTPS_PORT, RST, Packet
from testbed.model.impairments import is_lossy
from testbed.proof.browser_log import LoggedRequest
from testbed.proof.check import check
from testbed.proof.evidence import Evidence
from testbed.proof.load_time import Slack, held_ms, is_near

MOST_CONNECTIONS = 6
"""Of graph and Chromium to an origin over HTTP/1.1, of wget2 in all."""
GRAPH_HEAD_BYTES = 490
GRAPH_AGENT = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.22 (KHTML, like Gecko) "
    "Chrome/25.0.1364.160 Safari/537.22"
)
LATE_MS, TIMER_LATE_MS = 0.1, 1.1
"""By how much graph may act behind bytes (0.03 ms), and behind a timer, of ms (epoll_wait(2))."""
SCANNED_LATE_MS = 5.0
"""By how much Chromium may ask behind the end of the document for what that names (0.8 ms)."""
WGET2_HEAD_BYTES = 200
"""Of a request of wget2 at the most, besides its line and its host's name."""
CHROMIUM_AGENT = (
    r"Mozilla/5\.0 \(X11; Linux \w+\) AppleWebKit/537\.36 \(KHTML, like Gecko\) "
    r"(?:Headless)?Chrome/(?:{version}|{major}\.0\.0\.0) Safari/537\.36"
)
CHROMIUM_HEADERS = re.compile(
    r"accept(-encoding|-language)?|access-control-request-.*|cache-control|connection|cookie|"
    r"content-(length|type)|dnt|host|if-.*|last-event-id|origin|ping-(from|to)|pragma|priority|"
    r"purpose|range|referer|save-data|sec-.*|service-worker.*|te|upgrade|user-agent|"
    r"upgrade-insecure-requests|:(authority|method|path|scheme)"
)
"""What the browser itself sends; scripts may add to what they ask for with fetch()."""
SCRIPTED = ("fetch", "xhr", "eventsource", "websocket", "ping", "preflight", "other")
Server = tuple[str, int]
"""A host, or an address that none has, and a port."""


@check("conduct of graph", "virtual_time", "load", "logs", "archive", "capture", "flows", "hosts")
def check_graph(seen: Evidence) -> Iterator[str]:
    """Graph asks for each resource as soon as its rules say, to the microsecond, and not sooner.

    That is: with the bytes of a document that name it, the recorded time behind the end of a script
    or a style sheet, or with the head that redirects to it; and at once, or with the end of another
    response where all six connections to its origin are taken, by priority.
    """
    if seen.load.client != "graph":
        return
    walk = _Walk(seen)
    wrong = [words for request in walk.asked.values() for words in _check_asked(walk, request)]
    wrong += [words for server in walk.servers for words in _check_pool(walk, server)]
    if wrong:
        yield f"{wrong[0]}, one of {len(wrong)} of graph's rules that were not kept"


@check("requests sent", "load", "logs", "flows", "hosts", source="RFC 9112")
def check_requests_sent(seen: Evidence) -> Iterator[str]:
    """A client sent as many bytes of requests as its log and its rules say, and its own heads."""
    yield from _check_sizes(seen)
    for log in seen.logs:
        for request in log.requests:
            wrong = RULES[seen.load.client](seen, request)
            if wrong:
                yield f"{request.told.url}: {wrong}"
                return


@check("client's log", "load", "condition")
def check_logged(seen: Evidence) -> Iterator[str]:
    """A client that keeps a log left it."""
    if seen.load.client in RULES and not seen.has("logs"):
        yield "the client left no log"


@check("connections of a client", "load", "logs", "flows", "own_client")
def check_connections(seen: Evidence) -> Iterator[str]:
    """No client had more connections to an origin at once than its rules say, wget2 as many."""
    client = seen.load.client
    over_h2 = any(h.alpn == "h2" for h in seen.handshakes) if seen.has("handshakes") else False
    if client == "wget2":
        most = _most_at_once([(f.syn.at_ns, _ended_ns(f)) for f in seen.flows.flows])
        due = min(MOST_CONNECTIONS, len(seen.load.requests))
        if most > MOST_CONNECTIONS or (most < due and not over_h2):
            yield f"wget2 had {most} connections at once, its rules say {due}"
        return
    for log in seen.logs:
        spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
        # Frames of others, and what is asked for without cookies, have connections of their own.
        alone = sum(1 for each in log.requests if each.kind == "document") <= 1
        for each in filter(lambda each: each.is_timed and alone, log.requests):
            made = each.entry["request"]
            names = {header["name"].lower() for header in made["headers"]}
            if made["httpVersion"].lower().startswith("http/1") and not (
                "origin" in names or each.kind in SCRIPTED
            ):
                origin = "/".join(each.told.url.split("/", 3)[:3])
                spans[origin].append((each.ready_ms, each.told.end_ms))
        for origin, own in spans.items():
            most = _most_at_once(own)
            if most > MOST_CONNECTIONS:
                yield f"{client} asked {origin} for {most} resources at once"


@check("preload scanner", "virtual_time", "load", "logs", "archive")
def check_scanner(seen: Evidence) -> Iterator[str]:
    """Chromium asks for each script and style sheet that the document names once that has come."""
    if seen.load.client != "chromium":
        return
    root = seen.archive.root_url
    named = {e.url for e in seen.archive.entries if e.how == "parser" and e.carrier == root}
    for log in seen.logs:
        document = log.document
        late = [
            each
            for each in log.requests
            if document is not None
            and each.kind in ("script", "stylesheet")
            and each.is_parsed
            and each.told.url in named
            and each.told.start_ms > document.told.end_ms + SCANNED_LATE_MS
        ]
        if late and document is not None:
            yield (
                f"{late[0].told.url} was asked for after {late[0].told.start_ms:.3f} ms, the "
                f"document that names it ended after {document.told.end_ms:.3f} ms"
            )


class _Walk:
    """A load of graph, its requests by URL; what has a URL that occurs twice is left out."""

    def __init__(self, seen: Evidence) -> None:
        self.seen = seen
        (log,), entries = seen.logs, [e for e in seen.archive.entries if not e.after_load]
        times = Counter(entry.url for entry in entries)
        self.entries = {e.url: e for e in entries if times[e.url] == 1}
        self.asked = {r.told.url: r for r in log.requests
                      if r.told.url in self.entries and r.told.status}  # fmt: skip
        self.zero_ns = seen.visits[0].zero_ns(seen.capture, seen.clients) or 0
        self.slack_ms = LATE_MS + held_ms(seen)
        self.servers = _by_server(seen)
        self.came_ms = sorted(
            self.ms(p) for p in seen.capture.packets if p.source and p.target in seen.clients
        )
        parsed: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            parent = self.entries.get(entry.parent or "")
            if entry.how in ("parser", "frame") and parent is not None and "html" in parent.mime:
                parsed[parent.url].append(entry)
        self.shares = {
            child.url: _share(self.entries[url], child, rank, len(children))
            for url, children in parsed.items()
            for rank, child in enumerate(children, 1)
        }

    def ms(self, packet: Packet) -> float:
        return (packet.at_ns - self.zero_ns) / 1e6

    def follows(self, moment_ms: float) -> bool:
        """Whether something came just before."""
        return is_near(moment_ms, self.came_ms, Slack(self.slack_ms, self.slack_ms))

    def body_came_ms(self, url: str) -> Iterator[tuple[float, float]]:
        """Yield when bytes of a response in clear came, and which share of its body is there."""
        entry, request = self.entries[url], self.asked[url]
        line = f"{entry.method} {entry.path}".encode()[:100]
        head = (request.told.transfer_bytes or 0) - entry.body_size
        for flow in self.servers.get((entry.host, entry.port), ()):
            asked = [p for _, p in payloads(flow, by_client=True) if p.payload.startswith(METHODS)]
            mine = [p for p in asked if p.payload.startswith(line)
                    and abs(self.ms(p) - request.began_ms) <= self.slack_ms + LATE_MS]  # fmt: skip
            if not mine:
                continue
            base = 0
            for at_ns, reached in progress(flow):
                if at_ns < mine[0].at_ns:
                    base = reached
                else:
                    part = (reached - base - head) / max(1, entry.body_size)
                    yield (at_ns - self.zero_ns) / 1e6, part
            return


def _share(document: Entry, child: Entry, rank: int, children: int) -> float:
    """Which share of a document has to be there for a child: as recorded, else evenly."""
    lasted, gap = document.dur_ms, child.gap_ms
    if not lasted or lasted < 0 or gap is None:
        return rank / (children + 1)
    return min(1.0, max(0.0, 1 + gap / lasted))


def _check_asked(walk: _Walk, request: LoggedRequest) -> Iterator[str]:
    url, began_ms = request.told.url, request.told.start_ms
    entry, seen = walk.entries[url], walk.seen
    due_ms, late_ms = 0.0, LATE_MS
    if entry.how != "root":
        parent = walk.asked.get(entry.parent or "")
        if parent is None:
            return
        if url in walk.shares:
            came = list(walk.body_came_ms(parent.told.url)) if not is_lossy(seen.link) else []
            due_ms = next(
                (at for at, part in came if 0 <= walk.shares[url] <= part), parent.head_ms
            )
            late_ms = walk.slack_ms if came else parent.told.end_ms - due_ms + walk.slack_ms
            if not came and not walk.follows(began_ms):
                yield f"{url} was asked for after {began_ms:.3f} ms, when nothing came"
        elif entry.how == "redirect":
            due_ms, late_ms = parent.head_ms, walk.slack_ms
        else:
            due_ms, late_ms = parent.told.end_ms, TIMER_LATE_MS
            if seen.condition.think_time == "recorded" and entry.gap_ms is not None:
                spread = seen.condition.think_spread_pct
                factor = think_factor(seen.trial.seed, f"recorded {entry.method} {url}", spread)
                due_ms += max(0.0, entry.gap_ms) * factor
    if not -held_ms(seen) - 0.01 <= began_ms - due_ms <= late_ms:
        yield f"{url} was asked for after {began_ms:.3f} ms, due was {due_ms:.3f} ms"


def _check_pool(walk: _Walk, server: Server) -> Iterator[str]:
    entries = walk.entries
    own = [r for url, r in walk.asked.items() if (entries[url].host, entries[url].port) == server]
    flows = walk.servers[server]
    first_ms = min(walk.ms(flow.syn) for flow in flows)
    spans = [(walk.ms(f.syn), (_ended_ns(f) - walk.zero_ns) / 1e6) for f in flows]
    left_ms = sorted(walk.ms(p) for f in flows for _, p in payloads(f, by_client=True))
    for request in own:
        url, at_ms = request.told.url, max(request.told.start_ms, first_ms) + walk.slack_ms + 0.1
        under_way = sum(1 for r in own if r.told.start_ms <= at_ms - 0.1 and r.told.end_ms > at_ms)
        alive = sum(1 for began, ended in spans if began <= at_ms <= ended)
        if alive < min(MOST_CONNECTIONS, under_way):
            yield f"{url} waited for one of {alive} connections"
        if request.began_ms - request.told.start_ms > TIMER_LATE_MS and not walk.follows(
            request.began_ms
        ):
            yield f"{url} was sent after {request.began_ms:.3f} ms, when nothing came"
        place = bisect_left(left_ms, request.began_ms - walk.slack_ms)
        if place == len(left_ms) or left_ms[place] > request.began_ms + walk.slack_ms + 0.2:
            yield f"{url} was not sent after {request.began_ms:.3f} ms"
    for one, other in pairwise(sorted(own, key=lambda r: r.began_ms)):
        waited = other.told.start_ms < one.began_ms - LATE_MS and one.began_ms < other.began_ms
        if waited and _priority(walk, other) > _priority(walk, one):
            yield f"{one.told.url} was sent before {other.told.url}, which goes before it"


def _priority(walk: _Walk, request: LoggedRequest) -> int:
    mime = walk.entries[request.told.url].mime
    if "html" in mime or "css" in mime:
        return 2
    return int(any(word in mime for word in ("javascript", "ecmascript", "font")))


def _graph_head(seen: Evidence, request: LoggedRequest) -> str | None:
    """Say what is wrong with a head of graph's, which is filled up to ``GRAPH_HEAD_BYTES``."""
    told = {h["name"]: h["value"] for h in request.entry["request"]["headers"]}
    size = request.entry["request"]["headersSize"]
    _, _, target = request.told.url.partition("#")[0].partition("://")[2].partition("/")
    line = len(f"{request.entry['request']['method']} /{target} HTTP/1.1\r\n\r\n")
    bare = line + sum(len(n) + len(v) + 4 for n, v in told.items() if n != "Cookie")
    due = max(GRAPH_HEAD_BYTES, bare) if bare + len("Cookie: id=\r\n") < GRAPH_HEAD_BYTES else bare
    if told.get("User-Agent") != GRAPH_AGENT or size != due:
        return f"a head of {size} bytes by {told.get('User-Agent')}, due were {due}"
    return None


def _chromium_head(seen: Evidence, request: LoggedRequest) -> str | None:
    headers = request.entry["request"]["headers"]
    version = seen.load.client_version.partition(" ")[0].partition("/")[2]
    major = version.partition(".")[0]
    agent = CHROMIUM_AGENT.format(version=re.escape(version), major=major)
    if seen.has("device") and seen.device is not None and seen.device.user_agent:
        agent = re.escape(seen.device.user_agent)
    other = [h["name"] for h in headers if not CHROMIUM_HEADERS.fullmatch(h["name"].lower())]
    if other and request.kind not in SCRIPTED:
        return f"it was sent with {other[0]}, which Chromium does not send"
    own = [h["value"] for h in headers if h["name"].lower() == "user-agent"]
    wrong = [each for each in own if re.fullmatch(agent, each) is None]
    if request.kind not in SCRIPTED and (wrong or (request.is_parsed and not own)):
        return f"its user agent is {wrong or own}"
    return None


def _wget2_head(seen: Evidence, request: LoggedRequest) -> str | None:
    size = request.entry["request"]["headersSize"]
    most = WGET2_HEAD_BYTES + 2 * len(request.told.url)
    return f"a head of {size} bytes, more than {most}" if size > most else None


RULES: Mapping[str, Callable[[Evidence, LoggedRequest], str | None]] = {
    "graph": _graph_head,
    "chromium": _chromium_head,
    "wget2": _wget2_head,
}
"""What is wrong with a request's head by its client's own rules; ``None``: nothing."""


def _check_sizes(seen: Evidence) -> Iterator[str]:
    """Yield where other bytes of requests left than the log has, over HTTP/1.1."""
    due: Counter[Server] = Counter()
    heads: dict[Server, set[int]] = defaultdict(set)
    unknown = {server_of_url(each.url) for log in seen.logs for each in log.unlogged}
    for request in (each for log in seen.logs for each in log.requests):
        made, server = request.entry["request"], server_of_url(request.told.url)
        size = made["headersSize"] + max(0, made["bodySize"])
        if not request.told.status or made["headersSize"] < 0:
            unknown.add(server)
        due[server] += size
        heads[server].add(size)
    keys = seen.keys if seen.has("keys") else {}
    for server, flows in _by_server(seen).items():
        sent = [read_sent(flow, keys) for flow in flows]
        if server in unknown or None in sent:
            continue
        more = sum(size or 0 for size in sent) - due[server]
        # What a connection that ended took with it is asked for once more.
        if more and more not in heads[server]:
            yield f"{more} more bytes of requests left for {server[0]} than the client's log has"


def server_of_url(url: str) -> Server:
    """The host and the port of a URL."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (HTTPS_PORT if parts.scheme == "https" else 80)


def server_of_flow(seen: Evidence, flow: Flow) -> Server:
    """The host, or an address that none has, and the port of a connection."""
    address = format_address(flow.syn.target)
    return seen.hosts.get(address, address), flow.syn.target_port


def _by_server(seen: Evidence) -> dict[Server, list[Flow]]:
    """The connections by server, those with both addresses of a host together."""
    found: dict[Server, list[Flow]] = defaultdict(list)
    for flow in seen.flows.flows:
        # What is sent to an address that never answers is sent to the other one again.
        if flow.synack is not None or seen.link.ip != "dual-broken":
            found[server_of_flow(seen, flow)].append(flow)
    return found


def _ended_ns(flow: Flow) -> float:
    """When the client, which had read all by then, ended it, or either broke it off; else inf."""
    ends = (p for up, p in flow.packets if p.flags & RST or (up and p.flags & FIN))
    return next((packet.at_ns for packet in ends), inf)


def _most_at_once(spans: Sequence[tuple[float, float]]) -> int:
    """Return how many of them there were at once, at the most: what ends makes room."""
    changes = sorted([(began, 1) for began, _ in spans] + [(ended, -1) for _, ended in spans])
    return max(accumulate(change for _, change in changes), default=0)
