"""Neighbours of page loads, in the report: what each flow got of the line, and a call's quality."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from analysis.records.cells import Cell
from testbed.model import NeighbourFlow, Record
from testbed.model.trace import trace_of

_OF_FLOW = ("retransmits", "delay_p50_ms", "delay_p95_ms", "delay_max_ms", "jitter_ms", "r_factor",
            "fetches", "fetch_p50_ms", "plt_ms")  # fmt: skip


@dataclass(frozen=True, slots=True)
class FlowLine:
    """A flow of a cell's neighbours, medians over its proven loads; what it has not is ``None``.

    ``medians`` are those of fields of a ``NeighbourFlow``, by their names.  ``fairness`` is Jain's
    index of all connections of neighbours that send the same way: 1 where each gets as much, one
    over their number where one gets all (R. Jain et al., DEC-TR-301, 1984).
    ``mos`` is the mean opinion, from 1 to 4.5, that ``r_factor`` stands for (ITU-T G.107, Annex B).
    """

    cell: Cell
    flow: NeighbourFlow
    goodput_kbit: float
    share_pct: float | None
    fairness: float | None
    lost_pct: float | None
    mos: float | None
    medians: dict[str, float | None]


def list_flows(cells: Sequence[Cell]) -> tuple[FlowLine, ...]:
    """Return the flows of the neighbours of ``cells``, in their order."""
    return tuple(line for cell in cells for line in _list_of(cell))


def _list_of(cell: Cell) -> Iterator[FlowLine]:
    loads = [(record, record.proof.neighbours) for record in cell.proven if record.proof]
    if not loads:
        return
    for place, flow in enumerate(loads[0][1]):
        same = [flows[place] for _, flows in loads if place < len(flows)]
        goodput = median(each.goodput_kbit for each in same)
        medians = {name: _median(getattr(each, name) for each in same) for name in _OF_FLOW}
        r_factor = medians["r_factor"]
        yield FlowLine(cell, flow, goodput, _share_pct(loads[0][0], flow.way, goodput),
                       _median(_fairness(flows, flow) for _, flows in loads),
                       _median(100 * (each.lost or 0) / each.sent for each in same if each.sent),
                       None if r_factor is None else opinion_of(r_factor), medians)  # fmt: skip


def _share_pct(record: Record, way: str, goodput_kbit: float) -> float | None:
    """Return the share of the line's rate, which a line with a trace does not have."""
    link = record.trial.linked.link
    if trace_of(link, way):
        return None
    return 100 * goodput_kbit / (link.up_kbit if way == "up" else link.down_kbit)


def _median(values: Iterable[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return median(there) if there else None


def _fairness(flows: Sequence[NeighbourFlow], flow: NeighbourFlow) -> float | None:
    """Return Jain's index of the connections that send as ``flow`` does, if they are several."""
    greedy = [each for each in flows if each.sent is None and each.fetches is None]
    shares = [each.goodput_kbit for each in greedy if each.way == flow.way]
    squares = sum(share**2 for share in shares)
    if flow not in greedy or len(shares) < 2 or not squares:
        return None
    return float(sum(shares) ** 2 / (len(shares) * squares))


def opinion_of(r_factor: float) -> float:
    """Return the mean opinion score of a rating factor from 0 to 100 (ITU-T G.107, Annex B)."""
    r = r_factor
    return max(1.0, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6)
