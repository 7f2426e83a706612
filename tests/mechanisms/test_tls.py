"""Handshakes against what was asked: each sentence, and what is legitimate."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.capture.handshakes import Handshake
from testbed.capture.tls import Hello
from testbed.mechanisms.tls.proof import check_handshakes
from testbed.model import Condition, PageLoad, Replay, RequestTiming, ServedConnection
from testbed.model.asked import KeyShare
from testbed.proof.visits import split_visits
from tests.evidence import found

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
    *handshakes: Handshake, asked: Condition = ASKED, served: tuple[ServedConnection, ...] = ()
) -> list[str]:
    """What is wrong with the handshakes of two visits."""
    request = RequestTiming("https://www.page.test/", 200, 0.0, 1.0)
    load = PageLoad("chromium", "1", 1.0, (request,), began_ns=0)
    last = replace(load, began_ns=100, earlier=(load,))
    return found(
        check_handshakes, condition=asked, visits=split_visits(last), handshakes=handshakes,
        served=served, replay=Replay(1), hosts=HOSTS,
    )  # fmt: skip


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


@pytest.mark.parametrize("share", ["x25519", "x25519mlkem768"])
def test_key_shares(share: KeyShare) -> None:
    asked = replace(ASKED, key_share=share)
    told = " ".join(complain(FIRST, asked=asked))
    assert ("has more" in told) is (share == "x25519")
    assert ("the server chose x25519 on" in told) is (share != "x25519")


def test_certificates_are_counted() -> None:
    assert any(
        "certificates = 4" in each for each in complain(FIRST, asked=replace(ASKED, certificates=4))
    )


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


def test_groups_that_a_client_of_another_library_sends() -> None:
    hello = replace(HELLO, groups=("secp256r1", "x25519"))
    small = replace(FIRST, hellos=(hello,), answer=replace(ANSWER, groups=("secp256r1",)))
    log = ServedConnection(CLIENT, SERVER, 1, group="prime256v1")
    assert complain(small, served=(log,)) == []


def test_of_an_older_version_only_that_it_was_there_is_judged() -> None:
    old = replace(FIRST, answer=replace(ANSWER, version="1.2", groups=()))
    assert complain(old, served=(ServedConnection(CLIENT, SERVER, 1, group="X25519"),)) == []
