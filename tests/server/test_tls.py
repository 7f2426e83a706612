"""The real nginx over TLS: versions, protocols, certificates, sessions, and HTTP/2."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from testbed.archive.posted import digest_body
from testbed.archive.reading import Entry
from testbed.base import proc
from testbed.base.errors import ConfigurationError
from testbed.pages.authority import make_authority
from testbed.server.nginx import Handshakes, ServerOptions
from tests.server.pages import HOST, OTHER_HOST, Served, curl_maps, make_entry, on_loopback

VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
HEADERS = (("Content-Type", "text/html"), ("X-Cost", "$5"), ("ETag", '"x"'))


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "tls"
    folder.mkdir()
    for name, content in make_authority((HOST, OTHER_HOST)).items():
        (folder / name).write_bytes(content)
    return folder


def trust(tls: Path, version: str = "1.3") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(tls / "authority.pem"))
    context.minimum_version = context.maximum_version = VERSIONS[version]
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


def secure(path: str, body: bytes, folder: Path, **more: object) -> Entry:
    return make_entry(path, body, folder, scheme="https", **more)


def curl(site: Served, tls: Path, *urls: str, arguments: tuple[str, ...] = ()) -> str:
    """What curl prints of ``urls``, asked for one after the other."""
    argv = ("curl", "--silent", "--show-error", "--cacert", str(tls / "authority.pem"))
    return proc.run((*argv, *curl_maps(site.listeners), *arguments, *urls)).stdout


@pytest.mark.parametrize("version", VERSIONS)
def test_only_the_asked_version_is_spoken(tmp_path: Path, tls: Path, version: str) -> None:
    page = secure("/", b"x", tmp_path)
    other = "1.2" if version == "1.3" else "1.3"
    terms = ServerOptions(tls=tls, handshakes=Handshakes(version))
    with on_loopback(tmp_path, page, terms=terms) as site:
        with site.connected(port=443, trust=trust(tls, version)) as connection:
            assert connection.get("/").body == b"x"
            assert isinstance(connection.socket, ssl.SSLSocket)
            assert connection.socket.version() == f"TLSv{version}"
        with (
            pytest.raises(ssl.SSLError, match="protocol version"),
            site.connected(port=443, trust=trust(tls, other)),
        ):
            pytest.fail("it speaks another version")
    assert site.replay().exact == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_no_session_can_be_resumed(tmp_path: Path, tls: Path, version: str) -> None:
    page = secure("/", b"x", tmp_path)
    terms = ServerOptions(tls=tls, handshakes=Handshakes(version))
    with (
        on_loopback(tmp_path, page, terms=terms) as site,
        site.connected(port=443, trust=trust(tls, version)) as connection,
    ):
        connection.get("/")
        assert isinstance(connection.socket, ssl.SSLSocket)
        session = connection.socket.session
        assert session is not None
        assert not session.has_ticket
        assert version == "1.3" or session.id == b""


@pytest.mark.parametrize(
    ("recorded", "asked", "spoken"),
    [("http/1.1", "as-recorded", "http/1.1"), ("h2", "as-recorded", "h2"), ("h2", "h1", "http/1.1"),
     ("http/1.1", "h2", "h2")],
)  # fmt: skip
def test_the_protocol_is_that_asked_for(
    tmp_path: Path, tls: Path, recorded: str, asked: str, spoken: str
) -> None:
    page = secure("/", b"x", tmp_path, protocol=recorded)
    with (
        on_loopback(tmp_path, page, protocol=asked, terms=ServerOptions(tls=tls)) as site,
        site.connected(port=443, trust=trust(tls)) as connection,
    ):
        assert isinstance(connection.socket, ssl.SSLSocket)
        chosen = connection.socket.selected_alpn_protocol()
        assert chosen == spoken
        connection.close()


def test_heads_over_tls_have_the_recorded_size(tmp_path: Path, tls: Path) -> None:
    page = secure("/a?b", b"12345", tmp_path, headers=HEADERS, headers_size=400)
    with (
        on_loopback(tmp_path, page, terms=ServerOptions(tls=tls)) as site,
        site.connected(port=443, trust=trust(tls)) as connection,
    ):
        response = connection.get("/a?b")
        assert (len(response.head), response.body) == (400, b"12345")


@pytest.mark.parametrize("size", [0, 100, 5_000_000])
def test_h2_answers_as_h1_does(tmp_path: Path, tls: Path, size: int) -> None:
    more = {"protocol": "h2", "headers": HEADERS, "headers_size": None}
    page = secure("/a?b", b"x" * size, tmp_path, **more)
    sent: dict[str, Any] = {
        "method": "POST",
        "request_body_size": 4,
        "posted": digest_body(b"1234", ""),
    }
    post = secure("/p", b"posted", tmp_path, **sent, **more)
    late = secure("/204", b"", tmp_path, status=204, **more)
    url = f"https://{HOST}"
    with on_loopback(tmp_path, page, post, late, terms=ServerOptions(tls=tls)) as site:
        head = ("--include",)
        for path, rest in (("/a?b", ()), ("/p", ("--data", "1234")), ("/204", ())):
            text = curl(site, tls, f"{url}{path}", arguments=(*head, *rest))
            lines, _, body = text.replace("\r\n", "\n").partition("\n\n")
            status, *fields = lines.splitlines()
            sent = dict(field.split(": ", 1) for field in fields)
            assert status.split() == ["HTTP/2", "204" if path == "/204" else "200"]
            assert {"x-cost": "$5", "etag": '"x"'}.items() <= sent.items()
            assert "x-padding" not in sent
            assert sent.get("content-length") == (None if path == "/204" else str(len(body)))
            assert len(body) == {"/a?b": size, "/p": 6, "/204": 0}[path]
        assert "x-replay: miss" in curl(site, tls, f"{url}/no", arguments=head)
        curl(site, tls, f"{url}/a?c", arguments=("--output", "/dev/null"))
    replay = site.replay()
    assert replay.exact == 3
    assert [(each.asked, each.answered) for each in replay.inexact] == [
        (f"GET {url}/a?c", f"GET {url}/a?b")
    ]
    assert replay.missed == (f"GET {url}/no",)
    assert replay.protocols == {f"{url} HTTP/2.0": 5}


def test_a_load_over_one_h2_connection_is_not_cut_short(tmp_path: Path, tls: Path) -> None:
    count = 1200
    pages = [secure(f"/{i}", b"%d," % i, tmp_path, protocol="h2") for i in range(count)]
    with on_loopback(tmp_path, *pages, terms=ServerOptions(tls=tls)) as site:
        said = curl(site, tls, f"https://{HOST}/[0-{count - 1}]")
        assert said == "".join(f"{i}," for i in range(count))
    replay = site.replay()
    assert (replay.exact, replay.missed) == (count, ())
    assert replay.most_per_connection == count


def test_requests_per_connection_hold_over_h2(tmp_path: Path, tls: Path) -> None:
    pages = [secure(f"/{i}", b"%d," % i, tmp_path, protocol="h2") for i in range(7)]
    with on_loopback(tmp_path, *pages, terms=ServerOptions(3, tls=tls)) as site:
        assert curl(site, tls, f"https://{HOST}/[0-6]") == "0,1,2,3,4,5,6,"
    assert site.replay().most_per_connection == 3


def test_two_hosts_over_h2(tmp_path: Path, tls: Path) -> None:
    pages = [
        secure(f"/{i}", b"x" * i, tmp_path, protocol="h2", host=host)
        for host in (HOST, OTHER_HOST)
        for i in range(1, 20)
    ]
    with on_loopback(tmp_path, *pages, terms=ServerOptions(tls=tls)) as site:
        for page in pages:
            said = curl(site, tls, page.url, arguments=("--write-out", "%{http_version}"))
            assert said == "x" * page.body_size + "2"
    replay = site.replay()
    assert replay.exact == len(pages)
    assert set(replay.protocols) == {f"https://{host} HTTP/2.0" for host in (HOST, OTHER_HOST)}


def test_plain_http_on_a_host_of_https_is_a_miss(tmp_path: Path, tls: Path) -> None:
    page = secure("/", b"x", tmp_path)
    with on_loopback(tmp_path, page, terms=ServerOptions(tls=tls)) as site:
        with site.connected(port=80) as connection:
            assert connection.get("/").headers["X-Replay"] == "miss"
        with site.connected(port=443) as connection:
            assert connection.get("/").status == 400
    assert len(site.replay().missed) == 2


def test_tls_without_a_certificate_is_refused(tmp_path: Path, tls: Path) -> None:
    page = secure("/", b"x", tmp_path, host="third.test")
    for folder in (None, tls):
        with (
            pytest.raises(ConfigurationError, match=r"third\.test: .* has no certificate for it"),
            on_loopback(tmp_path, page, terms=ServerOptions(tls=folder)),
        ):
            pytest.fail("there is no certificate")
