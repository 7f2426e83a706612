"""Evidence for the numbers of a report: the link as measured, and each trial's proof and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from analysis.records.cells import Cell, Spread, spread_of
from analysis.records.replay_coverage import ReplayCoverage, count_record
from analysis.records.results import judge
from analysis.tables.kind import tables_of
from analysis.tables.summary import captures_of
from analysis.tables.table import PAIR_AXIS, ResultTable
from analysis.words import axis_value, clean, lines
from testbed.model import Cost, Linked, LinkSpec, Measurement, PageLoad, Proof, Record


@dataclass(frozen=True, slots=True)
class Calibration:
    """One property of one link over all trials on it; values in ``unit``, errors in percent."""

    link: LinkSpec
    name: str
    unit: str
    theory: Spread
    measured: Spread
    worst_error_pct: float
    tolerance_pct: float
    outside: int


@dataclass(frozen=True, slots=True)
class TrialLine:
    """One trial as a line of the proof table; most lines of many are never shown."""

    record: Record
    page: str
    name: str
    arm: str | None

    @property
    def trial_id(self) -> str:
        """The trial's name."""
        return clean(self.record.trial_id)

    @property
    def seed(self) -> int:
        """Its seed."""
        return self.record.trial.seed

    @property
    def outcome(self) -> str:
        """The outcome that counts."""
        return judge(self.record)[0]

    @property
    def reason(self) -> str | None:
        """Why it does not count."""
        reason = judge(self.record)[1]
        return lines(reason) if reason else None

    @property
    def requests(self) -> int | None:
        """How many requests its client made."""
        load = self.record.measured_as(PageLoad)
        return len(load.requests) if load else None

    @property
    def coverage(self) -> ReplayCoverage:
        """How the server answered."""
        return count_record(self.record)

    @property
    def captures(self) -> dict[str, str]:
        """The digests of its packet captures by file name."""
        return captures_of(self.record)


@dataclass(frozen=True, slots=True)
class CostLine:
    """What the trials of one client took; seconds, and virtual seconds per wall second."""

    client: str
    trials: int
    cpu_s: Spread
    wall_s: Spread
    virtual_s: Spread
    speed: float | None
    total_cpu_s: float


@dataclass(frozen=True, slots=True)
class HelloLine:
    """How much of the ClientHellos of one TLS version rode in SYNs, with Fast Open."""

    tls_version: str
    connections: int
    hello_bytes: int
    syn_hello_bytes: int

    @property
    def share_pct(self) -> float:
        """What rode in the SYNs, in percent."""
        return self.syn_hello_bytes / self.hello_bytes * 100.0


def calibrations(records: Iterable[Record]) -> list[Calibration]:
    """Return the measurements of ``records`` by link, property and unit, in order of RTT."""
    groups: dict[tuple[LinkSpec, str, str], list[Measurement]] = {}
    for record in records:
        condition = record.trial.condition
        if not isinstance(condition, Linked) or record.lab is None:
            continue
        for measurement in record.lab.measurements:
            key = (condition.link, measurement.name, measurement.unit)
            groups.setdefault(key, []).append(measurement)
    return [
        _gather(link, name, unit, groups[link, name, unit])
        for link, name, unit in sorted(groups, key=lambda k: (k[0].rtt_ms, repr(k[0]), k[1:]))
    ]


def hello_lines(cells: Sequence[Cell]) -> list[HelloLine]:
    """Return the sums over the proven trials with Fast Open, by TLS version."""
    proofs: dict[str, list[Proof]] = {}
    for cell in cells:
        for record in cell.proven:
            if record.proof is None or not record.proof.hello_bytes:
                continue
            if cell.axes.get("tfo"):
                proofs.setdefault(str(cell.axes["tls_version"]), []).append(record.proof)
    return [
        HelloLine(clean(version), sum(p.tls_connections for p in own),
                  sum(p.hello_bytes for p in own), sum(p.syn_hello_bytes for p in own))
        for version, own in sorted(proofs.items())
    ]  # fmt: skip


def ecn_lines(table: ResultTable) -> list[tuple[str, dict[str, int]]]:
    """Return what the proven trials of each condition count of ECN, summed, with its name.

    All have the same counts by name, as ``Proof.ecn`` has them: those that any has.
    """
    found: list[tuple[str, Counter[str]]] = []
    for cell in table.cells:
        proofs = [record.proof for record in cell.proven if record.proof and record.proof.ecn]
        if proofs:
            arm = f", Fast Open {axis_value(PAIR_AXIS, cell.axes[PAIR_AXIS])}" * table.paired
            counts = sum((Counter(proof.ecn) for proof in proofs), Counter())
            found.append((table.name_row(cell.axes) + arm, counts))
    names = sorted({name for _, counts in found for name in counts})
    return [(condition, {name: counts[name] for name in names}) for condition, counts in found]


def trial_lines(table: ResultTable) -> list[TrialLine]:
    """Return every counted trial in the table's order."""
    return [line for cell in table.cells for line in _lines(cell, table)]


def cost_lines(cells: Sequence[Cell]) -> list[CostLine]:
    """Return the cost of the trials that ended with a load, by client."""
    costs: dict[str, list[Cost]] = {}
    for cell in cells:
        for record in cell.proven:
            if record.cost is not None:
                client = str(cell.axes.get("client", tables_of(cell.kind).performer))
                costs.setdefault(client, []).append(record.cost)
    return [_cost(client, costs[client]) for client in sorted(costs)]


def _lines(cell: Cell, table: ResultTable) -> Iterator[TrialLine]:
    page, name = axis_value(table.axes[0], cell.axes.get(table.axes[0])), table.name_row(cell.axes)
    arm = axis_value(PAIR_AXIS, cell.axes.get(PAIR_AXIS)) if table.paired else None
    yield from (TrialLine(record, page, name, arm) for record in cell.records)


def _cost(client: str, costs: list[Cost]) -> CostLine:
    cpu, wall = spread_of(c.cpu_s for c in costs), spread_of(c.wall_s for c in costs)
    virtual = spread_of(c.virtual_s for c in costs)
    assert cpu and wall and virtual  # noqa: S101 - there is at least one cost
    # Sums are rounded before they are shown, so the order of addition does not matter.
    wall_total = sum(sorted(c.wall_s for c in costs))
    virtual_total = sum(sorted(c.virtual_s for c in costs))
    return CostLine(client=clean(client), trials=len(costs), cpu_s=cpu, wall_s=wall,
                    virtual_s=virtual, speed=virtual_total / wall_total if wall_total > 0 else None,
                    total_cpu_s=sum(sorted(c.cpu_s for c in costs)))  # fmt: skip


def _gather(link: LinkSpec, name: str, unit: str, measurements: list[Measurement]) -> Calibration:
    errors = [m.error_pct for m in measurements]
    measured = spread_of(m.measured for m in measurements)
    theory = spread_of(m.theory for m in measurements)
    assert measured is not None and theory is not None  # noqa: S101 - a group is never empty
    return Calibration(link=link, name=name, unit=unit, theory=theory, measured=measured,
                       worst_error_pct=max(errors, key=lambda error: (abs(error), error)),
                       tolerance_pct=min(m.tolerance_pct for m in measurements),
                       outside=sum(not m.within for m in measurements))  # fmt: skip
