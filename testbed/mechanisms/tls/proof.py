"""Handshakes held against what was asked of them: tickets, early data, key shares, protocols.

A client may open a connection and close it again before anything is said, so only what was answered
is judged.  What TLS 1.2 does not hide is read without keys.  Tickets are used once (RFC 8446
appendix C.4), and a page may open more connections to an origin than it has tickets: that one be
taken is asked of the first of each later visit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar
from urllib.parse import urlsplit

from testbed.capture.handshakes import Handshake, OldSession, read_old_sessions
from testbed.model import Condition, ServedConnection
from testbed.proof.check import check, say_unshown
from testbed.proof.evidence import Evidence
from testbed.proof.visits import VisitWindow
from testbed.server.nginx import CHAIN

_Opened = TypeVar("_Opened", Handshake, OldSession)
ALPN = {"h1": "http/1.1", "h2": "h2", "h3": "h3"}
SPOKEN = {"h1": "HTTP/1.1", "h2": "HTTP/2.0", "h3": "HTTP/3.0"}
"""A protocol's name in a handshake (RFC 7301), and in the server's log."""
SHOWN = 3
TICKETS, TICKETS_AGAIN = 2, 1
"""What OpenSSL gives behind a full handshake and a resumed one (SSL_CTX_set_num_tickets(3))."""


@check("tls version", "own_client", "application", "condition")
def check_version(seen: Evidence) -> Iterator[str]:
    """Servers chose the TLS version that was asked for, and no other."""
    chosen, hellos = Counter(seen.application.versions.values()), seen.application.hellos
    asked = seen.condition.tls_version
    for version, number in sorted(chosen.items()):
        if version != asked:
            yield (
                f"tls_version = {asked}, but the server chose TLS {version} "
                f"on {number} of {len(hellos)} connections"
            )
    if hellos and not chosen:
        yield "the capture shows no TLS version, although connections carried TLS"


@check("tls sessions", "own_client", "flows", "visits", "condition", source="RFC 5077")
def check_sessions(seen: Evidence) -> Iterator[str]:
    """Sessions of TLS 1.2 are resumed, and tickets given, where that was asked for alone."""
    sessions, asked = read_old_sessions(seen.flows), seen.condition.tls_resumption
    words = f"tls_resumption = {str(asked).lower()}, but "
    if not asked:
        yield from _say(words + "{} resumed a session", [e for e in sessions if e.resumed])
        yield from _say(words + "the server gave a ticket on {}", [e for e in sessions if e.given])
        return
    silent = [each for each in sessions if each.refused and not each.resumed]
    yield from _say(words + "the server gave no ticket on {}", silent)
    for window, first in _first_again(seen.visits, sessions):
        for problem in _say(words + "{} began anew", [e for e in first if not e.resumed]):
            yield window.say(problem)


@check(
    *("tls handshakes", "handshakes", "visits", "served", "replay", "hosts"),
    source="RFC 8446, RFC 9001",
)
def check_handshakes(seen: Evidence) -> Iterator[str]:
    """Tickets, early data, key shares and certificates are those asked for."""
    condition, windows, handshakes = seen.condition, seen.visits, seen.handshakes
    answered = [e for e in handshakes if e.answer is not None and e.answer.version == "1.3"]
    # A browser that has a connection by then gives others up before it has sent all of a hello.
    cut = [each for each in answered if not all(hello.whole for hello in each.hellos)]
    yield from _say("the hello of {} was not captured whole", cut)
    again = [e for e in answered if len(e.hellos) > 1 or (e.answer is not None and e.answer.retry)]
    yield from _say("the server asked for another hello (HelloRetryRequest) on {}", again)
    yield from _check_groups(condition, answered)
    yield from _check_tickets(condition, windows, answered)
    yield from _check_early(condition, windows, answered, seen.hosts)
    full = [each for each in handshakes if each.certificates and not each.resumed]
    if condition.certificates != CHAIN and not full:
        yield say_unshown("certificates", condition.certificates)
    other = [each for each in full if each.certificates != condition.certificates]
    yield from _say(
        f"certificates = {condition.certificates}, the server sent others on {{}}", other
    )
    yield from _check_log(handshakes, seen.served)


@check("protocol", "load", "condition", "replay", source="RFC 7301")
def check_protocol(seen: Evidence) -> Iterator[str]:
    """Origins recorded over TLS spoke the protocol asked for, by ALPN and by their servers' log."""
    asked = seen.condition.protocol
    if asked == "as-recorded":
        return
    handshakes = seen.handshakes if seen.has("handshakes") else ()
    answered = [e for e in handshakes if e.answer is not None and e.answer.version == "1.3"]
    # A client of HTTP/1.1 alone, such as wget2, need not offer anything.
    silent = [e for e in answered if asked == "h1" and not any(h.alpn for h in e.hellos)]
    other = [
        each
        for each in answered
        if each.alpn is not None and each.alpn != ("" if each in silent else ALPN[asked])
    ]
    # A WebSocket has a connection of its own, and is opened by HTTP/1.1 (RFC 6455 section 4.1).
    plain = ALPN["h1"]
    upgraded = [e for e in other if {(e.alpn,), *(h.alpn for h in e.hellos)} == {(plain,)}]
    if len(upgraded) <= seen.replay.secured_sockets:
        other = [each for each in other if each not in upgraded]
    spoken = sorted({each.alpn or "none" for each in other})
    yield from _say(f"protocol = {asked}, but {{}} agreed on {', '.join(spoken)}", other)
    fallen = {
        name: count
        for name, count in seen.replay.protocols.items()
        if name.startswith("https:") and not name.endswith(f" {SPOKEN[asked]}")
    }
    if fallen:
        yield (
            f"protocol = {asked}, but the server's log has {sum(fallen.values())} requests "
            f"otherwise: {', '.join(sorted(fallen)[:SHOWN])}"
        )


