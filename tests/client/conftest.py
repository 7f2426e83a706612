"""A client and a server in two network namespaces, a replay server, a name server, a SYN count."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testbed.base import proc
from testbed.base.namespace import Namespace
from testbed.client import CLIENTS
from testbed.client.interface import LoadOrder
from testbed.model import PageLoad
from testbed.pages.authority import make_authority
from tests.client.har_model import Har, Load
from tests.client.replay import (
    FastServer,
    Replay,
    Serve,
    Syns,
    answer_names,
    handler,
    reading,
    serving_tls,
)
from tests.client.sites import Site, png
from tests.web import running

NETWORK = "10.83.0"
CLIENT_ADDRESS = f"{NETWORK}.1"
SERVER_ADDRESS = f"{NETWORK}.2"
FAST_OPEN_WITHOUT_COOKIES = "519"
TIMEOUT_S = 300.0  # of a load that is to end
HOSTS = {"www.page.test": f"{NETWORK}.11", "img.page.test": f"{NETWORK}.12"}
SOURCES = Path(__file__).parents[2] / "testbed"


@pytest.fixture
def site() -> Site:
    """A page with a stylesheet, a script, a frame, a redirect, and more pictures than 6."""
    site = Site()
    images = [f"http://img.page.test/{number}.png" for number in range(9)]
    page = b"".join(
        [b"<!doctype html><html><head><meta charset=utf-8><title>t</title>",
         b'<link rel=stylesheet href="/s.css"><script src="/s.js"></script></head><body>',
         *(f'<img src="{url}">'.encode() for url in images),
         b'<img src="/go.png"><iframe src="/frame.html"></iframe></body></html>']
    )  # fmt: skip
    site.add(site.root, page, "text/html", how="root", dur_ms=10.0)
    css = b"body{background:url(/back.png)}"
    site.add("http://www.page.test/s.css", css, "text/css", gap_ms=-5.0)
    script = b"new Image().src='/scripted.png';"
    site.add("http://www.page.test/s.js", script, "text/javascript", gap_ms=-4.0)
    for number, url in enumerate(images):
        site.add(url, png(number), "image/png", gap_ms=-3.0)
    target = "http://img.page.test/target.png"
    go = "http://www.page.test/go.png"
    site.add(go, b"", "image/png", status=302, location=target, gap_ms=-2.0,
             headers=(("Location", target),))  # fmt: skip
    site.add(target, png(100), "image/png", how="redirect", parent=go)
    frame = "http://www.page.test/frame.html"
    site.add(frame, b'<img src="/in-frame.png">', "text/html", how="frame", gap_ms=-1.0)
    site.add("http://www.page.test/in-frame.png", png(101), "image/png", parent=frame)
    style, code = "http://www.page.test/s.css", "http://www.page.test/s.js"
    site.add("http://www.page.test/back.png", png(102), "image/png", how="css", parent=style)
    site.add("http://www.page.test/scripted.png", png(103), "image/png", how="script",
             parent=code, gap_ms=20.0)  # fmt: skip
    return site


@dataclass(frozen=True)
class TwoEnds:
    """The client's and the server's namespace, joined by a pair of virtual Ethernet devices."""

    client: Namespace
    server: Namespace

    def set_fast_open(self, wanted: str) -> None:
        for end in (self.client, self.server):
            end.write_sysctls({"net.ipv4.tcp_fastopen": wanted})


@pytest.fixture(scope="session")
def two_ends() -> Iterator[TwoEnds]:
    """Two namespaces of our own; they and their files are gone afterwards."""
    names = [f"ff-test-{end}-{os.getpid()}" for end in ("c", "s")]
    with ExitStack() as undo:
        for name in names:
            proc.run(["ip", "netns", "add", name])
            undo.callback(proc.run, ["ip", "netns", "delete", name])
        folder = Path("/etc/netns") / names[0]
        folder.mkdir(parents=True)
        undo.callback(shutil.rmtree, folder)
        (folder / "resolv.conf").write_text(f"nameserver {SERVER_ADDRESS}\n")
        (folder / "nsswitch.conf").write_text("hosts: files dns\n")
        (folder / "hosts").write_text("127.0.0.1 localhost\n")
        client, server = (Namespace(name) for name in names)
        peer = ("type", "veth", "peer", "name", "s0", "netns", server.name)
        proc.run(["ip", "-n", client.name, "link", "add", "c0", *peer])
        addresses = {client: [CLIENT_ADDRESS], server: [f"{NETWORK}.{n}" for n in (2, 11, 12)]}
        for end, device in ((client, "c0"), (server, "s0")):
            end.write_sysctls({"net.ipv6.conf.all.disable_ipv6": "1"})
            proc.run(["ip", "-n", end.name, "link", "set", "lo", "up"])
            for address in addresses[end]:
                proc.run(["ip", "-n", end.name, "address", "add", f"{address}/24", "dev", device])
            proc.run(["ip", "-n", end.name, "link", "set", device, "up"])
        yield TwoEnds(client, server)


@pytest.fixture
def serve(two_ends: TwoEnds) -> Iterator[Serve]:
    """Start servers for a site in the server's namespace; gives what they saw."""
    with ExitStack() as undo:

        def start(site: Site) -> Replay:
            with two_ends.server.entered():
                every_protocol = socket.htons(3)
                packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, every_protocol)
                undo.callback(packets.close)
                packets.bind(("s0", 0))
                replay = Replay(site, Syns(packets))
                servers = [FastServer(handler(replay), address=(a, 80)) for a in HOSTS.values()]
                names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                names.bind((SERVER_ADDRESS, 53))
            for server in servers:
                undo.enter_context(running(server))
            undo.enter_context(reading(answer_names, names, HOSTS))
            return replay

        yield start


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``tls`` folder of a built page."""
    folder = tmp_path_factory.mktemp("page") / "tls"
    folder.mkdir()
    for name, content in make_authority(HOSTS).items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def serve_tls(two_ends: TwoEnds, serve: Serve, authority: Path, tmp_path: Path) -> Iterator[Serve]:
    """Like ``serve``, behind an nginx that speaks TLS; ``h2`` is whether it offers HTTP/2."""
    with ExitStack() as undo:

        def start(site: Site, *, h2: bool, versions: str = "TLSv1.2 TLSv1.3") -> Replay:
            replay = serve(site)
            folder = tmp_path / "nginx"
            front = serving_tls(two_ends.server, HOSTS, authority, folder, h2, versions)
            undo.enter_context(front)
            return replay

        yield start


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with the shim compiled from its source."""
    folder = tmp_path_factory.mktemp("bundle")
    (folder / "native").mkdir()
    for name in ("tfo", "keyshare"):
        compile_shim(folder / "native" / f"{name}.so")
    shutil.copytree(SOURCES.parent / "docs" / "own-client", folder / "own")
    return folder


def compile_shim(target: Path) -> None:
    """Compile the shim of that name with every warning an error."""
    flags = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")
    proc.run(["gcc", *flags, "-o", str(target), str(SOURCES / "native" / f"{target.stem}.c")])


@pytest.fixture
def load(two_ends: TwoEnds, bundle: Path, tmp_path: Path) -> Load:
    """Load a site by a client, with a fresh scratch folder; gives the load and its HAR."""

    def once(
        name: str, site: Site, *, tfo: bool, timeout_s: float = TIMEOUT_S, **more: Any
    ) -> tuple[PageLoad, Har]:
        two_ends.set_fast_open(FAST_OPEN_WITHOUT_COOKIES if tfo else "0")
        scratch, out = tmp_path / "scratch", tmp_path / "out"
        scratch.mkdir()
        out.mkdir()
        order = LoadOrder(
            site.archive(), two_ends.client.prefix, tfo, "recorded", bundle, scratch, out,
            timeout_s, command="{folder}/load.py {urls} {ca}", **more,
        )  # fmt: skip
        loaded = CLIENTS[name].load(order)
        return loaded, Har.model_validate_json((out / "load.har").read_text("utf-8"))

    return once
