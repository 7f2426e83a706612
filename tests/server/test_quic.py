"""The server over QUIC alone: what it is told, and, asked by aioquic's own client, what it does."""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.archive.reading import Entry
from testbed.base import proc
from testbed.base.errors import ConfigurationError, LabError
from testbed.model import Condition, QuicSpec, Replay, ServedConnection, Substitution
from testbed.root.cache import Root
from testbed.root.interpreter import program_argv
from testbed.server.lengths import list_connections
from testbed.server.listeners import Listener
from testbed.server.nginx import PROGRAMS, Handshakes, ServerOptions
from testbed.server.quic import ENVIRONMENT, order_of_page, serve_quic
from testbed.server.quic_stack import QuicStack, check_stack, read_stack
from testbed.server.replay_log import read_answered, read_replay
from testbed.server.think import Think
from tests.server.pages import HOST, make_archive
from tests.server.test_tls import secure, tls

__all__ = ["tls"]
CLIENT = Path(__file__).with_name("quic_client.py")
STACK = QuicStack("aioquic 1.3.0", 10, 1200, "reno")
BY_AIOQUIC = Condition("page", "chromium", protocol="h3", web_server="aioquic")


@pytest.fixture
def python(root: Root) -> tuple[str, ...]:
    """The words that start the component's Python on this machine."""
    program = Path(PROGRAMS["aioquic"][0])
    usr = root.usr / program.parents[1].relative_to("/usr")
    return program_argv(usr, str(program.relative_to(program.parents[1])))


def test_no_server_has_to_compile_what_it_imports(root: Root) -> None:
    usr = root.usr / Path(PROGRAMS["aioquic"][0]).parents[1].relative_to("/usr")
    sources = {file.stem for file in usr.glob("lib/python3/dist-packages/aioquic/*.py")}
    compiled = usr.glob("lib/python3/dist-packages/aioquic/__pycache__/*.pyc")
    assert sources and sources == {file.name.partition(".")[0] for file in compiled}


class Asked:
    """What clients got of a page, and what the server's log says of them."""

    def __init__(
        self, scratch: Path, entries: tuple[Entry, ...], options: ServerOptions, *words: str,
        quic: QuicSpec | None = None,
    ) -> None:  # fmt: skip
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            end.bind(("127.0.0.1", 0))
            port = end.getsockname()[1]
        listener = Listener(HOST, ("127.0.0.1",), 443, True, True, bound_port=port, h3=True)
        archive, self.folder = make_archive(*entries), scratch / "quic"
        served = (None, archive, (listener,), self.folder, options, quic or QuicSpec())
        assert options.tls is not None
        with serve_quic(*served):
            ask = (*options.program, "-I", str(CLIENT), str(options.tls / "authority.pem"))
            said = proc.run((*ask, HOST, str(port), *words), timeout_s=60, env=ENVIRONMENT)
        self.answers: list[dict[str, Any]] = json.loads(said.stdout)
        self.entries = archive.entries

    @property
    def replay(self) -> Replay:
        return read_replay(self.folder, self.entries)

    @property
    def connections(self) -> tuple[ServedConnection, ...]:
        return list_connections(read_answered(self.folder, self.entries))


def test_requests_get_what_was_recorded(tmp_path: Path, tls: Path, python: tuple[str, ...]) -> None:
    headers = (("Content-Type", "text/css"), ("X-Cost", "$5 caf\xe9"))
    entries = (
        secure("/", b"page" * 9000, tmp_path),
        secure("/a.css?v=123", b"style", tmp_path, headers=headers, status=203),
        secure("/a.css?v=99", b"other", tmp_path),
        secure("/again", b"", tmp_path, status=304),
        secure("/again", b"full", tmp_path),
    )
    words: tuple[str, ...] = ("GET /", "HEAD /", "GET /a.css?v=123", "GET /a.css?v=124",
                              "GET /again", "GET /none")  # fmt: skip
    words += ("GET /again conditional", "GET /a.css?v=99 conditional")
    site = Asked(tmp_path, entries, ServerOptions(tls=tls, program=python), *words)
    page, head, style, near, full, miss, again, other = site.answers
    assert (page["fields"][":status"], page["body"]) == ("200", "page" * 9000)
    assert (head["fields"]["content-length"], head["body"]) == ("36000", "")
    assert (style["fields"][":status"], style["fields"]["x-cost"]) == ("203", "$5 caf\xe9")
    assert style["body"] == near["body"] == "style"
    assert (full["body"], other["body"]) == ("full", "other")
    assert again["fields"][":status"] == "304"
    assert (miss["fields"][":status"], miss["fields"]["x-replay"]) == ("404", "miss")
    url = f"GET https://{HOST}"
    assert site.replay == Replay(
        exact=6, inexact=(Substitution(f"{url}/a.css?v=124", f"{url}/a.css?v=123"),),
        missed=(f"{url}/none",), most_per_connection=1, protocols={f"https://{HOST} HTTP/3.0": 8},
    )  # fmt: skip
    answered = read_answered(site.folder, site.entries)
    assert all(each.complete and each.sent_bytes > each.body_bytes for each in answered)
    assert [each.body_bytes for each in answered] == [36000, 0, 5, 5, 4, 0, 0, 5]