def _check_groups(condition: Condition, answered: Sequence[Handshake]) -> Iterator[str]:
    asked = condition.key_share
    words = f"key_share = {asked}, but "
    large = "x25519mlkem768"
    # What servers take of a client's own choice; curl and wget2 may send P-256 first.
    allowed = {large: (large,), "browser": ("x25519", "secp256r1")}.get(asked, ("x25519",))
    for offered_wrong, text in (
        (lambda groups: asked == "x25519" and groups != ("x25519",), "the hello of {} has more"),
        (lambda groups: asked == large and large not in groups, "the hello of {} does not have it"),
    ):
        wrong = [e for e in answered if any(offered_wrong(hello.groups) for hello in e.hellos)]
        yield from _say(words + text, wrong)
    other = [
        each
        for each in answered
        if each.answer and not {*each.answer.groups} & {*allowed} & _offered(each)
    ]
    groups = sorted({group for e in other if e.answer for group in e.answer.groups})
    yield from _say(f"{words}the server chose {', '.join(groups) or 'none'} on {{}}", other)


def _offered(handshake: Handshake) -> set[str]:
    """The groups of the client's key shares."""
    return {group for hello in handshake.hellos for group in hello.groups}


def _check_tickets(
    condition: Condition, windows: Sequence[VisitWindow], answered: Sequence[Handshake]
) -> Iterator[str]:
    if not condition.tls_resumption:
        resumed = [each for each in answered if each.resumed]
        yield from _say("tls_resumption = false, but {} resumed a session", resumed)
        given = [each for each in answered if each.given]
        yield from _say("tls_resumption = false, but the server gave tickets on {}", given)
        return
    # How many another server gives is its own affair.
    nginx = condition.web_server != "aioquic"
    other = [
        each
        for each in answered
        if nginx
        and each.given is not None
        and len(each.given) != (TICKETS_AGAIN if each.resumed else TICKETS)
    ]
    yield from _say(
        f"the server gave other tickets than {TICKETS}, or {TICKETS_AGAIN} again, on {{}}", other
    )
    refused = [e for e in answered if any(h.ticket for h in e.hellos) and not e.resumed]
    yield from _say("the server did not take the ticket of {}", refused)
    for window, first in _first_again(windows, answered):
        fresh = [each for each in first if not any(hello.ticket for hello in each.hellos)]
        for problem in _say("tls_resumption = true, but {} offered no ticket", fresh):
            yield window.say(problem)


