"""Evidence of a trial: all that it left, each part read from its folder when it is first asked for.

What a trial does not have, as the server's capture of a command, raises ``LackingError``; a check
that needs it is not asked then (``testbed.proof.check``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TypeVar

from testbed.archive.reading import Archive, read_archive
from testbed.capture.application import Application, read_application
from testbed.capture.connections import Connection, read_connection
from testbed.capture.damage import split_damaged
from testbed.capture.ecn import Marks, read_marks
from testbed.capture.flows import Flows, first_packet_ns, read_flows
from testbed.capture.handshakes import Handshake, read_handshakes
from testbed.capture.http2 import Http2Connection, read_http2
from testbed.capture.packets import Capture, Packet, read_capture
from testbed.capture.quic import QuicConnection, read_quic
from testbed.capture.quic_keys import Secrets, read_secrets
from testbed.capture.tcpdump import CAPTURED_MOST
from testbed.capture.transits import (
    Crossings,
    Transits,
    join_transits,
    read_crossings,
    transits_of,
)
from testbed.lab.link.protocol import WAYS
from testbed.lab.topology import CLIENT_ENDS, CLIENT_MAC
from testbed.model import (
    CAPTURE_FILE,
    HAR_FILE,
    KEYS_FILE,
    SERVER_CAPTURE_FILE,
    VISIT_HARS,
    Condition,
    LabReading,
    LinkChange,
    Linked,
    LinkSpec,
    PageLoad,
    Replay,
    ServedConnection,
    TcpSpec,
    Trial,
    in_real_time,
)
from testbed.model.command import CLIENT as COMMAND
from testbed.model.device import DEVICES, BrowserDevice
from testbed.model.impairments import is_drawn, without_loss
from testbed.model.observation import Observation
from testbed.model.trace import RunningTrace
from testbed.model.traffic import NO_TRAFFIC, parse_traffic
from testbed.proof.browser_log import BrowserLog, read_log
from testbed.proof.neighbours import NeighbourAccount, read_account
from testbed.proof.neighbours.flow import LoadWindow
from testbed.proof.visits import VisitWindow, split_visits

GONE = ("dropped", "lost", "corrupted", "too_long")
"""What the link counts of packets that did not come through as they were sent."""
BROWSERS = ("chromium",)
LOGGED = (*BROWSERS, "graph", "wget2")
"""Clients that leave a log of their own, as HAR."""
_T = TypeVar("_T")


class LackingError(LookupError):
    """A trial did not leave what was asked for."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What one trial left in its folder ``out`` and in what it wrote down itself.

    Kinds of trial have their own, which add what theirs alone leave.  ``clients`` are the client's
    addresses, ``bounded`` says that the captures end after ``CAPTURED_MOST`` packets, and ``shown``
    has parts that are known already, by the names of these attributes.

    Raises:
        LackingError: the trial did not leave what is asked for.
        OSError, ValueError: a file cannot be read.
    """

    trial: Trial
    observed: Observation
    out: Path
    clients: tuple[bytes, ...] = CLIENT_ENDS
    bounded: bool = False
    shown: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.__dict__.update(self.shown)

    def has(self, name: str) -> bool:
        """Return whether there is an attribute, or, where it says yes or no, whether it is so."""
        try:
            return getattr(self, name) is not False
        except LackingError:
            return False

    # What was asked.

    @cached_property
    def link(self) -> LinkSpec:
        """The link between both ends."""
        return self._linked.link

    @cached_property
    def tcp(self) -> TcpSpec:
        """TCP at both ends."""
        return self._linked.tcp

    @cached_property
    def condition(self) -> Condition:
        """The condition of a lab with a page's servers."""
        if not isinstance(self.trial.condition, Condition):
            raise LackingError("no page is served")
        return self.trial.condition

    @property
    def virtual_time(self) -> bool:
        """Whether nothing but the lab and what runs in it takes time."""
        return not in_real_time(self.trial.kernel)

    # What it said itself.

    @cached_property
    def lab(self) -> LabReading:
        """What the lab measured of itself, and counted."""
        return _there(self.observed.lab, "the lab was not read")

    @cached_property
    def steps(self) -> Sequence[LinkChange]:
        """The changes of the link that were performed."""
        return () if self.observed.lab is None else self.observed.lab.steps

    @cached_property
    def counted(self) -> Mapping[str, int]:
        """What the link counted, of all that crossed it."""
        return {} if self.observed.lab is None else self.observed.lab.traffic

    @cached_property
    def traces(self) -> Mapping[str, RunningTrace]:
        """The traces of the link by direction, as they ran."""
        return self.observed.running_traces(self.link)

    @cached_property
    def counters(self) -> dict[str, dict[str, int]]:
        """What the kernels of both ends counted."""
        return self.read_counters()

    def read_counters(self) -> dict[str, dict[str, int]]:
        """Return the counters, as a kind of trial has them."""
        return _there(self.observed.counters, "the kernels' counters were not read")

    @property
    def client_counters(self) -> Mapping[str, int]:
        """What the client's kernel counted of what crossed the link."""
        return self.counters["client"]

    @cached_property
    def load(self) -> PageLoad:
        """The load as its client saw it."""
        return _there(self.observed.load, "no page was loaded")

    @cached_property
    def replay(self) -> Replay:
        """What the page's servers were asked, and answered."""
        return _there(self.observed.replay, "the servers' log was not read")

    @cached_property
    def served(self) -> tuple[ServedConnection, ...]:
        """The connections of the load, by its servers' log."""
        return _there(self.observed.connections, "the servers' log was not read")

    @cached_property
    def served_ends(self) -> frozenset[tuple[str, str]]:
        """The ends of the connections ``served``, as those of flows are written."""
        return frozenset((each.client, each.server) for each in self.served)

    @cached_property
    def hosts(self) -> Mapping[str, str]:
        """The page's hosts by their addresses in the lab."""
        return _there(self.observed.hosts, "no page is served")

    # What was captured.

    @cached_property
    def capture(self) -> Capture:
        """The client's capture, without what came damaged."""
        return self.whole_and_damaged[0]

    @cached_property
    def at_server(self) -> Capture:
        """The server's capture."""
        if not (self.out / SERVER_CAPTURE_FILE).exists():
            raise LackingError("nothing was captured at the server's end")
        return read_capture(self.out / SERVER_CAPTURE_FILE)

    @cached_property
    def damaged(self) -> tuple[Packet, ...]:
        """The packets that came damaged, those for neighbours among them."""
        own = self.whole_and_damaged[1]
        return own if self.neighbour_account is None else (*own, *self.neighbour_account.damaged)

    @cached_property
    def whole_capture(self) -> bool:
        """Whether the capture has all packets, and is no bounded beginning."""
        return not self.bounded or len(self.capture.packets) < CAPTURED_MOST

    @cached_property
    def own_flows(self) -> Flows:
        """The client's connections."""
        flows = read_flows(self.capture, self.clients)
        # The client's kernel counts segments before it looks at what is in them.
        damaged = sum(1 for packet in self.whole_and_damaged[1] if packet.protocol == "TCP")
        return replace(flows, down=flows.down + damaged)

    @cached_property
    def flows_at_server(self) -> Flows:
        """The client's connections, as their servers saw them, and what came damaged."""
        readable = tuple(p for p in self.at_server.packets if self.undamaged or p.protocol != "IP")
        return read_flows(replace(self.at_server, packets=readable), self.clients)

    @cached_property
    def flows(self) -> Flows:
        """The client's connections; what came down the line for neighbours is among arrivals."""
        flows = self.own_flows
        if self.neighbour_account is None:
            return flows
        return replace(flows, arrivals=self.neighbour_account.with_arrivals(flows.arrivals))

    @cached_property
    def transits(self) -> Transits:
        """The client's packets that both ends have, matched."""
        return transits_of(self.own_crossings)

    @cached_property
    def all_transits(self) -> Transits:
        """The packets of all who were on the line."""
        account = self.neighbour_account
        if account is None or not self.transits:
            return self.transits
        return join_transits(self.transits, transits_of(account.crossings))

    @cached_property
    def own_crossings(self) -> Crossings:
        """The client's packets, as they were sent at one end and as they came at the other."""
        return read_crossings(self.capture, self.at_server, self.clients)

    @cached_property
    def crossings(self) -> tuple[Crossings, ...]:
        """The packets of each pair of ends that were captured at both."""
        account = self.neighbour_account
        return (
            *((self.own_crossings,) if self.has("own_crossings") else ()),
            *(() if account is None else (account.crossings,)),
        )

    @property
    def undamaged(self) -> bool:
        """Whether servers took all that came: beginnings of frames do not tell what is damaged."""
        return not self.link.corrupt_pct

    @property
    def routers(self) -> int:
        """How many routers there are between two ends."""
        return 4 if self.line_shared else 2

    @cached_property
    def connections(self) -> tuple[Connection, ...]:
        """How the client's TCP connections were opened."""
        return tuple(read_connection(flow) for flow in self.flows.flows)

    @cached_property
    def application(self) -> Application:
        """What connections carry, as far as it is in clear."""
        return read_application(self.capture)

    @cached_property
    def marks(self) -> list[Marks]:
        """What connections show of ECN."""
        return read_marks(self.flows)

    @cached_property
    def keys(self) -> Secrets:
        """The secrets of the client's sessions, of a program of the user's if it writes them."""
        secrets = read_secrets(self.out / KEYS_FILE)
        if self.condition.client == COMMAND and not secrets:
            raise LackingError("no keys were kept")
        return secrets

    @cached_property
    def quic(self) -> tuple[QuicConnection, ...]:
        """The client's connections over QUIC."""
        return read_quic(self.capture, self.clients, self.keys if self.has("keys") else {})

    @cached_property
    def handshakes(self) -> tuple[Handshake, ...]:
        """The handshakes of TLS, where there are keys to read them by."""
        return read_handshakes(self.flows, self.quic, self.keys)

    @cached_property
    def http2(self) -> tuple[Http2Connection, ...]:
        """The client's connections over HTTP/2, where there are keys to read them by."""
        return tuple(read_http2(self.flows.flows, self.keys))

    @cached_property
    def visits(self) -> tuple[VisitWindow, ...]:
        """The visits of the load, and when each was."""
        return split_visits(self.load)

    @cached_property
    def logs(self) -> tuple[BrowserLog, ...]:
        """The client's log of each visit."""
        if self.load.client not in LOGGED:
            raise LackingError("no client of ours loaded the page")
        files = [self.out / name for name in (*VISIT_HARS[: len(self.visits) - 1], HAR_FILE)]
        if not all(file.exists() for file in files):
            raise LackingError("the client left no log")
        return tuple(map(read_log, files, self.visits))

    @property
    def browsed(self) -> bool:
        """Whether a browser loaded the page: its load time is what the page tells."""
        return self.has("load") and self.load.client in BROWSERS

    @cached_property
    def archive(self) -> Archive:
        """The page that was served, where the run has it."""
        if self.observed.built is None:
            raise LackingError("the page is not at hand")
        page = _read_page(self.observed.built)
        return page.without(page.list_blocked(getattr(self.trial.condition, "block", "")))

    @cached_property
    def device(self) -> BrowserDevice | None:
        """What the browser was to be; ``None``: itself."""
        named = DEVICES.get(self.condition.device)
        return self.archive.device if named is None else named

    # Who else was on the line, and what became of packets.

    @cached_property
    def window(self) -> LoadWindow:
        """From when to when what was measured took place."""
        return self.read_window()

    def read_window(self) -> LoadWindow:
        """Find the window, as a kind of trial has it."""
        began = first_packet_ns(self.capture, self.clients)
        if began is None:
            raise LackingError("the client sent nothing")
        end_ns = began + round(self.load.plt_ms * 1e6)
        return LoadWindow(began, end_ns, began)

    @cached_property
    def neighbour_account(self) -> NeighbourAccount | None:
        """What neighbours did; ``None``: there were to be none, or nothing was measured."""
        return self.read_neighbours()

    def read_neighbours(self) -> NeighbourAccount | None:
        """Read what neighbours did, as a kind of trial has them."""
        neighbours = parse_traffic(getattr(self.trial.condition, "traffic", NO_TRAFFIC))
        if not neighbours or not self.has("window"):
            return None
        return read_account(
            *(self.out, neighbours, self.trial.seed, self.observed.neighbours, self.window),
            self.link,
        )

    @cached_property
    def line_shared(self) -> bool:
        """Whether neighbours used the line."""
        return self.neighbour_account is not None

    @cached_property
    def lost(self) -> int:
        """How many packets did not come through as they were sent."""
        return sum(self.counted.get(f"{way}.{how}", 0) for way in WAYS for how in GONE)

    @cached_property
    def all_came_down(self) -> bool:
        """Whether no packet was lost or damaged on its way down."""
        return not any(self.counted.get(f"down.{how}") for how in GONE)

    @cached_property
    def steady(self) -> bool:
        """Whether all packets of a direction had the same delay."""
        return not (self.link.changes or is_drawn(without_loss(self.link)))

    @property
    def overloaded(self) -> bool:
        """Whether the server may leave connections without an answer."""
        return False

    @property
    def own_client(self) -> bool:
        """Whether all connections are of a client whose conduct the trial asks for."""
        return self.has("load")

    @property
    def own_server(self) -> bool:
        """Whether all connections are with servers of the lab that answer each of them."""
        return self.own_client and not self.overloaded

    def is_of_client(self, packet: Packet) -> bool:
        """Return whether a packet is from or to the client."""
        return packet.source in self.clients or packet.target in self.clients

    # Parts of the above.

    @cached_property
    def _linked(self) -> Linked:
        if not isinstance(self.trial.condition, Linked):
            raise LackingError("there is no link")
        return self.trial.condition

    @cached_property
    def whole_and_damaged(self) -> tuple[Capture, tuple[Packet, ...]]:
        """The client's capture without what came damaged, and that."""
        if not (self.out / CAPTURE_FILE).exists():
            raise LackingError("nothing was captured")
        capture = read_capture(self.out / CAPTURE_FILE)
        if isinstance(self.trial.condition, Linked) and self.link.corrupt_pct:
            return split_damaged(capture, CLIENT_MAC)
        return capture, ()


_read_page = lru_cache(maxsize=8)(read_archive)
"""A built page does not change while trials use it."""


def _there(value: _T | None, otherwise: str) -> _T:
    if value is None:
        raise LackingError(otherwise)
    return value
