"""Look-ups of names: who was asked for, once, and answered at once (knob ``dns``; RFC 1035)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from urllib.parse import urlsplit

from testbed.capture.lookups import DNS_PORT, is_lookup, parse_question, read_lookups
from testbed.mechanisms.sending.sender import NEAR_NS
from testbed.proof.check import check
from testbed.proof.draws import busy_ns
from testbed.proof.evidence import Evidence

SHOWN = 3
LIVES_S = 3600
"""For how long an answer of the lab's name server holds."""
TIMES = {"graph": 1, "wget2": 2}
"""How often a client asks for a name while it knows the answer: wget2 for its list, and to load.

It asks once more for each question whose answers were lost until it gave up (resolv.conf(5)).  A
browser has an answer for a minute, and one for each site that a page embeds.
"""


@check("names", "capture", "condition", "hosts", source="RFC 1035")
def check_lookups(seen: Evidence) -> Iterator[str]:
    """Under ``dns = resolver`` every host was asked for before it was gone to, else none was."""
    lookups = read_lookups(seen.capture, seen.hosts)
    if seen.condition.dns == "hosts":
        # Of a name that no file has the client asks nevertheless.
        names = {host.lower().rstrip(".") for host in seen.hosts.values()}
        questions = [asked for asked in lookups.questions if asked is None or asked[0] in names]
        if questions:
            yield f"dns = hosts, but {len(questions)} questions for names crossed the link"
    elif not seen.has("load"):
        return  # a command asks for what it likes
    elif not lookups.questions:
        yield "dns = resolver, but no name was asked for on the link"
    elif lookups.unasked:
        more = " ..." if len(lookups.unasked) > SHOWN else ""
        yield (
            f"dns = resolver, but {len(lookups.unasked)} of {len(lookups.contacted)} hosts "
            "were gone to without a question on the link: "
            f"{', '.join(lookups.unasked[:SHOWN])}{more}"
        )


@check("questions", "virtual_time", "capture", "load", "hosts", source="RFC 1035")
def check_questions(seen: Evidence) -> Iterator[str]:
    """Only the page's hosts were asked for, and by clients with one cache once."""
    # A client may go to hosts that the page does not have, and tells of it.
    asked_for = (
        urlsplit(url).hostname or ""
        for visit in seen.load.visits
        for url in (*(request.url for request in visit.requests), *visit.sockets)
    )
    hosts = {host.lower().rstrip(".") for host in (*seen.hosts.values(), *asked_for)}
    most = TIMES.get(seen.load.client)
    answered: dict[tuple[str, int], list[int]] = defaultdict(list)
    waiting: dict[tuple[str, int], set[int]] = defaultdict(set)
    for packet in seen.capture.packets:
        asked = parse_question(packet.payload) if is_lookup(packet) else None
        if asked is None:
            continue
        if packet.source_port == DNS_PORT:
            answered[asked].append(packet.at_ns)
            waiting[asked].discard(packet.target_port)
        elif asked[0] not in hosts:
            yield f"the client asked for the name {asked[0]}, which is no host of the page"
        elif most is not None:
            since_ns = packet.at_ns - LIVES_S * 1_000_000_000
            known = sum(at_ns > since_ns for at_ns in answered[asked])
            if known >= most + len(waiting[asked] - {packet.source_port}):
                yield f"the client asked for the name {asked[0]} again, which was answered"
            waiting[asked].add(packet.source_port)


@check("answers", "virtual_time", "at_server", "load", "condition", "hosts", source="RFC 1035")
def check_answers(seen: Evidence) -> Iterator[str]:
    """The name server answered each question at once."""
    waiting: dict[tuple[bytes, int, bytes], int] = {}
    late = 0.0
    for packet in filter(is_lookup, seen.at_server.packets):
        if packet.target_port == DNS_PORT:
            waiting[packet.source, packet.source_port, packet.payload[:2]] = packet.at_ns
        else:
            asked_ns = waiting.pop((packet.target, packet.target_port, packet.payload[:2]), None)
            late = max(late, 0.0 if asked_ns is None else (packet.at_ns - asked_ns) / 1e6)
    if late > (NEAR_NS + busy_ns(seen)) / 1e6:
        yield f"the name server took up to {late:.3f} ms for an answer"
