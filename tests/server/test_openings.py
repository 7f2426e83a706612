"""Both builds of nginx over TLS: tickets, early data, groups and QUIC, and what the log says."""

from __future__ import annotations

import socket
import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.model import ServedConnection
from testbed.root.cache import Root
from testbed.root.interpreter import nginx_argv
from testbed.server.lengths import list_connections
from testbed.server.listeners import Listener, lab_listeners, list_plain
from testbed.server.nginx import NGINX, PROGRAMS, Handshakes, ServerOptions, configuration
from testbed.server.replay_log import read_answered
from testbed.server.think import Think
from tests.server.pages import HOST, OTHER_HOST, Served, make_archive, make_entry, on_loopback
from tests.server.test_tls import secure, tls, trust

__all__ = ["tls"]
DEFAULT = Handshakes()
AGAIN = 5
RESUMING = Handshakes(tickets=True)
# A long header of QUIC (RFC 9000 section 17.2) with a version that nobody speaks, of 1200 bytes.
UNKNOWN_VERSION = bytes.fromhex("c0 1a2a3a4a 08 0102030405060708 00").ljust(1200, b"\0")
VERSION_1 = (1).to_bytes(4, "big")


def start_of(name: str, root: Root) -> tuple[str, ...]:
    """The words that start a build of nginx on this machine."""
    if name == "nginx":
        return NGINX
    return nginx_argv(root.usr / Path(PROGRAMS[name][0]).parents[1].relative_to("/usr"))


@pytest.fixture(scope="module", params=["nginx", "nginx-quic"])
def program(request: pytest.FixtureRequest, root: Root) -> tuple[str, ...]:
    return start_of(request.param, root)


def connections(site: Served) -> tuple[ServedConnection, ...]:
    """What the log says of connections; complete once the server has ended."""
    return list_connections(read_answered(site.scratch, site.entries))


@pytest.mark.parametrize("handshakes", [DEFAULT, RESUMING])
def test_sessions_are_resumed_by_tickets_where_there_are_some(
    tmp_path: Path, tls: Path, program: tuple[str, ...], handshakes: Handshakes
) -> None:
    terms = ServerOptions(handshakes=handshakes, tls=tls, program=program)
    context = trust(tls)
    with on_loopback(tmp_path, secure("/", b"x", tmp_path), terms=terms) as site:
        (bound,) = (each.bound_port for each in site.listeners if each.port == 443)
        session: ssl.SSLSession | None = None
        for _ in range(2):
            with (
                socket.create_connection(("127.0.0.1", bound), timeout=10) as plain,
                context.wrap_socket(plain, server_hostname=HOST, session=session) as end,
            ):
                end.sendall(f"GET / HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
                while end.recv(4096):
                    pass
                session = end.session
                assert session is not None
                assert session.has_ticket == handshakes.tickets
    first, second = connections(site)
    assert (first.resumed, second.resumed) == (False, handshakes.tickets)
    assert (first.early, second.early, first.group) == (0, 0, "X25519")


@pytest.mark.parametrize("early_data", [False, True])
def test_requests_come_as_early_data_where_it_is_taken(
    tmp_path: Path, tls: Path, program: tuple[str, ...], early_data: bool
) -> None:
    handshakes = replace(RESUMING, early_data=early_data)
    terms = ServerOptions(handshakes=handshakes, tls=tls, program=program, think=Think(20.0))
    request = tmp_path / "request"
    text = f"GET / HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"
    request.write_text(text)
    kept = tmp_path / "session"
    with on_loopback(tmp_path, secure("/", b"body", tmp_path), terms=terms) as site:
        (bound,) = (each.bound_port for each in site.listeners if each.port == 443)
        argv: tuple[str, ...] = ("openssl", "s_client", "-connect", f"127.0.0.1:{bound}",
                                 "-servername", HOST)  # fmt: skip
        argv += ("-tls1_3", "-quiet", "-CAfile", str(tls / "authority.pem"))
        proc.run((*argv, "-sess_out", str(kept)), stdin=text)
        again = ("-sess_in", str(kept), "-early_data", str(request))
        rest = "" if early_data else text
        # Where a client is sooner with the end of its handshake than nginx with its request, the
        # request is no longer early to nginx.
        said = [proc.run((*argv, *again), stdin=rest, check=False).stdout for _ in range(AGAIN)]
    assert all(text.endswith("\r\n\r\nbody") for text in said)
    first, later = connections(site)[0], connections(site)[-AGAIN:]
    assert (first.resumed, first.early) == (False, 0)
    assert all(each.resumed for each in later)
    assert any(each.early for each in later) == early_data


def test_of_the_post_quantum_group_alone_nobody_else_gets_a_connection(
    tmp_path: Path, tls: Path, root: Root
) -> None:
    handshakes = Handshakes(key_share="x25519mlkem768")
    terms = ServerOptions(handshakes=handshakes, tls=tls, program=start_of("nginx-quic", root))
    context = trust(tls)
    context.set_ecdh_curve("prime256v1")
    with (
        on_loopback(tmp_path, secure("/", b"x", tmp_path), terms=terms) as site,
        pytest.raises(ssl.SSLError, match="HANDSHAKE_FAILURE"),
        site.connected(port=443, trust=context),
    ):
        pytest.fail("it takes another group")


def test_over_udp_it_speaks_quic_version_1(tmp_path: Path, tls: Path, root: Root) -> None:
    terms = ServerOptions(tls=tls, program=start_of("nginx-quic", root))
    page = secure("/", b"x", tmp_path)
    with (
        on_loopback(tmp_path, page, protocol="h3", terms=terms) as site,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end,
    ):
        (bound,) = (each.bound_port for each in site.listeners if each.port == 443)
        end.settimeout(10)
        end.connect(("127.0.0.1", bound))
        end.send(UNKNOWN_VERSION)
        answer = end.recv(2000)
        assert answer[1:5] == bytes(4)  # Version Negotiation (RFC 9000 section 17.2.1)
        assert VERSION_1 in answer[5:]
        with site.connected(port=443, trust=trust(tls)) as connection:  # and beside it over TCP
            assert isinstance(connection.socket, ssl.SSLSocket)
            assert connection.socket.selected_alpn_protocol() == "h2"
            connection.close()


def test_what_is_not_asked_for_is_not_written() -> None:
    archive = make_archive(make_entry("/"))
    listeners = lab_listeners(archive, {HOST: ("10.10.0.1",)}, "h2")
    text = configuration(archive, listeners, ServerOptions())
    assert not any(word in text for word in ("quic", "http3", "ssl_early_data on", "$early"))


def test_http_3_is_for_origins_with_tls_alone() -> None:
    archive = make_archive(make_entry("/", scheme="https"), make_entry("/", host=OTHER_HOST))
    addresses = {HOST: ("10.10.0.1", "fd00::1"), OTHER_HOST: ("10.10.0.2",)}
    listeners = lab_listeners(archive, addresses, "h3")
    assert Listener(HOST, addresses[HOST], 443, True, True, h3=True) in listeners
    assert Listener(OTHER_HOST, addresses[OTHER_HOST], 80, False, False) in listeners
    assert list_plain(archive) == [f"http://{OTHER_HOST}:80"]
