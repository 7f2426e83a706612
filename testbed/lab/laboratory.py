"""Open the lab of one condition: topology, link, knobs; measured and read back before use."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from testbed.base.errors import LabError, MissingError
from testbed.lab import tcp as knobs
from testbed.lab.acting import Acting
from testbed.lab.calibration import calibrate, describe_passed
from testbed.lab.congestion import read_connection
from testbed.lab.exactness import HOST, VIRTUAL, Exactness
from testbed.lab.link.bundled import idle_traces
from testbed.lab.link.changes import Begin, changing, list_changes
from testbed.lab.link.discipline import NONE, Discipline
from testbed.lab.link.netem import NETEM
from testbed.lab.link.protocol import Link, LinkBackend, LinkReport, require_emulated
from testbed.lab.neighbour_hosts import share
from testbed.lab.path import (
    Taken,
    count_copies,
    count_inside,
    count_refused,
    judge_path,
    read_all_devices,
    read_strays,
    read_taken,
)
from testbed.lab.probe import probe, probe_hops
from testbed.lab.readback import (
    ENDS,
    State,
    changed,
    judge_disciplines,
    judge_paths,
    read_state,
)
from testbed.lab.topology import Topology, open_topology
from testbed.lab.traffic import compare_reports, judge_traffic
from testbed.lab.watch import Watch, watch
from testbed.model import LabReading, LinkChange, Linked
from testbed.model.impairments import is_lossy
from testbed.model.trace import hops, trace_origins, traced
from testbed.model.traffic import Neighbour, second_page

SECOND_NS = 1_000_000_000
DRAIN_S, DRAIN_POLL_S = 600.0, 0.1
"""A full buffer may need long; waiting costs nothing in virtual time."""
__all__ = ["HOST", "VIRTUAL", "Lab", "open_lab"]


@dataclass(frozen=True, slots=True)
class Counts:
    """Packets so far: inside the link or dropped by it, by its own count, and taken by each end.

    ``acted`` are those that the mechanisms name, ``kept`` those that they let go no further.
    """

    inside: int
    link: LinkReport
    taken: dict[str, Taken]
    acted: dict[str, int]
    kept: int


@dataclass(frozen=True, slots=True)
class Lab:
    """A running lab and what it measured of itself.

    ``watching`` is the watch of a load, and ``earlier`` what that saw before traces began.
    """

    topology: Topology
    reading: LabReading
    condition: Linked
    link: Link
    state: State
    mechanisms: Sequence[Acting]
    exactness: Exactness = VIRTUAL
    seed: int = 0
    steps: list[LinkChange] = field(default_factory=list)
    watching: list[Watch] = field(default_factory=list)
    earlier: list[str] = field(default_factory=list)

    @property
    def settle_s(self) -> float:
        """How long to wait until the last packets of what has ended are through, in seconds."""
        return self.exactness.settle_s(self.condition.link.rtt_ms)

    def prepare(self, origins: int) -> None:
        """Have the mechanisms do what comes before a load; a server answers at its ``origins``."""
        for each in self.mechanisms:
            each.prepare(self, origins)

    def drain(self) -> None:
        """Wait until nothing is on the link any more, for ``DRAIN_S`` at most."""
        until = time.monotonic() + DRAIN_S
        while self.link.read_report().waiting_packets and time.monotonic() < until:
            time.sleep(DRAIN_POLL_S)

    def read_settings(self) -> Lab:
        """Return the lab as it is now, after more was set: what follows is held against that."""
        return replace(self, state=_read_state(self.topology, self.condition))

    @contextmanager
    def changing(self) -> Iterator[Begin | None]:
        """Change the link as asked until the end of the block, from when the load begins.

        What is yielded is told that; ``None``: there is nothing to change.

        Raises:
            OSError: the kernel refuses a change.
        """
        spec = self.condition.link
        if not spec.changes:
            yield None
            return
        with changing(self.topology, spec, self.seed, self.steps) as begin:
            yield begin

    @contextmanager
    def watched(self, withheld: Callable[[], int] = int) -> Iterator[Callable[[], LabReading]]:
        """Watch the lab from now on; what is yielded reads all of it again, after a load.

        Its reading has a sentence for everything that is not as it was when the lab was opened,
        or was not for a while, and the packets of the load as the link counted them.

        Args:
            withheld: tells how many packets somebody who may has kept from the server's IP so far.

        Raises:
            LabError: the link has ended.
            OSError: the kernel does not tell.
        """
        self.drain()  # what has gone before, as the last ACKs of a measurement, is not of the load
        before = self._count(withheld())
        with watch(self.topology) as seen:
            self.watching[:] = [seen]
            yield lambda: self._read_again(seen, before, self._count(withheld()))

    def begin_traces(self, seed: int, load_ns: int | None = None) -> None:
        """Have the traces of the link begin for a load at ``load_ns``, which is watched.

        Without a moment it is the second that has begun: in virtual time a round one.

        Raises:
            LabError: the link has ended.
        """
        spec = self.condition.link
        if not traced(spec):
            return
        (seen,) = self.watching
        self.earlier.extend(seen.read(self.state.table))
        if load_ns is None:
            now_ns = time.time_ns()
            load_ns = now_ns if self.exactness.real_time else now_ns // SECOND_NS * SECOND_NS
        traces = {traced(spec)[way]: each.trace for way, each in idle_traces(spec).items()}
        roles = self.link.begin(trace_origins(spec, traces, seed, load_ns))
        own = {f"{role}: a discipline changed during the load" for role in roles}
        self.earlier.extend(line for line in seen.read(self.state.table) if line not in own)

    def _count(self, withheld: int) -> Counts:
        """What the link and the ends count, without packets that were withheld from the server."""
        topology = self.topology
        taken = {end: read_taken(topology.role(end)) for end, _ in topology.plan.senders}
        received, told, kept = taken["server"]
        taken["server"] = (received - withheld, told, kept)
        counts = [each.count(topology, self.condition) for each in self.mechanisms]
        acted = {name: number for numbers, _ in counts for name, number in numbers.items()}
        inside = count_inside(read_all_devices(topology))
        return Counts(inside, self.read_link(), taken, acted, sum(kept for _, kept in counts))

    def _read_again(self, seen: Watch, before: Counts, after: Counts) -> LabReading:
        condition, topology = self.condition, self.topology
        state = _read_state(topology, condition)
        asked = list_changes(condition.link, self.seed)[: len(self.steps)]
        now = {place: discipline for change in asked for place, discipline in change.items()}
        lines = {f"{role}: discipline of {device}" for role, device in now}
        for each in self.mechanisms:
            lines |= each.learned(state.table, condition)
        problems = [
            *self.earlier,
            *seen.read(self.state.table, asked),
            *changed(
                *(
                    {name: text for name, text in table.items() if name not in lines}
                    for table in (self.state.table, state.table)
                )
            ),
        ]
        for each in self.mechanisms:
            problems += each.judge(state, condition)
        traffic = compare_reports(before.link, after.link)
        traffic |= {name: now - before.acted[name] for name, now in after.acted.items()}
        inside = after.inside - after.kept - before.inside + before.kept
        problems += judge_traffic(traffic, inside, condition.link)
        if after.link.stray_packets:
            problems.append(f"{after.link.stray_packets} packets went around the link")
        for end in before.taken:
            way = "down" if end in ("client", "neighbour") else "up"
            damaged = traffic.get(f"{way}.corrupted", 0)
            problems += count_refused(end, before.taken[end], after.taken[end], damaged)
        # A link with loss may lose a connection, too, and one whose trace is at its end lets none
        # through; what decides its algorithm was read above.
        if not is_lossy(condition.link) and condition.link.trace_end != "once":
            try:
                problems += knobs.judge_connection(read_connection(topology), condition.tcp)
            except LabError as error:
                problems.append(str(error))
        knobs_now = self.reading.knobs
        if traced(condition.link):
            now = self.link.wanted_disciplines() | now
            read = self.link.read_knobs()[0]
            knobs_now = knobs_now | {name: read[name] for name in read if ".trace" in name}
        problems += judge_disciplines(
            {place: state.disciplines.get(place, Discipline(NONE)) for place in now}, now
        )
        return replace(
            self.reading,
            knobs=knobs_now,
            changes=tuple(problems),
            traffic=traffic,
            steps=tuple(self.steps),
        )

    def read_link(self) -> LinkReport:
        """What the link did since the calibration (with one in virtual time: that included).

        Raises:
            LabError: the link has ended.
        """
        report = self.link.read_report()
        strays = report.stray_packets + read_strays(self.topology, count_copies(report))
        return replace(report, stray_packets=strays)


@contextmanager
def open_lab(
    condition: Linked,
    origins: int,
    tag: str = "",
    exactness: Exactness = VIRTUAL,
    backend: LinkBackend = NETEM,
    seed: int = 0,
    own: Mapping[str, knobs.Sysctls] = knobs.NOTHING,
    laid: Topology | None = None,
    neighbours: tuple[Neighbour, ...] = (),
    *,
    mechanisms: Sequence[Acting],
) -> Iterator[Lab]:
    """Build, shape, set, measure and read back; the undo takes everything down again.

    Args:
        condition: what is asked of link and TCP.
        origins: how many addresses the server has.
        tag: begins the names of namespaces, and keeps two labs apart.
        exactness: when a measurement is a problem, and how long measuring may take.
        backend: what emulates the link.
        seed: of all that the link draws.
        own: sysctls of one end only, by its role.
        laid: wires that are there already; they stay, but with neighbours.
        neighbours: who else shall use the link; their hosts are there then.
        mechanisms: what acts beside the link, where the condition asks for it.

    Raises:
        MissingError: the kernel does not have what is asked.
        LabError: the link did not start, or nothing passes it.
    """
    spec, tcp = condition.link, condition.tcp
    require_emulated(backend, spec)
    if neighbours and exactness.real_time:
        raise MissingError(
            f"traffic = {neighbours[0].text} ...: neighbours are in virtual time alone; leave "
            "them out, or take the virtual kernel: --kernel virtual"
        )
    if spec.ip != "4" and (neighbours or exactness.real_time):
        where = "beside neighbours" if neighbours else "in real time"
        raise MissingError(f"link.ip = {spec.ip}: there is no IPv6 {where}; leave it at 4")
    with (
        open_topology(tag, spec.mtu_bytes, origins, backend.wire, laid, spec.ip) as row,
        share(row, tag, spec.mtu_bytes, origins if second_page(neighbours) else 0)
        if neighbours
        else nullcontext(row) as topology,
        backend.open(topology, spec, seed) as link,
    ):
        for each in mechanisms:
            each.act(topology, condition)
        sysctls = {n: v for each in mechanisms for n, v in each.sysctls(condition).items()}
        own = {role: sysctls | own.get(role, {}) for role in ENDS}
        pinned = knobs.set_knobs(topology, tcp, own)
        passed: dict[str, str] = {}
        traces = idle_traces(spec)
        if exactness.real_time:
            from testbed.lab.real_time_calibration import (
                calibrate_bounded,  # nothing that a guest imports
            )

            measurements = calibrate_bounded(topology, spec, link, exactness, traces)
            connection = read_connection(topology)
        else:
            connection = None
            measurements = calibrate(topology, spec, exactness, traces)
            report = link.read_report()
            passed = {
                f"{way}.calibration": describe_passed(each.delivered, each.dropped)
                for way, each in (("down", report.down), ("up", report.up))
            }
        link.complete()
        if not exactness.real_time:
            if hops(spec):
                link.draw_nothing()
                measurements += probe_hops(topology, spec, traces)
                link.draw_anew()
            measurements += probe(topology, spec, traces)
            link.draw_anew()
        state = _read_state(topology, condition)
        checks = (
            knobs.read_knobs(state, tcp, connection, own),
            link.read_knobs(),
            judge_path(topology, link.read_report()),
            *(each.read(topology, state, condition) for each in mechanisms),
        )
        values = passed | {name: value for part, _ in checks for name, value in part.items()}
        values |= {"link.backend": backend.name, "congestion_control.pinned_by": pinned}
        errors = (
            *(error for _, problems in checks for error in problems),
            *judge_paths(
                *(state.table, spec.mtu_bytes, knobs.route_metrics(tcp, pinned), topology.plan),
                {name: text for each in mechanisms for name, text in each.lines(condition).items()},
            ),
            *judge_disciplines(state.disciplines, link.wanted_disciplines()),
        )
        reading = LabReading(measurements, values, errors)
        yield Lab(topology, reading, condition, link, state, mechanisms, exactness, seed)


def _read_state(topology: Topology, condition: Linked) -> State:
    return read_state(topology, knobs.asked_names(condition.tcp))