def _check_early(
    condition: Condition,
    windows: Sequence[VisitWindow],
    answered: Sequence[Handshake],
    hosts: Mapping[str, str],
) -> Iterator[str]:
    takers = _early_hosts(condition, windows, hosts)
    taken = [e for e in answered if hosts.get(e.server.rpartition(":")[0]) in takers]
    others = [each for each in answered if each not in taken]
    sent = [each for each in others if each.offers_early or each.early_bytes]
    yield from _say("{} offered early data, which was not asked for there", sent)
    allowed = [each for each in others if each.given and any(each.given)]
    yield from _say("the tickets of {} are for early data, not asked for there", allowed)
    barred = [each for each in taken if each.given and not all(each.given)]
    yield from _say("early_data = true, but the tickets of {} are not for it", barred)
    refused = [each for each in taken if each.offers_early and each.accepted is False]
    yield from _say("the server did not take the early data of {}", refused)
    for window, first in _first_again(windows, taken):
        silent = [each for each in first if each.resumed and not each.early_bytes]
        for problem in _say("early_data = true, but {} sent none", silent):
            yield window.say(problem)


def _early_hosts(
    condition: Condition, windows: Sequence[VisitWindow], hosts: Mapping[str, str]
) -> set[str]:
    """The hosts whose servers are to take early data."""
    if not condition.early_data:
        return set()
    requests = windows[0].load.requests
    own = urlsplit(requests[0].url).hostname if requests else None
    wanted = {"all": (True, False), "first": (True,), "others": (False,)}[condition.early_data_at]
    return {host for host in hosts.values() if (host == own) in wanted}


def _first_again(
    windows: Sequence[VisitWindow], answered: Sequence[_Opened]
) -> Iterator[tuple[VisitWindow, list[_Opened]]]:
    """Yield, of each later visit, its first connection to each server that was known before."""
    known: set[str] = set()
    for window in windows:
        first: dict[str, _Opened] = {}
        for each in answered:
            if window.holds(each.began_ns):
                first.setdefault(each.server, each)
        yield window, [each for server, each in first.items() if server in known]
        known |= first.keys()


def _check_log(
    handshakes: Sequence[Handshake], served: Sequence[ServedConnection]
) -> Iterator[str]:
    """Yield where the server's log has it otherwise than the wire."""
    logged = {(each.client, each.server): each for each in served if each.group}
    seen = {(each.client, each.server): each for each in handshakes if each.answer is not None}
    unseen = logged.keys() - seen.keys()
    pairs = [
        (each, logged[ends])
        for ends, each in seen.items()
        if ends in logged and each.answer is not None and each.answer.version == "1.3"
    ]
    if unseen:
        client, server = min(unseen)
        yield (
            f"the server's log has {len(unseen)} connections whose handshake the capture "
            f"does not have, the first {client} to {server}"
        )
    closed = [each for each, _ in pairs if each.accepted is None]
    yield from _say(
        "the secrets that the client wrote down do not open the handshake of {}", closed
    )
    checks: tuple[tuple[str, Callable[[Handshake, ServedConnection], bool]], ...] = (
        ("whether a session was resumed", lambda e, log: log.resumed == e.resumed),
        ("the group of", lambda e, log: not e.answer or (_group(log),) == e.answer.groups),
        ("early data of", lambda e, log: not log.early or bool(e.early_bytes and e.accepted)),
        (
            "how many early requests there were of",
            lambda e, log: not (e.quic and e.accepted) or log.early == e.early_requests,
        ),
    )
    for what, agrees in checks:
        wrong = [each for each, log in pairs if not agrees(each, log)]
        yield from _say(f"the server's log and the capture differ in {what} {{}}", wrong)


def _group(served: ServedConnection) -> str:
    """The group in the log by its name in hellos: OpenSSL calls one of them otherwise."""
    return served.group.lower().replace("prime256v1", "secp256r1")


def _say(text: str, wrong: Collection[Handshake | OldSession]) -> Iterator[str]:
    """Yield ``text`` with the names of connections, if there are any."""
    if wrong:
        names = [each.name for each in wrong][:SHOWN]
        more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        yield text.format(f"{', '.join(names)}{more}")
