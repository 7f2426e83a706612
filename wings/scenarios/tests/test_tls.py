"""TLS of scenarios: what becomes of early data, by OpenSSL on both sides."""

from __future__ import annotations

import ctypes

import pytest

from testbed.base.errors import MissingError
from testbed.capture.flights import describe_flight
from wings.scenarios import tls
from wings.scenarios.tls import TlsContext, TlsEnd, TlsError

REQUEST, ANSWER = b"GET /", b"hello"
EARLY = "client-hello+ticket+early,sealed"


def begin(client: TlsContext, early: bytes = b"") -> tuple[TlsEnd, bytes]:
    """A client's connection, and its first flight."""
    ours = TlsEnd(client, client=True)
    assert ours.say_hello(early) in (0, len(early))
    return ours, ours.leaving()


def take(server: TlsContext, flight: bytes) -> TlsEnd:
    """A server's connection that has been given a first flight."""
    theirs = TlsEnd(server, client=False)
    assert not theirs.shake_hands()
    theirs.feed(flight)
    assert theirs.shake_hands()
    return theirs


def introduced(mode: str) -> tuple[TlsContext, TlsContext]:
    """A client that has a server's ticket, and the server, which takes early data so."""
    client, server = TlsContext(), TlsContext()
    server.take_early(mode)
    ours, flight = begin(client, REQUEST)
    assert describe_flight(flight) == "client-hello"
    theirs = take(server, flight)
    assert (theirs.outcome, client.ticket) == ("full", None)
    ask_late(ours, theirs)
    assert client.ticket is not None
    return client, server


def ask_late(ours: TlsEnd, theirs: TlsEnd) -> str:
    """Have a request answered after the handshake; the server's flight, in words."""
    flight = theirs.leaving()
    ours.feed(flight)
    assert ours.shake_hands()
    ours.write(REQUEST)
    theirs.feed(ours.leaving())
    assert theirs.read() == REQUEST
    theirs.write(ANSWER)
    ours.feed(theirs.leaving())
    assert ours.read() == ANSWER
    return describe_flight(flight)


def test_a_request_that_is_taken_early_is_answered_in_the_first_flight() -> None:
    client, server = introduced("on")
    ours, flight = begin(client, REQUEST)
    assert describe_flight(flight) == EARLY
    theirs = take(server, flight)
    assert (theirs.outcome, theirs.read()) == ("accepted", REQUEST)
    theirs.write(ANSWER)
    answered = theirs.leaving()
    assert describe_flight(answered) == "server-hello+ticket,sealed*3"
    ours.feed(answered)
    assert ours.shake_hands()
    assert (ours.outcome, ours.read()) == ("accepted", ANSWER)


def test_a_request_that_is_refused_can_be_sent_again() -> None:
    client, server = introduced("on")
    server.take_early("off")
    ours, flight = begin(client, REQUEST)
    theirs = take(server, flight)
    assert (describe_flight(flight), theirs.outcome) == (EARLY, "refused")
    assert ask_late(ours, theirs) == "server-hello+ticket,sealed*2"
    assert ours.outcome == "refused"


def test_without_early_data_a_ticket_resumes() -> None:
    client, server = introduced("off")
    ours, flight = begin(client, REQUEST)
    assert describe_flight(flight) == "client-hello+ticket"
    theirs = take(server, flight)
    assert (theirs.outcome, ask_late(ours, theirs), ours.outcome) == (
        "resumed", "server-hello+ticket,sealed*2", "resumed",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "replayed", "answer"),
    [
        ("on", ("accepted", REQUEST), "server-hello+ticket,sealed*2"),
        ("once", ("refused", b""), "server-hello,sealed*4"),
    ],
)
def test_a_copy_is_taken_unless_a_ticket_is_good_once(
    mode: str, replayed: tuple[str, bytes], answer: str
) -> None:
    client, server = introduced(mode)
    _, flight = begin(client, REQUEST)
    assert take(server, flight).read() == REQUEST
    copied = take(server, flight)
    assert (copied.outcome, copied.read()) == replayed
    assert describe_flight(copied.leaving()) == answer


def test_what_is_no_hello_ends_it() -> None:
    theirs = TlsEnd(TlsContext(), client=False)
    theirs.feed(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(TlsError, match="SSL_read_early_data"):
        theirs.shake_hands()


def test_without_openssl_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    tls._function.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(MissingError, match=r"OpenSSL 3 \(libssl.so.3: cannot open"):
        TlsContext()
