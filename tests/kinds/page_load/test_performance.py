"""A page load with a lab, a server and a client that are words: what it orders and judges."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.archive.reading import Archive, Entry, split_url
from testbed.base.errors import MissingError
from testbed.client.interface import ClientPlace, LoadOrder, LoadTimeoutError
from testbed.kinds import page_lab
from testbed.kinds import workspace as sites
from testbed.kinds.page_load import performance
from testbed.kinds.page_load.measurement import loads_differ
from testbed.kinds.workspace import Site
from testbed.lab.alignment import AGE_NS, Moments
from testbed.lab.exactness import HOST
from testbed.lab.link import backend
from testbed.lab.tcp import NOTHING
from testbed.mechanisms.acting import ACTING
from testbed.model import (
    RESOLUTION_MS,
    SERVER_LOG_FILE,
    Between,
    Condition,
    LabReading,
    Opening,
    PageLoad,
    Randomness,
    Replay,
    RequestTiming,
    Substitution,
    TcpSpec,
    Trial,
)
from testbed.runner.trial import perform
from testbed.server.listeners import Listener
from testbed.server.nginx import ERROR_LOG, Handshakes, ServerOptions
from testbed.server.replay_log import LoggedAnswer
from testbed.server.think import Think

FOLDERS = ("page", "out", "bundle", "scratch")
ROOT, OTHER = "https://www.page.test/", "http://img.page.test/a.png?v=1"
LOAD = PageLoad(
    "graph", "1", 100.0, (RequestTiming(ROOT, 200, 0, 50), RequestTiming(OTHER, 200, 50, 100))
)
SPOKEN = {"https://www.page.test HTTP/2.0": 1, "http://img.page.test HTTP/1.1": 1}
REPLAY = Replay(2, most_per_connection=1, protocols=SPOKEN)
CONDITION = Condition("p", "graph", tcp=TcpSpec(requests_per_connection=3))


def site_of(folder: Path) -> Site:
    """The site of trials whose folders are in ``folder``."""
    page, out, bundle, scratch = (folder / name for name in FOLDERS)
    return Site(page, out, bundle, scratch)


def entry(url: str, protocol: str) -> Entry:
    """One recorded exchange."""
    scheme, host, port, path = split_url(url)
    return Entry(
        id="0", url=url, scheme=scheme, host=host, port=port, path=path, method="GET", status=200,
        protocol=protocol, headers=(), headers_size=None, body_size=0, decoded_size=0,
        request_body_size=0, mime="", body=None, location=None, parent=None, carrier=None,
        how="root", gap_ms=None, start_ms=None, dur_ms=None, depth=0, after_load=False,
    )  # fmt: skip


ARCHIVE = Archive("p", "P", ROOT, (entry(ROOT, "h2"), entry(OTHER, "http/1.1")), "0" * 64)


@dataclass
class Report:
    """What a link may tell of itself, numbers and others."""

    backend: str = "tap"
    worst_lateness_ms: float = 1.5
    mean_lateness_ms: float | None = None
    dropped_packets: int = 4
    stray_packets: int = 0
    late_packets: dict[str, int] = field(default_factory=lambda: {"1 ms": 3})


@dataclass
class Stage:
    """What happens in the trial, and what was asked of each part of it."""

    folder: Path
    load: PageLoad | Exception = LOAD
    replay: Replay = REPLAY
    answered: tuple[LoggedAnswer, ...] = ()
    archive: Archive = ARCHIVE
    complaint: str = ""
    reading: LabReading = field(default_factory=lambda: LabReading((), {}))
    changes: tuple[str, ...] = ()
    orders: list[LoadOrder] = field(default_factory=list)
    served: list[tuple[tuple[Listener, ...], ServerOptions]] = field(default_factory=list)
    running: bool = False
    real_time: bool = False
    labs: list[tuple[object, ...]] = field(default_factory=list)
    stages: list[int] = field(default_factory=list)
    laid: object = None

    def perform(self, condition: Condition = CONDITION, at: Site | None = None) -> dict[str, Any]:
        """The observation of a trial of ``condition``, by itself or at a site that is ready."""
        for name in FOLDERS:
            (self.folder / name).mkdir(exist_ok=True)
        site = at or replace(site_of(self.folder), aligned=not self.real_time)
        return perform(Trial(condition, 0, 0, "virtual", "7.3"), site)

    @contextmanager
    def open_lab(
        self,
        _condition: object,
        _origins: int,
        *asked: object,
        seed: object = 0,
        own: object = NOTHING,
        laid: object = None,
        neighbours: object = (),
        mechanisms: object = (),
    ) -> Iterator[Any]:
        """A lab without anything in it."""
        assert neighbours == ()
        assert own == NOTHING
        assert mechanisms == ACTING
        self.laid = laid
        self.labs.append(asked)
        end = SimpleNamespace(name="client", prefix=("in", "client"))
        topology = SimpleNamespace(client=end, server=end)
        yield SimpleNamespace(
            topology=topology,
            reading=self.reading,
            prepare=lambda _origins: None,
            begin_traces=lambda _seed, _load_ns: None,
            watched=self.watched,
            changing=nullcontext,
            read_link=Report,
            settle_s=0.0,
        )

    @contextmanager
    def watched(self) -> Iterator[Callable[[], LabReading]]:
        """Read again after the load, while the server runs."""

        def read_again() -> LabReading:
            assert self.orders and self.running
            return replace(self.reading, changes=self.changes, traffic={"down.delivered": 7})

        yield read_again

    @contextmanager
    def serve(
        self, _end: object, _archive: object, listeners: Any, scratch: Path, terms: ServerOptions
    ) -> Iterator[int]:
        """A server that writes its log when it ends."""
        self.served.append((listeners, terms))
        scratch.mkdir()
        self.running = True
        try:
            yield os.getpid()
        finally:
            self.running = False
            (scratch / ERROR_LOG).write_text(self.complaint)

    def read_replay(self, _scratch: Path, _entries: object) -> Replay:
        """The log, which is complete only when the server has ended."""
        assert not self.running
        return self.replay

    def read_answered(self, scratch: Path, entries: object) -> tuple[LoggedAnswer, ...]:
        """As ``read_replay``, request by request."""
        self.read_replay(scratch, entries)
        return self.answered

    def ask(self, order: LoadOrder) -> PageLoad:
        """The client."""
        self.orders.append(order)
        (order.out / "load.har").write_text("{}")
        if isinstance(self.load, Exception):
            raise self.load
        return self.load


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    made = Stage(tmp_path)
    for name, part in {
        "read_archive": lambda _page: made.archive,
        "serve": made.serve,
        "name_files": lambda *_asked: nullcontext(),
        "resolve": lambda *_asked: nullcontext(),
        "capture": lambda *_asked: nullcontext(),
        "recorded": lambda *_asked: nullcontext(),
        "begin_stage": lambda: made.stages.append(len(made.orders)),
        "draw_secrets": lambda: None,
        "read_counters": lambda _end: {"TcpActiveOpens": 1},
        "read_replay": made.read_replay,
        "read_answered": made.read_answered,
        "CLIENTS": {"graph": SimpleNamespace(load=made.ask)},
    }.items():
        for module in (page_lab, performance):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, part)
    monkeypatch.setattr(sites, "open_lab", made.open_lab)
    monkeypatch.setattr(backend, "choose_backend", lambda: "the backend")
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "client.pcap").touch()
    return made


def test_a_load_of_the_whole_page(stage: Stage) -> None:
    stage.complaint = "[warn] more connections than files"  # no complaint
    observed = stage.perform()
    assert "error" not in observed and observed["problems"] == ()
    assert observed["load"]["plt_ms"] == 100.0
    assert observed["replay"]["exact"] == 2
    assert observed["counters"] == {end: {"TcpActiveOpens": 0} for end in ("client", "server")}
    assert sorted(path.name for path in (stage.folder / "out").iterdir()) == [
        "client.pcap", "load.har",
    ]  # fmt: skip


def test_the_lab_is_read_again_after_the_load(stage: Stage) -> None:
    stage.changes = ("server: MTU of s0 was '1500' before the load, and is '1400' after it",)
    observed = stage.perform()
    assert observed["lab"]["changes"] == stage.changes
    assert observed["lab"]["traffic"] == {"down.delivered": 7}


def test_in_virtual_time_nobody_looks_at_the_machine(stage: Stage) -> None:
    observed = stage.perform()
    assert observed["machine"] == {}
    assert stage.labs == [("",)]
    assert stage.orders[0].wait_until_ns is not None


@pytest.mark.parametrize("real_time", [False, True])
def test_lab_and_capture_begin_at_round_instants_in_virtual_time(
    stage: Stage, real_time: bool
) -> None:
    stage.real_time = real_time
    stage.perform()
    assert stage.stages == ([] if real_time else [0, 0])


def test_in_real_time_the_machine_and_its_link_are_watched(stage: Stage) -> None:
    stage.real_time = True
    machine = stage.perform()["machine"]
    assert stage.labs == [("", HOST, "the backend", 0)]
    assert stage.orders[0].wait_until_ns is None
    assert {"steal_pct", "others_pct", "load_1min", "cpu_s", "server_queued_ms"} < set(machine)
    assert "client_queued_ms" not in machine  # this client does not tell
    assert machine["worst_lateness_ms"] == 1.5
    assert "mean_lateness_ms" not in machine  # what the link does not tell is no number
    assert (machine["dropped_packets"], machine["stray_packets"]) == (4.0, 0.0)
    assert all(isinstance(value, float) for value in machine.values())


@pytest.mark.parametrize("tls", [True, False])
def test_what_server_and_client_are_told(stage: Stage, tls: bool) -> None:
    folder = stage.folder / "page" / "tls"
    if tls:
        folder.mkdir(parents=True)
    stage.perform(replace(CONDITION, protocol="h1", tls_version="1.2"))
    (order,), ((listeners, terms),) = stage.orders, stage.served
    expected = folder if tls else None
    assert (order.tls, order.tls_version, order.protocol) == (expected, "1.2", "h1")
    assert terms == ServerOptions(3, Handshakes("1.2"), expected)
    assert [(each.host, each.port, each.h2) for each in listeners] == [
        ("www.page.test", 80, False), ("img.page.test", 80, False), ("www.page.test", 443, False),
    ]  # fmt: skip


def test_think_times_reach_server_and_client(stage: Stage) -> None:
    stage.perform(replace(CONDITION, server_think_ms=50.0, think_spread_pct=10.0))
    (order,), ((_, terms),) = stage.orders, stage.served
    assert terms.think == Think(50.0, 10.0, 0)
    assert (order.think_spread_pct, order.seed) == (10.0, 0)


def test_the_start_is_spread_in_virtual_time_only(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def choose(trial: Trial, launched_ns: int | None, _lead_s: float | None) -> Moments:
        assert launched_ns is None
        return Moments(5, 6 + int(trial.condition_as(Condition).start_spread_ms))

    monkeypatch.setattr(page_lab, "choose_moments", choose)
    stage.perform(replace(CONDITION, start_spread_ms=7.0))
    assert stage.orders[0].wait_until_ns == 13
    assert "at-ns=5" in stage.orders[0].prefix


def prepare(stage: Stage, monkeypatch: pytest.MonkeyPatch, client: object) -> Site:
    """The site of a trial of ``client`` that is not known yet; nothing is kept of it but that."""
    topology = SimpleNamespace(client=SimpleNamespace(name="client"))
    monkeypatch.setattr(page_lab, "lay_topology", lambda _tag, ip: nullcontext(topology))
    monkeypatch.setattr(page_lab, "CLIENTS", {"c": client})
    monkeypatch.setattr(time, "sleep", lambda _s: None)
    with page_lab.begun_early(Opening("c"), site_of(stage.folder)) as site:
        laid: object = site.topology
        assert laid is topology
        return site


def test_wires_are_laid_before_the_trial_is_known(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = prepare(stage, monkeypatch, SimpleNamespace(load=stage.ask))
    assert (site.early, stage.stages) == (None, [0])


def test_a_client_is_started_before_the_trial_is_known_and_loads_then(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    seats: list[ClientPlace] = []

    class Early:
        name, programs, tcp_alone, honours = "c", (), False, frozenset[str]()

        def load(self, _order: LoadOrder) -> PageLoad:
            pytest.fail("it has been started already")

        @contextmanager
        def started(self, seat: ClientPlace) -> Iterator[Any]:
            seats.append(seat)
            yield SimpleNamespace(load=stage.ask)

    (stage.folder / "scratch").mkdir(exist_ok=True)
    site = prepare(stage, monkeypatch, Early())
    (seat,), early = seats, site.early
    assert early is not None
    assert f"at-ns={early.launched_ns}" in seat.prefix
    order = page_lab.order_of(
        Trial(CONDITION, 0, 0, "virtual", "7.3"), site, ARCHIVE, "client", 1000
    )
    assert (order.scratch, order.out, order.user) == (seat.scratch, seat.out, seat.user)
    assert order.wait_until_ns == early.launched_ns + AGE_NS
    assert order.restart is not None
    observed = stage.perform(at=site)
    assert observed["load"]["plt_ms"] == 100.0
    assert len(stage.orders) == 1


@pytest.mark.parametrize(
    ("obstacle", "outcome"),
    [(MissingError("no browser"), "unsupported"), (OSError("no wires"), "failed")],
)
def test_what_could_not_be_prepared_is_told_of_the_trial(
    stage: Stage, obstacle: Exception, outcome: str
) -> None:
    observed = stage.perform(at=replace(site_of(stage.folder), obstacle=obstacle))
    assert (observed["outcome"], observed["error"]) == (outcome, str(obstacle))
    assert stage.orders == []


@pytest.mark.parametrize(
    ("randomness", "recorded", "pinned"),
    [
        ("as-recorded", False, False),
        ("as-recorded", True, True),
        ("free", True, False),
        ("pinned", False, True),
    ],
)
def test_when_scripts_are_pinned(
    stage: Stage, randomness: Randomness, recorded: bool, pinned: bool
) -> None:
    stage.archive = replace(ARCHIVE, pinned=recorded)
    stage.perform(replace(CONDITION, randomness=randomness))
    assert stage.orders[0].pinned is pinned


def test_a_host_that_the_page_does_not_have_is_a_miss(stage: Stage) -> None:
    url = "https://new.test/x"
    requests = (*LOAD.requests, RequestTiming(url, 0, 60, 70))
    stage.load = replace(LOAD, requests=requests, extra=(url,), failed=(url,))
    stage.replay = replace(REPLAY, missed=("GET http://img.page.test/b",))
    observed = stage.perform()
    misses = ("GET http://img.page.test/b", f"(unreached) {url}")
    assert observed["replay"]["missed"] == misses
    assert observed["outcome"] == "failed"
    assert observed["error"] == (
        f"2 requests missed: {', '.join(misses)}; the recording lacks them: record the page live, "
        "which keeps failures too, or set allow_misses = true"
    )


def test_misses_that_are_allowed_are_recorded(stage: Stage) -> None:
    stage.replay = replace(REPLAY, missed=("GET http://img.page.test/b",))
    observed = stage.perform(replace(CONDITION, allow_misses=True))
    assert "error" not in observed
    assert observed["replay"]["missed"] == ("GET http://img.page.test/b",)


@pytest.mark.parametrize("wrong", ["earlier", "load"])
def test_each_visit_has_to_make_all_requests(stage: Stage, wrong: str) -> None:
    whole, part = LOAD, replace(LOAD, requests=LOAD.requests[:1], missing=(OTHER,))
    first, last = (part, whole) if wrong == "earlier" else (whole, part)
    stage.load = replace(last, earlier=(first,))
    observed = stage.perform(replace(CONDITION, visits=2))
    assert observed["outcome"] == "failed"
    assert observed["error"].startswith(f"1 request of the recording not made: {OTHER}")
    assert len(observed["load"]["earlier"]) == 1


@pytest.mark.parametrize("between", ["keep", "clear-cache"])
def test_visits_are_ordered_as_asked(stage: Stage, between: Between) -> None:
    condition = replace(CONDITION, visits=3, between=between, idle_s=0.0)
    stage.perform(condition)
    (order,) = stage.orders
    assert (order.visits, order.keep_cache) == (3, between == "keep")
    assert order.idle is not None


def test_visits_differ_where_an_earlier_one_does() -> None:
    load = replace(LOAD, earlier=(LOAD,))
    assert not loads_differ(load, load)
    request = replace(LOAD.requests[0], end_ms=LOAD.requests[0].end_ms + 2 * RESOLUTION_MS)
    slower = replace(LOAD, requests=(request, *LOAD.requests[1:]))
    for other in (
        LOAD,
        replace(load, earlier=(LOAD, LOAD)),
        replace(load, earlier=(replace(LOAD, plt_ms=LOAD.plt_ms + 2 * RESOLUTION_MS),)),
        replace(load, earlier=(slower,)),
    ):
        assert loads_differ(load, other) and loads_differ(other, load)


def test_an_inexact_answer_is_recorded(stage: Stage) -> None:
    asked = OTHER.replace("v=1", "v=2")
    stage.load = replace(LOAD, missing=(OTHER,), extra=(asked,))
    stage.replay = replace(REPLAY, exact=1, inexact=(Substitution(f"GET {asked}", f"GET {OTHER}"),))
    observed = stage.perform()
    assert "error" not in observed
    assert len(observed["replay"]["inexact"]) == 1


def test_a_client_that_spoke_the_wrong_protocol(stage: Stage) -> None:
    stage.replay = replace(REPLAY, protocols={"https://www.page.test HTTP/1.1": 1})
    assert stage.perform()["problems"] == (
        "https://www.page.test: 1 requests came over HTTP/1.1, asked was HTTP/2.0",
    )


def test_a_body_of_another_length(stage: Stage) -> None:
    one = ARCHIVE.entries[1]
    stage.answered = (
        LoggedAnswer(f"GET {OTHER}", one, "HTTP/2.0", 90, 3, True, False, "1", "c:1", "s:80"),
    )
    (problem,) = stage.perform()["problems"]
    assert problem.startswith("1 bodies were not sent as recorded") and OTHER in problem


def test_a_load_without_an_end_keeps_what_was_asked_of_the_server(stage: Stage) -> None:
    stage.load = LoadTimeoutError("slow")
    stage.replay = replace(REPLAY, missed=("GET http://img.page.test/b",))
    stage.complaint = "[error] no such file"
    observed = stage.perform()
    assert (observed["outcome"], observed["error"]) == ("timeout", "slow")
    assert observed["replay"]["missed"] == ("GET http://img.page.test/b",)
    assert "load" not in observed
    assert (stage.folder / "out" / "load.har").exists()
    assert (stage.folder / "out" / SERVER_LOG_FILE).read_text() == "[error] no such file"


def test_what_a_client_cannot_do_is_unsupported(stage: Stage) -> None:
    stage.load = MissingError("graph speaks no HTTP/2")
    observed = stage.perform(replace(CONDITION, protocol="h2"))
    assert (observed["outcome"], observed["error"]) == ("unsupported", "graph speaks no HTTP/2")


def test_a_lab_out_of_tolerance_is_not_measured_in(stage: Stage) -> None:
    stage.reading = LabReading((), {}, ("a knob is wrong",))
    assert "load" not in stage.perform()
    assert stage.orders == []