def test_equal_requests_and_conditions_get_their_own_answers(
    tmp_path: Path, tls: Path, python: tuple[str, ...]
) -> None:
    entries = (
        secure("/", b"page", tmp_path, headers=(("ETag", '"x"'),)),
        *(secure("/poll", body, tmp_path) for body in (b"one", b"two")),
    )
    words = ("GET / conditional", "GET /poll", "GET /poll", "GET /poll")
    options = ServerOptions(tls=tls, program=python, validates=True)
    site = Asked(tmp_path, entries, options, *words)
    assert [each["body"] for each in site.answers] == ["", "one", "two", "two"]
    assert site.answers[0]["fields"][":status"] == "304"
    assert (site.replay.exact, len(site.replay.inexact)) == (3, 1)


@pytest.mark.parametrize(
    ("handshakes", "resumed", "early"),
    [(Handshakes(), False, 0), (Handshakes(tickets=True), True, 0),
     (Handshakes(tickets=True, early_data=True), True, 1),
     (Handshakes(tickets=True, early_data=True, early_data_at="first"), True, 1),
     (Handshakes(tickets=True, early_data=True, early_data_at="others"), True, 0)],
)  # fmt: skip
def test_sessions_are_resumed_and_early_only_if_asked(
    tmp_path: Path, tls: Path, python: tuple[str, ...],
    handshakes: Handshakes, resumed: bool, early: int,
) -> None:  # fmt: skip
    options = ServerOptions(tls=tls, program=python, handshakes=handshakes)
    site = Asked(tmp_path, (secure("/", b"x", tmp_path),), options, "GET /", "GET /")
    first, second = site.connections
    assert (first.resumed, first.early) == (False, 0)
    assert (second.resumed, second.early) == (resumed, early)
    assert [(each["resumed"], each["early"]) for each in site.answers] == [
        (False, False), (resumed, bool(early)),
    ]  # fmt: skip


@pytest.mark.parametrize("certificates", [2, 5])
def test_as_many_certificates_as_asked(
    tmp_path: Path, tls: Path, python: tuple[str, ...], certificates: int
) -> None:
    handshakes = Handshakes(certificates=certificates)
    options = ServerOptions(tls=tls, program=python, handshakes=handshakes)
    (answer,) = Asked(tmp_path, (secure("/", b"x", tmp_path),), options, "GET /").answers
    assert answer["issuers"] == certificates - 1


def test_knobs_are_set_and_said(tmp_path: Path, tls: Path, python: tuple[str, ...]) -> None:
    options = ServerOptions(tls=tls, program=python)
    for number, (quic, window, control) in enumerate(
        [(QuicSpec(), 10, "reno"), (QuicSpec(32, "cubic"), 32, "cubic")]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        site = Asked(folder, (secure("/", b"x", folder),), options, "GET /", quic=quic)
        stack = read_stack(site.folder, BY_AIOQUIC)
        assert stack is not None
        assert (stack.initcwnd_packets, stack.congestion_control) == (window, control)
        assert stack.program.startswith("aioquic ")
        assert not list(check_stack(stack, quic))


def test_a_server_that_does_not_start_says_why(
    tmp_path: Path, tls: Path, python: tuple[str, ...]
) -> None:
    listener = Listener(HOST, ("192.0.2.1",), 443, True, True, h3=True)
    archive = make_archive(secure("/", b"x", tmp_path))
    options = ServerOptions(tls=tls, program=python)
    with (
        pytest.raises(LabError, match=r"(?s)aioquic is not ready: .*Cannot assign"),
        serve_quic(None, archive, (listener,), tmp_path / "quic", options, QuicSpec()),
    ):
        pytest.fail("it listens at an address of nobody")


def test_each_location_thinks_for_its_time(tmp_path: Path, tls: Path) -> None:
    archive = make_archive(secure("/", b"x", tmp_path), secure("/b", b"", tmp_path))
    listeners = (Listener(HOST, ("10.10.0.1",), 443, True, True, h3=True),)
    think = Think(50.0, 20.0, 7)
    options = ServerOptions(tls=tls, think=think)
    order = order_of_page(archive, listeners, options, QuicSpec())
    times = [order["answers"][number]["think_ms"] for number in (0, 1)]
    assert times == [think.delay_ms(f"GET https://{HOST}{path}") for path in ("/", "/b")]
    assert order["listeners"][0]["miss_ms"] == think.delay_ms("miss")


def test_an_origin_without_a_certificate_is_refused(tmp_path: Path) -> None:
    listeners = (Listener(HOST, ("10.10.0.1",), 443, True, True, h3=True),)
    archive = make_archive(secure("/", b"x", tmp_path))
    for folder in (None, tmp_path):
        with pytest.raises(ConfigurationError, match="has no certificate"):
            order_of_page(archive, listeners, ServerOptions(tls=folder), QuicSpec())


@pytest.mark.parametrize(
    ("asked", "said"),
    [(QuicSpec(), ()), (QuicSpec(10, "reno"), ()),
     (QuicSpec(32), ("the server's QUIC has initcwnd_packets = 10 instead of 32",)),
     (QuicSpec(quic_control="cubic"),
      ("the server's QUIC has congestion_control = reno instead of cubic",))],
)  # fmt: skip
def test_a_stack_is_held_against_what_was_asked(asked: QuicSpec, said: tuple[str, ...]) -> None:
    assert tuple(check_stack(STACK, asked)) == said


def test_over_tcp_nothing_is_read_of_a_stack(tmp_path: Path) -> None:
    assert read_stack(tmp_path, replace(BY_AIOQUIC, protocol="h2")) is None
