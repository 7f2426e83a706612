"""What of this machine and its network a recorded page may reach: its own end, and named ones."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.errors import ConfigurationError
from testbed.base.sources import PACKAGE
from wings.pages.recorder import RecordError, RecordOrder, record, session
from wings.pages.recorder.confinement import find_reach, read_refused
from wings.pages.tests.recorder.site import Answer, Site, serving, typed

REFUSED = [
    "0.0.0.0",  # noqa: S104 - nothing is bound to it
    "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255",
    "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1", "172.31.255.255",
    "192.0.0.8", "192.168.0.1", "192.168.255.255", "198.18.0.1", "198.19.255.255", "224.0.0.251",
    "239.255.255.250", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.1.2.3",
    "64:ff9b::10.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2002:c0a8:101::1",
    "fc00::1", "fd12:3456::1", "fe80::1", "febf::1", "fec0::1", "ff02::fb",
]  # fmt: skip
LET_THROUGH = [
    "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
    "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0",
    "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
    "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2001:4860:4860::8888", "2002:808:808::1", "fe00::1",
]  # fmt: skip
# A datagram socket sends nothing when it is connected (connect(2)).
PROGRAM = """\
import errno, json, socket, sys
ends = {}
for address in sys.argv[2:]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as one:
        ends[address] = errno.errorcode.get(one.connect_ex((address, int(sys.argv[1]))), "")
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    for name, send in (("sendto", lambda to: one.sendto(b"x", to)),
                       ("sendmsg", lambda to: one.sendmsg([b"x"], [], 0, to))):
        try:
            send(("127.0.0.1", 9))
            ends[name] = ""
        except OSError as error:
            ends[name] = errno.errorcode[error.errno]
