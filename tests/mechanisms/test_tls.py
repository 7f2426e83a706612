"""Handshakes against what was asked: each sentence, and what is legitimate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.capture.handshakes import Handshake
from testbed.capture.packets import Capture
from testbed.capture.tls import Hello, read_tickets
from testbed.mechanisms.tls.proof import check_handshakes, check_protocol, check_sessions
from testbed.mechanisms.visits.proof import describe_visits
from testbed.model import Condition, PageLoad, Replay, RequestTiming, ServedConnection
from testbed.model.asked import KeyShare
from testbed.proof.visits import split_visits
from tests.capture.packets import CLIENT as CLIENT_IP
from tests.capture.packets import SERVER as IP
from tests.capture.packets import START_NS, server_hello, tls_record
from tests.capture.packets import Capture as Packets
from tests.capture.packets import Visit as Conversation
from tests.capture.quic import hello
from tests.evidence import evidence, found

HELLO = Hello(
    True, 300, b"", None, ("x25519mlkem768", "x25519"), False, False, ("h2",), False, True
)
ANSWER = Hello(False, 90, b"", "1.3", ("x25519",), False, False, (), False, True)
CLIENT, SERVER, OTHER = "10.0.0.2:5000", "10.10.0.1:443", "10.10.0.2:443"
HOSTS = {"10.10.0.1": "www.page.test", "10.10.0.2": "static.page.test"}
ASKED = Condition("page", "chromium", protocol="h2", tls_resumption=True, early_data=True, visits=2)
FIRST = Handshake(CLIENT, SERVER, False, 10, (HELLO,), ANSWER, False, "h2", 2, 0, 0, 20)
AGAIN = replace(
    FIRST, client="10.0.0.2:5001", began_ns=110,
    hellos=(replace(HELLO, ticket=True, early_data=True),), answer=replace(ANSWER, ticket=True),
    accepted=True, certificates=0, early_bytes=500,
)  # fmt: skip


def complain(
    *handshakes: Handshake,
    asked: Condition = ASKED,
    served: tuple[ServedConnection, ...] = (),
    replay: Replay = Replay(1),  # noqa: B008
) -> list[str]:
    """What is wrong with the handshakes of two visits."""
    request = RequestTiming("https://www.page.test/", 200, 0.0, 1.0)
    load = PageLoad("chromium", "1", 1.0, (request,), began_ns=0)
    last = replace(load, began_ns=100, earlier=(load,))
    shown = {"visits": split_visits(last), "handshakes": handshakes, "served": served,
             "replay": replay, "hosts": HOSTS}  # fmt: skip
    return [
        problem
        for check in (check_handshakes, check_protocol)
        for problem in found(check, condition=asked, **shown)
    ]


def test_a_ticket_and_early_data_as_asked() -> None:
    assert complain(FIRST, AGAIN) == []


@pytest.mark.parametrize(
    ("changed", "says"),
    [({"hellos": (HELLO,), "answer": ANSWER, "certificates": 2, "early_bytes": 0}, "no ticket"),
     ({"answer": ANSWER, "certificates": 2}, "did not take the ticket"),
     ({"accepted": False}, "did not take the early data"),
     ({"early_bytes": 0}, "early_data = true, but TCP 10.0.0.2:5001 to 10.10.0.1:443 sent none"),
     ({"alpn": "http/1.1"}, "agreed on http/1.1"),
     ({"answer": replace(ANSWER, ticket=True, groups=("secp256r1",))}, "chose secp256r1"),
     ({"answer": replace(ANSWER, ticket=True, retry=True)}, "another hello"),
     ({"hellos": (replace(AGAIN.hellos[0], whole=False),)}, "not captured whole")],
)  # fmt: skip
def test_what_a_later_visit_lacks(changed: dict[str, object], says: str) -> None:
    told = complain(FIRST, replace(AGAIN, **changed))  # type: ignore[arg-type]
    assert any(says in sentence for sentence in told), told


def test_more_connections_than_tickets_and_what_was_given_up_are_legitimate() -> None:
    fresh = replace(FIRST, client="10.0.0.2:5002", began_ns=120)
    unanswered = replace(
        AGAIN, client="10.0.0.2:5003", answer=None, hellos=(replace(HELLO, whole=False),)
    )
    assert complain(FIRST, AGAIN, fresh, unanswered) == []
    assert complain(FIRST, replace(FIRST, client="10.0.0.2:5004", server=OTHER, began_ns=110)) == []


def test_what_was_not_asked() -> None:
    plain = replace(ASKED, tls_resumption=False, early_data=False)
    told = complain(FIRST, AGAIN, asked=plain)
    assert any("resumed a session" in sentence for sentence in told)
    assert any("offered early data" in sentence for sentence in told)


def test_early_data_of_the_page_s_own_origin_alone() -> None:
    asked = replace(ASKED, early_data_at="first")
    elsewhere = replace(AGAIN, server=OTHER)
    known = replace(FIRST, server=OTHER, client="10.0.0.2:5005")
    assert complain(FIRST, AGAIN, asked=asked) == []
    assert any("not asked for there" in each for each in complain(known, elsewhere, asked=asked))


@pytest.mark.parametrize(("share", "offered", "chosen", "says"), [
    ("x25519", ("x25519",), "x25519", None),
    ("x25519", HELLO.groups, "x25519", "has more"),
    ("x25519mlkem768", HELLO.groups, "x25519", "the server chose x25519 on"),
    ("x25519", (), "x25519", "has more"),
    ("x25519mlkem768", ("x25519mlkem768", "x25519"), "x25519mlkem768", None),
    ("x25519mlkem768", ("x25519",), "x25519", "does not have it"),
    ("browser", ("x25519mlkem768", "x25519"), "x25519", None),
    ("browser", ("secp256r1",), "x25519", "the server chose x25519 on"),
])  # fmt: skip
def test_groups_that_are_offered_and_chosen(
    share: KeyShare, offered: tuple[str, ...], chosen: str, says: str | None
) -> None:
    made = replace(FIRST, hellos=(replace(HELLO, groups=offered),),
                   answer=replace(ANSWER, groups=(chosen,)))  # fmt: skip
    told = complain(made, asked=replace(ASKED, key_share=share))
    assert any(says in each for each in told) if says else told == []


def test_early_data_of_the_other_origins_alone() -> None:
    asked = replace(ASKED, early_data_at="others")
    known = replace(FIRST, server=OTHER, client="10.0.0.2:5005")
    elsewhere = replace(AGAIN, server=OTHER)
    assert complain(known, elsewhere, asked=asked) == []
    assert any("not asked for there" in each for each in complain(FIRST, AGAIN, asked=asked))
    silent = replace(elsewhere, early_bytes=0)
    assert any("sent none" in each for each in complain(known, silent, asked=asked))


@pytest.mark.parametrize(("quic", "accepted", "logged", "says"), [
    (False, True, 2, None), (False, True, 0, None),
    (False, False, 1, "early data of"), (True, False, 1, "early data of"),
    (True, False, 0, None), (True, True, 3, None), (True, True, 2, "how many early requests"),
])  # fmt: skip
def test_early_requests_by_log_and_capture(
    quic: bool, accepted: bool, logged: int, says: str | None
) -> None:
    seen = replace(AGAIN, quic=quic, accepted=accepted, early_requests=3)
    log = ServedConnection(AGAIN.client, SERVER, 3, early=logged, resumed=True, group="X25519")
    differ = [each for each in complain(FIRST, seen, served=(log,)) if " differ in " in each]
    assert [says in each for each in differ] == [True] if says else differ == []


def test_certificates_are_counted() -> None:
    assert complain(replace(FIRST, certificates=None)) == []
    assert any(
        "certificates = 4" in each for each in complain(FIRST, asked=replace(ASKED, certificates=4))
    )
    old = replace(FIRST, answer=replace(ANSWER, version="1.2"), certificates=3)
    assert any("certificates = 2" in each for each in complain(old))


def test_certificates_that_nothing_shows() -> None:
    asked = replace(ASKED, certificates=4)
    assert complain(asked=asked) == ["nothing shows that certificates = 4 was performed"]


def test_a_websocket_is_opened_by_http_1_1() -> None:
    """As many connections that offer nothing else as the server refused of those over TLS."""
    asked = replace(ASKED, tls_resumption=False, early_data=False)
    hello = replace(HELLO, alpn=("http/1.1",))
    opened = replace(FIRST, client="10.0.0.2:5002", hellos=(hello,), alpn="http/1.1")
    fallen = replace(opened, hellos=(replace(hello, alpn=("h2", "http/1.1")),))
    one = Replay(1, sockets=("wss://www.page.test/socket",))
    for handshakes, replay, ok in (
        ((FIRST, opened), one, True),
        ((FIRST, opened), Replay(1, sockets=("ws://www.page.test/socket",)), False),
        ((FIRST, opened, replace(opened, client="10.0.0.2:5003")), one, False),
        ((FIRST, fallen), one, False),
    ):
        told = complain(*handshakes, asked=asked, replay=replay)
        assert any("agreed on http/1.1" in each for each in told) != ok, told


def test_a_client_of_http_1_1_alone_need_not_offer_it() -> None:
    asked = replace(ASKED, protocol="h1")
    plain = replace(FIRST, hellos=(replace(HELLO, alpn=()),), alpn="")
    assert complain(plain, asked=asked) == []
    assert any("agreed on none" in each for each in complain(replace(FIRST, alpn=""), asked=asked))
    assert any("agreed on h2" in each for each in complain(replace(plain, alpn="h2"), asked=asked))


@pytest.mark.parametrize(
    ("changed", "says"),
    [({"resumed": False}, "whether a session was resumed"),
     ({"group": "X25519MLKEM768"}, "the group of"),
     ({"client": "10.0.0.2:9"}, "the capture does not have")],
)  # fmt: skip
def test_the_log_agrees(changed: dict[str, object], says: str) -> None:
    log = ServedConnection(AGAIN.client, SERVER, 3, early=1, resumed=True, group="X25519")
    assert complain(FIRST, AGAIN, served=(log,)) == []
    other = replace(log, **changed)  # type: ignore[arg-type]
    assert any(says in each for each in complain(FIRST, AGAIN, served=(other,)))
    unsent = replace(AGAIN, early_bytes=0, hellos=(replace(HELLO, ticket=True),))
    assert any("early data of" in each for each in complain(FIRST, unsent, served=(log,)))
    sealed = replace(AGAIN, accepted=None)
    assert any("do not open" in each for each in complain(FIRST, sealed, served=(log,)))


@pytest.mark.parametrize(("given", "again", "wrong"), [
    (2, 1, 0), (None, None, 0), (1, 1, 1), (2, 2, 1), (2, 0, 1), (3, 2, 2), (0, 0, 2),
])  # fmt: skip
def test_tickets_are_counted(given: int | None, again: int | None, wrong: int) -> None:
    first, last = [None if n is None else (True,) * n for n in (given, again)]
    told = complain(replace(FIRST, given=first), replace(AGAIN, given=last))
    names = [each for each in told if "other tickets than 2, or 1 again, on TCP" in each]
    assert len(told) == len(names) == bool(wrong)
    assert sum(each.count(" to ") for each in names) == wrong
    plain = replace(ASKED, tls_resumption=False, early_data=False)
    (said,) = complain(replace(FIRST, given=(False,)), asked=plain)
    assert said.startswith("tls_resumption = false, but the server gave tickets on TCP ")
    assert complain(replace(FIRST, given=()), asked=plain) == []


@pytest.mark.parametrize(("at", "allows", "words"), [
    ("all", True, None), ("first", True, None), ("others", False, None),
    ("all", False, "tickets of TCP 10.0.0.2:5000 to 10.10.0.1:443 are not for it"),
    ("first", False, "are not for it"), ("others", True, "are for early data, not asked for there"),
])  # fmt: skip
def test_tickets_say_whether_early_data_is_taken(at: Any, allows: bool, words: str | None) -> None:
    told = complain(replace(FIRST, given=(allows, allows)), asked=replace(ASKED, early_data_at=at))
    assert [str(words) in each for each in told] == ([True] if words else []), told


def test_tickets_are_read() -> None:
    def ticket(extensions: bytes) -> bytes:
        body = bytes(8) + b"\x02no" + b"\x00\x03abc" + len(extensions).to_bytes(2) + extensions
        return b"\x04" + len(body).to_bytes(3) + body

    early, hello = b"\x00\x2a\x00\x04\xff\xff\xff\xff", b"\x08\x00\x00\x00"
    assert read_tickets(ticket(early) + hello + ticket(b"")) == (True, False)
    assert read_tickets(ticket(early)[:-1]) == ()
    assert read_tickets(b"\x04\x00\x00\x02ab") == (False,)


def test_only_what_sent_early_data_had_it_accepted() -> None:
    """A server may say that it takes what a client then does not send."""
    (window,) = split_visits(PageLoad("chromium", "1", 1.0, ()))
    told = [
        next(describe_visits(evidence(
            condition=ASKED, handshakes=(replace(AGAIN, early_bytes=size),), visits=(window,),
            capture=Capture(Path(), ()), served=(), hosts=HOSTS,
        )))
        for size in (0, 500)
    ]  # fmt: skip
    assert [(each.early, each.accepted, each.resumed) for each in told] == [(0, 0, 1), (1, 1, 1)]


OFFER = tls_record(1, hello((35, b""))[4:])
"""A hello of a client that takes tickets."""
OLD = server_hello()
"""Of TLS 1.2, the one without extensions."""
RECORD = b"\x16\x03\x03"
CERTIFICATE, TICKET = (RECORD + b"\0\x05" + bytes((kind, 0, 0, 1, 0)) for kind in (11, 4))
CHANGE = b"\x14\x03\x03\0\x01\x01"


@pytest.mark.parametrize(("answers", "resumption", "says"), [
    ((OLD + CERTIFICATE, CHANGE), False, None),
    ((OLD + CERTIFICATE, TICKET + CHANGE), False, "but the server gave a ticket on TCP"),
    ((OLD + CHANGE,), False, "resumed a session"),
    ((OLD + TICKET + CHANGE,), False, "resumed a session"),
    ((OLD + CERTIFICATE, TICKET + CHANGE), True, None),
    ((OLD + CERTIFICATE, CHANGE), True, "but the server gave no ticket on TCP"),
    ((OLD + CERTIFICATE,), True, None),  # which its client gave up
    ((OLD + CHANGE,), True, None),
])  # fmt: skip
def test_sessions_of_an_older_version(
    answers: tuple[bytes, ...], resumption: bool, says: str | None, tmp_path: Path
) -> None:
    capture = Packets()
    visit = Conversation(capture, 2000)
    visit.open()
    visit.send(0, OFFER)
    place = visit.server_isn + 1
    for each in answers:
        capture.add((IP, 80), (CLIENT_IP, 2000), 16, place, visit.isn + 1, each, b"")
        place += len(each)
    asked = replace(ASKED, tls_version="1.2", tls_resumption=resumption, early_data=False)
    load = PageLoad("chromium", "1", 1.0, ())
    told = found(
        check_sessions, condition=asked, visits=split_visits(load), load=load,
        flows=capture.flows(tmp_path),
    )  # fmt: skip
    assert any(says in each for each in told) if says else told == []


def test_a_later_visit_over_an_older_version_that_began_anew(tmp_path: Path) -> None:
    capture = Packets()
    for port, at_ms in ((2000, 0.0), (2001, 1000.0)):
        visit = Conversation(capture, port)
        visit.open(at_ms=at_ms)
        visit.send(0, OFFER)
        visit.answer(OLD + CERTIFICATE)
    first = PageLoad("chromium", "1", 1.0, (), began_ns=START_NS)
    last = replace(first, began_ns=START_NS + 500_000_000, earlier=(first,))
    (said,) = found(
        check_sessions, visits=split_visits(last), load=last, flows=capture.flows(tmp_path),
        condition=replace(ASKED, tls_version="1.2", early_data=False),
    )  # fmt: skip
    assert said.startswith("visit 2 of 2: tls_resumption = true, but TCP ")
    assert said.endswith(" began anew")


def test_groups_that_a_client_of_another_library_sends() -> None:
    hello = replace(HELLO, groups=("secp256r1", "x25519"))
    small = replace(FIRST, hellos=(hello,), answer=replace(ANSWER, groups=("secp256r1",)))
    log = ServedConnection(CLIENT, SERVER, 1, group="prime256v1")
    assert complain(small, served=(log,)) == []


def test_of_an_older_version_only_that_it_was_there_is_judged() -> None:
    old = replace(FIRST, answer=replace(ANSWER, version="1.2", groups=()))
    assert complain(old, served=(ServedConnection(CLIENT, SERVER, 1, group="X25519"),)) == []
