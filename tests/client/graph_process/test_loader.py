"""The event loop against servers on the loopback interface."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from testbed.client.graph_process.discovery import build_graph
from testbed.client.graph_process.loader import Loader

Speak = Callable[[socket.socket, int], None]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """Calls ``speak(connection, number)`` in a thread for each connection."""

    def __init__(self, speak: Speak) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self.listener.getsockname()[1]
        self.connections = 0
        self._speak = speak

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            arguments = (connection, self.connections)
            threading.Thread(target=self._answer, args=arguments, daemon=True).start()

    def _answer(self, connection: socket.socket, number: int) -> None:
        with connection:
            try:
                self._speak(connection, number)
            except OSError:
                return


@contextmanager
def serving(speak: Speak) -> Iterator[Server]:
    server = Server(speak)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        server.listener.close()


def always(connection: socket.socket, _: int) -> None:
    while connection.recv(4096):
        connection.sendall(OK)


def page(port: int, *children: str, how: str = "script", mime: str = "image/png") -> list[Any]:
    base = f"http://127.0.0.1:{port}"
    common: dict[str, Any] = {"method": "GET", "body_size": 2, "request_body_size": 0}
    common |= {"revalidates": False, "marks": [], "gap_ms": None, "dur_ms": None}
    common |= {"think_factor": 1.0}
    common |= {"tls": False, "host": "127.0.0.1", "port": port}
    found = [common | {"how": "root", "parent": None, "mime": "text/html", "target": "/"}]
    child = common | {"how": how, "parent": f"{base}/", "mime": mime}
    found += [child | {"target": target} for target in children]
    return [entry | {"url": base + entry["target"]} for entry in found]


def load(entries: list[Any], timeout_s: float = 60.0) -> Loader:
    loader = Loader(fast_open=False, timeout_s=timeout_s)
    loader.load(build_graph(entries, "none"))
    return loader


def statuses(loader: Loader) -> list[int]:
    return [fetch.report(loader.start)["status"] for fetch in loader.fetches]


def test_at_most_six_connections_and_they_are_used_again() -> None:
    with serving(always) as server:
        loader = load(page(server.port, *(f"/{n}" for n in range(40))))
        assert statuses(loader) == [200] * 41
        assert 1 < server.connections <= 6
        used = {fetch.connection for fetch in loader.fetches}
        assert len(used) <= 6


def test_requests_have_the_size_of_real_ones() -> None:
    sizes: list[int] = []

    def measure(connection: socket.socket, _: int) -> None:
        while request := connection.recv(4096):
            sizes.append(len(request))
            connection.sendall(OK)

    with serving(measure) as server:
        load(page(server.port, "/a"))
    assert sizes == [490, 490]


def test_what_was_revalidated_is_asked_for_with_a_condition() -> None:
    heads: list[bytes] = []

    def listen(connection: socket.socket, _: int) -> None:
        while request := connection.recv(4096):
            heads.append(request)
            connection.sendall(OK)

    with serving(listen) as server:
        entries = page(server.port, "/a")
        entries[1]["revalidates"] = True
        load(entries)
    assert [b"\r\nIf-None-Match: *\r\n" in head for head in heads] == [False, True]
    assert [len(head) for head in heads] == [490, 490]


def test_stylesheets_overtake_waiting_pictures() -> None:
    with serving(always) as server:
        entries = page(server.port, *(f"/{n}.png" for n in range(20)))
        style = page(server.port, "/s.css", how="script", mime="text/css")[1]
        loader = load([*entries, style])
    order = [fetch.node.url for fetch in sorted(loader.fetches, key=lambda fetch: fetch.sent or 0)]
    assert order.index(style["url"]) <= 12  # behind those already sent, before the rest


def test_a_connection_that_went_stale_is_replaced_once() -> None:
    def once(connection: socket.socket, number: int) -> None:
        connection.recv(4096)
        connection.sendall(OK)
        if number == 1:
            connection.recv(4096)  # the second request is not answered
        else:
            always(connection, number)

    with serving(once) as server:
        loader = load(page(server.port, "/a"))
        assert statuses(loader) == [200, 200]
        assert server.connections == 2
        assert loader.fetches[1].retried


def test_a_server_that_never_answers_in_full_fails_the_request() -> None:
    def cut(connection: socket.socket, _: int) -> None:
        connection.recv(4096)
        connection.sendall(OK[:-1])

    with serving(cut) as server:
        loader = load(page(server.port, "/a"))
        assert statuses(loader) == [0]
        assert "inside a response" in str(loader.fetches[0].error)


def test_nobody_listens() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # bound, so that no other program gets the port
        loader = load(page(silent.getsockname()[1]))
    assert statuses(loader) == [0]
    assert "refused" in str(loader.fetches[0].error)


def test_a_name_that_cannot_be_resolved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    monkeypatch.setattr("testbed.client.graph_process.resolver.ETC_RESOLV_CONF", missing)
    entries = page(1)
    entries[0]["host"] = "no-such-host.test"
    loader = load(entries)
    assert statuses(loader) == [0]
    assert "cannot resolve no-such-host.test" in str(loader.fetches[0].error)


def test_time_is_up() -> None:
    def stall(connection: socket.socket, _: int) -> None:
        connection.recv(4096)
        connection.recv(4096)

    with serving(stall) as server:
        loader = load(page(server.port), timeout_s=0.2)
        assert loader.timed_out
        assert statuses(loader) == [0]


def test_children_in_a_document_are_found_while_it_arrives() -> None:
    second_half = threading.Event()

    def speak(connection: socket.socket, number: int) -> None:
        request = connection.recv(4096)
        if request.startswith(b"GET / "):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b"x" * 50)
            assert second_half.wait(60)
            connection.sendall(b"x" * 50)
        else:
            connection.sendall(OK)
            second_half.set()
        always(connection, number)

    with serving(speak) as server:
        entries = page(server.port, "/early", how="parser")
        entries[0]["dur_ms"], entries[1]["gap_ms"] = 100.0, -60.0
        loader = load(entries)
        assert statuses(loader) == [200, 200]
        root, early = loader.fetches
        assert root.ended is not None
        assert early.sent is not None
        assert early.sent < root.ended  # the end of both may be read in one turn of the loop


@pytest.mark.parametrize("right", [True, False])
def test_a_guess_opens_a_connection_that_is_used_if_it_is_right(right: bool) -> None:
    """Either way there are two: of a wrong one the load's request has to open its own."""
    with serving(always) as server, serving(always) as other:
        entries = [*page(server.port), page(other.port, "/a")[1]]
        entries[1]["parent"] = entries[0]["url"]
        guess = {"host": "127.0.0.1", "tls": False, "right": right}
        loader = Loader(fast_open=False, timeout_s=60.0)
        guessed = {"port": other.port if right else server.port}
        loader.load(build_graph(entries, "none"), [guess | guessed])
        assert statuses(loader) == [200, 200]
        # Wrong: the guess is the second connection, and the request has the third.
        assert loader.fetches[1].connection == (2 if right else 3)


def test_a_guess_at_nobody_fails_no_request() -> None:
    with serving(always) as server:
        loader = Loader(fast_open=False, timeout_s=60.0)
        guess = {"host": "127.0.0.1", "port": 1, "tls": False, "right": True}
        loader.load(build_graph(page(server.port, "/a"), "none"), [guess])
        assert statuses(loader) == [200, 200]