print(json.dumps(ends))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The guard, compiled from its source."""
    made = tmp_path_factory.mktemp("guard") / "guard.so"
    flags = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    proc.run(("cc", *flags, "-o", str(made), str(PACKAGE / "native" / "guard.c")), timeout_s=60)
    return made


def ask(
    library: Path, log: Path, *addresses: str, port: int = 80, allow: str = ""
) -> dict[str, str]:
    """How connecting to each address ends."""
    env = {"LD_PRELOAD": str(library), "GUARD_LOG": str(log), "GUARD_ALLOW": allow}
    argv = (sys.executable, "-I", "-S", "-c", PROGRAM, str(port), *addresses)
    ends: dict[str, str] = json.loads(proc.run(argv, env=env).stdout)
    return ends


def test_addresses_that_are_not_public_are_refused(library: Path, tmp_path: Path) -> None:
    ends = ask(library, tmp_path / "log", *REFUSED)
    assert set(ends.values()) == {"EACCES"}, ends
    refused = read_refused(tmp_path / "log")
    assert len(refused) == len(REFUSED) + 2
    assert {"127.0.0.1:80", "[fe80::1]:80", "169.254.169.254:80", "127.0.0.1:9"} <= set(refused)


def test_public_addresses_are_not(library: Path, tmp_path: Path) -> None:
    ends = ask(library, tmp_path / "log", *LET_THROUGH)
    # Where there is no way to them the kernel says so, and not the guard.
    assert {end for address, end in ends.items() if address in LET_THROUGH} <= {
        "", "ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL"
    }  # fmt: skip
    assert read_refused(tmp_path / "log") == ("127.0.0.1:9", "127.0.0.1:9")


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give itself a public address")
def test_a_public_address_of_this_machine_is_refused(library: Path, tmp_path: Path) -> None:
    script = (
        "ip link set lo up && ip address add 8.8.4.4/32 dev lo && "
        f"LD_PRELOAD={library} GUARD_LOG={tmp_path / 'log'} exec {sys.executable} -I -S -c "
        '"$0" 80 8.8.4.4 8.8.8.8'
    )
    said = proc.run(("unshare", "--net", "sh", "-c", script, PROGRAM)).stdout
    ends = json.loads(said)
    assert ends["8.8.4.4"] == "EACCES"
    assert ends["8.8.8.8"] != "EACCES"


def test_ends_that_are_named_are_let_through(library: Path, tmp_path: Path) -> None:
    log, allow = tmp_path / "log", "127.0.0.2:80,[::1]:80,10.0.0.1:0,nonsense,127.0.0.3"
    ends = ask(library, log, "127.0.0.2", "::1", "127.0.0.3", "127.0.0.1", allow=allow)
    told = [ends[one] for one in ("127.0.0.2", "127.0.0.3", "127.0.0.1")]
    assert told == ["", "EACCES", "EACCES"]
    assert ends["::1"] != "EACCES"
    assert ask(library, log, "10.0.0.1", port=81, allow=allow)["10.0.0.1"] != "EACCES"
    assert ask(library, log, "127.0.0.2", port=81, allow=allow)["127.0.0.2"] == "EACCES"


@contextmanager
def listening() -> Iterator[tuple[int, list[object]]]:
    """A service of this machine on both loopback addresses, and who came to it."""
    came: list[object] = []
    v4 = socket.create_server(("127.0.0.1", 0))
    port = v4.getsockname()[1]
    ends = [v4]
    with suppress(OSError):  # no IPv6 here
        ends.append(socket.create_server(("::1", port), family=socket.AF_INET6))

    def accept(end: socket.socket) -> None:
        while True:
            try:
                connection, who = end.accept()
            except OSError:
                return
            came.append(who)
            connection.close()

    threads = [threading.Thread(target=accept, args=(end,)) for end in ends]
    for thread in threads:
        thread.start()
    try:
        yield port, came
    finally:
        for end in ends:
            end.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
        for end in ends:
            end.close()


WAYS = """<!doctype html><title>t</title>
<link rel=preconnect href="http://127.0.0.1:{port}">
<link rel=prefetch href="http://localhost:{port}/prefetch">
<img src="http://127.0.0.1:{port}/image"><script src="http://localhost:{port}/script"></script>
<img src="http://name.localhost:{port}/name"><img src="http://[::1]:{port}/six">
<img src="http://0.0.0.0:{port}/zero"><img src="http://2130706433:{port}/number">
<img src="http://[::ffff:127.0.0.1]:{port}/mapped"><img src="/redirect">
<iframe src="http://127.0.0.1:{port}/frame"></iframe>
<script>
const ends = [];
for (const host of ['127.0.0.1', 'localhost', '[::1]']) {{
  ends.push(fetch(`http://${{host}}:{port}/fetch`, {{mode: 'no-cors'}}).catch(() => 0));
  ends.push(new Promise((end) => {{
    const socket = new WebSocket(`ws://${{host}}:{port}/`);
    socket.onclose = socket.onopen = end;
  }}));
}}
const source = new EventSource('http://127.0.0.1:{port}/events');
source.onerror = () => source.close();
navigator.sendBeacon('http://127.0.0.1:{port}/beacon', 'x');
ends.push(new Promise((end) => {{
  const code = "fetch('http://127.0.0.1:{port}/worker', {{mode: 'no-cors'}})" +
    ".catch(() => 0).then(() => postMessage(1))";
  new Worker(URL.createObjectURL(new Blob([code]))).onmessage = end;
}}));
if (navigator.serviceWorker) {{
  ends.push(navigator.serviceWorker.register('/service.js').then(
    () => navigator.serviceWorker.ready, () => 0));
}}
try {{
  const peer = new RTCPeerConnection({{iceServers: [
    {{urls: 'stun:127.0.0.1:{port}?transport=tcp'}},
    {{urls: 'turn:127.0.0.1:{port}?transport=tcp', username: 'u', credential: 'c'}}]}});
  peer.createDataChannel('x');
  peer.createOffer().then((offer) => peer.setLocalDescription(offer));
}} catch {{ }}
Promise.all(ends).then(() => fetch('/done'));
</script>"""
SERVICE = "fetch('http://127.0.0.1:{port}/service', {{mode: 'no-cors'}}).catch(() => 0)"


@pytest.mark.nightly(but="False")
@pytest.mark.browser
@pytest.mark.parametrize("allowed", [False, True])
def test_a_page_on_loopback_reaches_no_other_service_there(
    open_scratch: Path, allowed: bool
) -> None:
    site = Site()
    with serving(site), listening() as (port, came):
        home = f"http://127.0.0.1:{site.port}"
        site.put(f"{home}/", typed(WAYS.format(port=port).encode(), "text/html"))
        site.put(f"{home}/done", typed(b"", "text/plain"))
        site.put(f"{home}/service.js", typed(SERVICE.format(port=port).encode(), "text/javascript"))
        moved = (("Location", f"http://127.0.0.1:{port}/redirected"),)
        site.put(f"{home}/redirect", Answer(b"", "302 Found", moved))
        named = (f"127.0.0.1:{port}",) if allowed else ()
        order = RecordOrder(f"{home}/", wait_s=5, timeout_s=300, allowed=named)
        recording = record(order, open_scratch, lambda _line: None)
        asked = {url for _, url in site.asked}
    assert {f"{home}/", f"{home}/done", f"{home}/redirect"} <= asked
    told = [note for note in recording.notes if note.startswith("Kept from an address of this")]
    if allowed:
        assert came
        assert not any("127.0.0.1" in note.partition(":")[2] for note in told)
    else:
        assert came == []
        (note,) = told
        assert f"127.0.0.1:{port} (" in note


@pytest.mark.browser
def test_a_page_that_leads_to_this_machine_is_not_recorded(open_scratch: Path) -> None:
    site = Site()
    with serving(site), listening() as (port, came):
        home = f"http://127.0.0.1:{site.port}"
        moved = (("Location", f"http://localhost:{port}/"),)
        site.put(f"{home}/", Answer(b"", "302 Found", moved))
        with pytest.raises(RecordError, match="--allow-private HOST lets it"):
            record(RecordOrder(f"{home}/", timeout_s=300), open_scratch, lambda _line: None)
        assert came == []


@pytest.mark.browser
def test_no_page_is_loaded_without_the_guard(
    open_scratch: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "guard.so").write_bytes(b"no library")
    monkeypatch.setattr(session, "ensure_native", lambda *_: tmp_path)
    site = Site()
    with serving(site):
        order = RecordOrder(f"http://127.0.0.1:{site.port}/", timeout_s=300)
        with pytest.raises(RecordError, match="has not loaded the guard"):
            record(order, open_scratch, lambda _line: None)
    assert site.asked == []


NAMES = {"public.test": ["93.184.215.14"], "nas.home": ["192.168.1.7", "fd00::7"],
         "mixed.test": ["93.184.215.14", "127.0.0.1"], "localhost": ["::1", "127.0.0.1"],
         "127.0.0.1": ["127.0.0.1"], "fd00::7": ["fd00::7"]}  # fmt: skip


@pytest.mark.parametrize(
    ("url", "more", "ends", "rules"),
    [
        ("https://public.test/", {}, (), ()),
        ("https://gone.test/", {}, (), ()),
        # A name server that shows both might want to be let through to the second.
        ("http://mixed.test/", {}, (), ()),
        ("https://nas.home/", {}, ("192.168.1.7:443",), ("MAP nas.home 192.168.1.7",)),
        ("http://nas.home/", {}, ("192.168.1.7:80", "192.168.1.7:443"),
         ("MAP nas.home 192.168.1.7",)),
        ("http://localhost:8000/", {}, ("127.0.0.1:8000", "[::1]:8000"), ()),
        ("http://127.0.0.1:8000/", {}, ("127.0.0.1:8000",), ()),
        ("https://public.test/", {"allowed": ("nas.home", "127.0.0.1:5000", "[fd00::7]:81")},
         ("192.168.1.7:0", "[fd00::7]:0", "127.0.0.1:5000", "[fd00::7]:81"), ()),
        # What a rule names is named by the caller.
        ("http://a.test:8000/", {"resolver_rules": ("MAP * 127.0.0.1:8080",)},
         ("127.0.0.1:8080",), ()),
        ("http://a.test:8000/", {"resolver_rules": ("MAP a.test 127.0.0.1",)},
         ("127.0.0.1:8000",), ()),
        ("http://nas.home/", {"resolver_rules": ("MAP b.test 127.0.0.1:1", "MAP * ~NOTFOUND")},
         ("127.0.0.1:1",), ()),
        ("https://nas.home/", {"resolver_rules": ("MAP b.test 127.0.0.1:1",)},
         ("127.0.0.1:1", "192.168.1.7:443"), ("MAP nas.home 192.168.1.7",)),
    ],
)  # fmt: skip
def test_what_a_page_may_reach(monkeypatch: pytest.MonkeyPatch, url: str,
                               more: dict[str, tuple[str, ...]], ends: tuple[str, ...],
                               rules: tuple[str, ...]) -> None:  # fmt: skip
    monkeypatch.setattr(socket, "getaddrinfo", fake_getaddrinfo)
    reach = find_reach(RecordOrder(url, **more))  # type: ignore[arg-type]
    assert (reach.ends, reach.rules) == (ends, rules)


def fake_getaddrinfo(host: str, _port: None, **_how: object) -> list[tuple[object, ...]]:
    if host not in NAMES:
        raise socket.gaierror("no such host")
    return [(0, 0, 0, "", (address, 0)) for address in NAMES[host]]


def test_a_host_that_is_let_through_must_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", fake_getaddrinfo)
    order = RecordOrder("http://public.test/", allowed=("gone.home", "gone.home:80"))
    with pytest.raises(ConfigurationError) as caught:
        find_reach(order)
    assert caught.value.problems == ["--allow-private gone.home: no such host",
                                     "--allow-private gone.home:80: no such host"]  # fmt: skip


@pytest.mark.parametrize("text", ["", "a b", "a:b", "a:99999", "a,b", "[::1"])
def test_what_is_no_host(text: str) -> None:
    (problem,) = RecordOrder("http://public.test/", allowed=(text,)).problems
    assert problem.startswith("--allow-private ")
    assert "write it like nas.home:80" in problem
