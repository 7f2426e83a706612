"""Trials one by one, for the report: the wire proof, the cost, and what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.records.cells import Axes, Cell, Spread, spread_of
from analysis.records.coverage import Coverage, count_record
from analysis.records.results import judge
from analysis.tables.summary import captures_of
from analysis.tables.table import PAIR_AXIS, Table
from analysis.words import axis_value, axis_word, clean, lines
from testbed.model import Cost, Proof, Record


@dataclass(frozen=True, slots=True)
class TrialLine:
    """One trial as a line of the proof table."""

    trial_id: str
    page: str
    name: str
    arm: str | None
    seed: int
    outcome: str
    reason: str | None
    proof: Proof | None
    cost: Cost | None
    requests: int | None
    coverage: Coverage
    captures: dict[str, str]
    attempt: int


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


def hello_lines(cells: Sequence[Cell]) -> list[HelloLine]:
    """Return the sums over the proven trials with Fast Open, by TLS version."""
    proofs: dict[str, list[Proof]] = {}
    for cell in cells:
        for record in cell.proven:
            condition = record.trial.condition
            if condition.tcp.tfo and record.proof is not None and record.proof.hello_bytes:
                proofs.setdefault(condition.tls_version, []).append(record.proof)
    return [
        HelloLine(
            clean(version),
            sum(p.tls_connections for p in found),
            sum(p.hello_bytes for p in found),
            sum(p.syn_hello_bytes for p in found),
        )
        for version, found in sorted(proofs.items())
    ]


def trial_lines(table: Table) -> list[TrialLine]:
    """Return every counted trial in the table's order."""
    return [_line(record, cell, table) for cell in table.cells for record in cell.records]


def cost_lines(cells: Sequence[Cell]) -> list[CostLine]:
    """Return the cost of the trials that ended with a load, by client."""
    costs: dict[str, list[Cost]] = {}
    for cell in cells:
        for record in cell.proven:
            if record.cost is not None:
                costs.setdefault(record.trial.condition.client, []).append(record.cost)
    return [_cost(client, costs[client]) for client in sorted(costs)]


def name_axes(axes: Axes, table: Table) -> str:
    """Return the name of a cell or pair without its arm, as ``amazon, 20 ms``."""
    first = [axis_value(n, axes.get(n)) for n in table.axes[:2]]
    rest = [f"{axis_word(n)} {axis_value(n, axes.get(n))}" for n in table.axes[2:]]
    return ", ".join(first + rest)


def _line(record: Record, cell: Cell, table: Table) -> TrialLine:
    outcome, reason = judge(record)
    load = record.load
    return TrialLine(
        trial_id=clean(record.trial_id),
        page=axis_value("page", cell.axes.get("page")),
        name=name_axes(cell.axes, table),
        arm=axis_value(PAIR_AXIS, cell.axes.get(PAIR_AXIS)) if table.paired else None,
        seed=record.trial.seed,
        outcome=outcome,
        reason=lines(reason) if reason else None,
        proof=record.proof,
        cost=record.cost,
        requests=len(load.requests) if load else None,
        coverage=count_record(record),
        captures=captures_of(record),
        attempt=record.attempt,
    )


def _cost(client: str, costs: list[Cost]) -> CostLine:
    cpu, wall, virtual = (
        spread_of(values)
        for values in (
            [c.cpu_s for c in costs],
            [c.wall_s for c in costs],
            [c.virtual_s for c in costs],
        )
    )
    assert cpu and wall and virtual  # noqa: S101 - there is at least one cost
    # Sums are rounded before they are shown, so the order of addition does not matter.
    wall_total = sum(sorted(c.wall_s for c in costs))
    virtual_total = sum(sorted(c.virtual_s for c in costs))
    return CostLine(
        client=clean(client),
        trials=len(costs),
        cpu_s=cpu,
        wall_s=wall,
        virtual_s=virtual,
        speed=virtual_total / wall_total if wall_total > 0 else None,
        total_cpu_s=sum(sorted(c.cpu_s for c in costs)),
    )
