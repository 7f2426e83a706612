"""HTTPS, over HTTP/1.1 and HTTP/2, from nginx with a certificate that only this browser trusts."""

from __future__ import annotations

import gzip
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.pages.authority import make_authority
from wings.pages.exchange import PageExchange, Recording
from wings.pages.recorder import RecordError, RecordOrder, record

pytestmark = pytest.mark.browser

Recorded = tuple[Recording, dict[str, tuple[int, bytes]]]
HOSTS = {"h1.site.test": "ssl", "h2.site.test": "ssl http2"}
PAGE = b"<title>t</title><script src=https://h1.site.test/a.js></script><script src=/old></script>"
PAGE += b" " * 999
TEXT = b"var a = 1;\n" * 999


def configuration(folder: Path, ports: dict[str, int]) -> str:
    servers = "".join(
        f"""
  server {{
    listen 127.0.0.1:{ports[host]} {words};
    server_name {host};
    ssl_certificate {folder}/{host}.pem;
    ssl_certificate_key {folder}/key.pem;
    gzip on;
    gzip_types *;
    types {{ text/html html; text/javascript js; image/png png; }}
    root {folder}/www;
    location = / {{ try_files /index.html =404; }}
    location = /old {{ return 302 https://h1.site.test/older; }}
    location = /older {{ return 302 https://h2.site.test/a.js; }}
  }}"""
        for host, words in HOSTS.items()
    )
    return f"""
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{ }}
http {{
  access_log off;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;{servers}
}}
"""


@contextmanager
def nginx(folder: Path) -> Iterator[dict[str, int]]:
    """Serve on free ports; they are free still when nginx takes them, or it does not start."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in HOSTS]
    ports = {host: one.getsockname()[1] for host, one in zip(HOSTS, listeners, strict=True)}
    for one in listeners:
        one.close()
    for name, data in make_authority(HOSTS).items():
        (folder / name).write_bytes(data)
    (folder / "www").mkdir()
    (folder / "www" / "index.html").write_bytes(PAGE)
    (folder / "www" / "a.js").write_bytes(TEXT)
    (folder / "nginx.conf").write_text(configuration(folder, ports))
    argv = ["nginx", "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]
    with proc.started(argv) as child:
        while True:
            try:
                socket.create_connection(("127.0.0.1", ports["h1.site.test"])).close()
                break
            except ConnectionRefusedError:
                assert child.poll() is None, (folder / "error.log").read_text()
        yield ports


def ask(folder: Path, port: int, host: str, path: str) -> tuple[int, bytes]:
    """Head size over HTTP/1.1 and body as transferred, asked for as the browser does."""
    context = ssl.create_default_context(cafile=str(folder / "authority.pem"))
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: gzip\r\n\r\n"
    with (socket.create_connection(("127.0.0.1", port)) as raw,
          context.wrap_socket(raw, server_hostname=host) as connection):  # fmt: skip
        connection.sendall(request.encode())
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
    plain = HTTPSConnection("127.0.0.1", port, context=_trusting(context))
    plain.request("GET", path, headers={"Host": host, "Accept-Encoding": "gzip"})
    body = plain.getresponse().read()
    plain.close()
    return data.index(b"\r\n\r\n") + 4, body


def _trusting(context: ssl.SSLContext) -> ssl.SSLContext:
    context.check_hostname = False
    return context


@pytest.fixture(scope="module")
def recorded(open_scratch: Path, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("nginx")
    folder.chmod(0o755)
    with nginx(folder) as ports:
        rules = tuple(f"MAP {host} 127.0.0.1:{port}" for host, port in ports.items())
        order = RecordOrder("https://h2.site.test/", wait_s=1, resolver_rules=rules,
                            authority=folder / "authority.pem")  # fmt: skip
        recording = record(order, open_scratch, lambda _line: None)
        expected = {
            f"https://{host}{path}": ask(folder, ports[host], host, path)
            for host, path in (
                ("h2.site.test", "/"), ("h1.site.test", "/a.js"), ("h2.site.test", "/a.js"),
                ("h1.site.test", "/older"), ("h2.site.test", "/old"),
            )
        }  # fmt: skip
    return recording, expected


def refused(folder: Path, port: int, host: str, scratch: Path, authority: Path | None) -> str:
    order = RecordOrder(f"https://{host}/", wait_s=1,
                        resolver_rules=(f"MAP {host} 127.0.0.1:{port}",),
                        authority=authority)  # fmt: skip
    with pytest.raises(RecordError) as caught:
        record(order, scratch, lambda _line: None)
    return str(caught.value)


def test_who_is_not_trusted(open_scratch: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with nginx(tmp_path) as ports:
        port = ports["h1.site.test"]
        said = refused(tmp_path, port, "h1.site.test", open_scratch, None)
        assert "ERR_CERT_AUTHORITY_INVALID" in said
        assert "--ca FILE" in said
        # The authority vouches for names, not for whoever has a key of it.
        named = tmp_path / "authority.pem"
        said = refused(tmp_path, port, "another.test", open_scratch, named)
        assert "ERR_CERT_COMMON_NAME_INVALID" in said


@pytest.mark.parametrize(
    ("held", "problem"),
    [
        (None, "No such file"),
        (b"HKwjX3y6fUl6TzUyRCoYWV79N/ka5tcI26Ep7eaveFs=", "name a PEM file with the authority's"),
        ("www.site.test.pem", "CN=www.site.test is no authority"),
        ("authority.pem", ""),
    ],
)
def test_what_can_be_an_authority(tmp_path: Path, held: bytes | str | None, problem: str) -> None:
    path = tmp_path / "mine.pem"
    if held is not None:
        named = make_authority(("www.site.test",))
        path.write_bytes(named[held] if isinstance(held, str) else held)
    problems = RecordOrder("https://www.site.test/", authority=path).problems
    assert len(problems) == (1 if problem else 0)
    assert all(f"--ca {path}: " in said and problem in said for said in problems)


def find(recording: Recording, url: str) -> PageExchange:
    (found,) = (exchange for exchange in recording.exchanges if exchange.url == url)
    return found


def test_protocols_and_heads(recorded: Recorded) -> None:
    recording, expected = recorded
    assert {exchange.url for exchange in recording.exchanges} == set(expected)
    for exchange in recording.exchanges:
        if exchange.url.startswith("https://h2."):
            assert (exchange.protocol, exchange.headers_size) == ("h2", None)
            assert not any(name.startswith(":") for name, _ in exchange.request_headers)
        else:
            head = expected[exchange.url][0]
            assert (exchange.protocol, exchange.headers_size) == ("http/1.1", head)


def test_bodies(recorded: Recorded) -> None:
    recording, expected = recorded
    for url in ("https://h2.site.test/", "https://h1.site.test/a.js", "https://h2.site.test/a.js"):
        exchange = find(recording, url)
        assert exchange.body == expected[url][1]
        assert exchange.body is not None
        assert gzip.decompress(exchange.body) == (TEXT if url.endswith("js") else PAGE)
    older = "https://h1.site.test/older"
    assert find(recording, older).body == expected[older][1]


def test_a_redirect_over_h2_has_a_body_of_the_size(recorded: Recorded) -> None:
    recording, expected = recorded
    url = "https://h2.site.test/old"
    exchange = find(recording, url)
    assert exchange.body_size == len(expected[url][1])
    assert exchange.body is not None
    assert len(exchange.body) == exchange.body_size
    assert recording.notes == (
        f"Body of which only the size was seen, replaced by another of that size: {url}.",
    )
