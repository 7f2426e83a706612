"""A built page on loopback: what curl and a browser get, and what is left."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from firstflight.cli.serve import browser_argv, curl_argv
from testbed.base import proc
from testbed.base.errors import ConfigurationError, LabError
from testbed.client.chromium.browser import find_browser
from testbed.pages.authority import make_authority
from testbed.server.listeners import Listener
from testbed.server.loopback import LoopbackSite, resolver_rules, serve_loopback
from tests.server.pages import curl_maps

WWW, IMG, PLAIN = "www.page.test", "img.page.test", "old.page.test"
BODIES = {
    f"https://{WWW}/": b"<!DOCTYPE html><title>t</title>"
    + f'<script src="https://{IMG}/a.js?v=1"></script>'.encode()
    + f'<script src="https://{IMG}:8443/b.js"></script>'.encode()
    + f'<img src="https://{IMG}/none.png"><img src="https://other.test/">'.encode(),
    f"https://{IMG}/a.js?v=1": b"document.title += ' a';",
    f"https://{IMG}:8443/b.js": b"document.title += ' b';",
    f"http://{PLAIN}/plain": b"plain",
}


def har_entry(number: int, url: str, body: str, size: int) -> dict[str, Any]:
    mime = "text/javascript" if ".js" in url else "text/html"
    return {"request": {"method": "GET", "url": url, "bodySize": 0},
            "response": {"status": 200, "httpVersion": "h2" if IMG in url else "HTTP/1.1",
                         "headers": [{"name": "Content-Type", "value": mime}],
                         "content": {"size": size, "mimeType": mime}, "redirectURL": "",
                         "headersSize": -1, "bodySize": size},
            "_id": str(number), "_body": body, "_parent": None, "_carrier": None,
            "_how": "root" if number == 0 else "parser", "_gap_ms": None, "_start_ms": None,
            "_dur_ms": None, "_depth": 0, "_after_load": False}  # fmt: skip


def build(folder: Path, urls: tuple[str, ...] = tuple(BODIES)) -> Path:
    """A built page of ``urls``, with certificates if it needs any."""
    (folder / "bodies").mkdir(parents=True)
    entries = []
    for number, url in enumerate(urls):
        name = f"bodies/{hashlib.sha256(BODIES[url]).hexdigest()}"
        (folder / name).write_bytes(BODIES[url])
        entries.append(har_entry(number, url, name, len(BODIES[url])))
    page = {"id": "small", "title": "A small page"}
    (folder / "page.har").write_text(json.dumps({"log": {"pages": [page], "entries": entries}}))
    if any(url.startswith("https:") for url in urls):
        (folder / "tls").mkdir()
        for name, content in make_authority((WWW, IMG, PLAIN)).items():
            (folder / "tls" / name).write_bytes(content)
    return folder


def curl(site: LoopbackSite, url: str) -> str:
    words = ["curl", "--silent", "--show-error", *curl_maps(site.listeners)]
    words += ["--cacert", str(site.tls / "authority.pem")] if site.tls else []
    return proc.run((*words, url)).stdout


def test_every_origin_answers(tmp_path: Path) -> None:
    with serve_loopback(build(tmp_path)) as site:
        for number, (url, body) in enumerate(BODIES.items(), 1):
            assert curl(site, url) == body.decode()
            # Told at once, without an end.
            assert site.replay().exact == number
        assert site.replay().protocols == {
            f"http://{PLAIN} HTTP/1.1": 1, f"https://{IMG} HTTP/2.0": 1,
            f"https://{IMG}:8443 HTTP/2.0": 1, f"https://{WWW} HTTP/1.1": 1,
        }  # fmt: skip


def test_the_protocol_is_a_choice(tmp_path: Path) -> None:
    with serve_loopback(build(tmp_path), "h1") as site:
        curl(site, f"https://{IMG}/a.js?v=1")
        assert site.replay().protocols == {f"https://{IMG} HTTP/1.1": 1}


def test_the_printed_curl_command_gets_the_page(tmp_path: Path) -> None:
    with serve_loopback(build(tmp_path)) as site:
        assert proc.run(curl_argv(site)).stdout == BODIES[f"https://{WWW}/"].decode()


@pytest.mark.browser
def test_the_printed_browser_command_loads_the_page(tmp_path: Path) -> None:
    with serve_loopback(build(tmp_path)) as site:
        _, *arguments = browser_argv(site)
        sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()
        said = proc.run((str(find_browser()), *sandbox, "--dump-dom", *arguments)).stdout
        assert "<title>t a b</title>" in said
        replay = site.replay()
    assert replay.exact == 3
    assert f"GET https://{IMG}/none.png" in replay.missed
    # other.test leads nowhere, so nobody was asked.
    assert set(replay.missed) <= {f"GET https://{IMG}/none.png", f"GET https://{WWW}/favicon.ico"}


def test_a_page_without_https_needs_no_authority(tmp_path: Path) -> None:
    with serve_loopback(build(tmp_path, (f"http://{PLAIN}/plain",))) as site:
        assert (site.authority, site.tls) == (None, None)
        assert proc.run(curl_argv(site)).stdout == "plain"
        assert "--cacert" not in curl_argv(site)
        assert not any("spki" in word for word in browser_argv(site))


def test_ports_are_those_asked_for(tmp_path: Path) -> None:
    with socket.socket() as end:
        end.bind(("127.0.0.1", 0))
        first = end.getsockname()[1]
    built = build(tmp_path, (f"http://{PLAIN}/plain",))
    with serve_loopback(built, first_port=first) as site:
        assert [each.bound_port for each in site.listeners] == [first]
    built = build(tmp_path / "two", (f"http://{PLAIN}/plain", f"https://{WWW}/"))
    with (
        pytest.raises(ConfigurationError, match="port 65535: this page needs 3 ports"),
        serve_loopback(built, first_port=65535),
    ):
        pytest.fail("there are no such ports")


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as end:
        end.bind(("127.0.0.1", 0))
        end.listen()
        built, taken = build(tmp_path, (f"http://{PLAIN}/plain",)), end.getsockname()[1]
        with (
            pytest.raises(LabError, match=r"nginx is not ready: .*Address already in use"),
            serve_loopback(built, first_port=taken),
        ):
            pytest.fail("it cannot listen there")


def test_nothing_is_left(tmp_path: Path) -> None:
    with serve_loopback(build(tmp_path)) as site:
        (port,) = (each.bound_port for each in site.listeners if each.host == PLAIN)
        assert site.scratch.is_dir()
    assert not site.scratch.exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port or 0), timeout=5)


def test_a_server_that_has_ended_is_told(tmp_path: Path) -> None:
    with serve_loopback(build(tmp_path)) as site:
        pid = int((site.scratch / "server" / "nginx.pid").read_text())
        os.kill(pid, 15)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # its exit status stays where it is
        with pytest.raises(LabError, match="the server does not answer"):
            site.replay()


def test_rules_name_every_origin_and_nothing_else() -> None:
    rules = resolver_rules(
        (Listener("a.test", ("127.0.0.1",), 80, False, False, 8001),
         Listener("a.test", ("127.0.0.1",), 443, True, True, 8002))
    )  # fmt: skip
    assert rules == ("MAP a.test:80 127.0.0.1:8001", "MAP a.test:443 127.0.0.1:8002",
                     "MAP * ~NOTFOUND")  # fmt: skip
    assert not any(re.search(r"[,\"]", rule) for rule in rules)
