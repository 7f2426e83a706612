"""Waterfalls of a report: which loads it shows, and their requests, compacted for embedding.

Both arms of a pair go in together, so that they can stand side by side.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.records.cells import Cell
from analysis.records.requests import HarError, har_rows, parse_har, read_har_bytes, tenths
from analysis.records.results import judge
from analysis.report.sections.sweep import spread_over
from analysis.tables.table import ResultTable
from testbed.model import PageLoad, Record

MAX_LOADS = 96
MAX_READ_BYTES = 160_000_000
MAX_DATA_BYTES = 2_000_000
FULL = "the report is large enough"


@dataclass(slots=True)
class Waterfalls:
    """What the report embeds: ``loads`` refer to ``urls`` by number; ``left_out`` by trial id.

    An entry of a load is ``[url, start, blocked, dns, connect, send, wait, receive, status,
    bytes]``; times in tenths of a millisecond since navigation start.  ``total`` counts all loads.
    """

    urls: list[str] = field(default_factory=list)
    loads: list[dict[str, Any]] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    total: int = 0
    data_bytes: int = 0
    read_bytes: int = 0
    _numbers: dict[str, int] = field(default_factory=dict)

    @property
    def full(self) -> bool:
        """Whether nothing more may be read."""
        return len(self.loads) >= MAX_LOADS or self.read_bytes > MAX_READ_BYTES

    def add(self, record: Record, log: dict[str, Any]) -> bool:
        """Take one load in if it fits into the data budget; say whether it did."""
        rows = har_rows(log)
        fresh = [url for url, _ in rows if url not in self._numbers]
        numbers = dict(self._numbers)
        for url in fresh:
            numbers.setdefault(url, len(numbers))
        ended = record.measured_as(PageLoad)
        assert ended is not None  # noqa: S101 - `choose` yields loads only
        load = {"id": record.trial_id, "plt": tenths(ended.plt_ms),
                "rows": [[numbers[url], *values] for url, values in rows]}  # fmt: skip
        size = len(json.dumps(load, separators=(",", ":")))
        size += sum(len(json.dumps(url)) + 1 for url in set(fresh))
        if self.data_bytes + size > MAX_DATA_BYTES:
            return False
        self.data_bytes += size
        self.urls.extend(dict.fromkeys(fresh))
        self._numbers = numbers
        self.loads.append(load)
        return True


def choose(table: ResultTable) -> Iterator[Record]:
    """Yield records with a load, those of one pair and block one after the other.

    The first block of every row comes before the second of any; blocks that are proven in both
    arms first.  Where there are more rows than waterfalls, rows are taken at even distances.
    """
    rows = [[cell for _, cell in pair.arms if cell] for pair in table.pairs]
    rows = rows or [[cell] for cell in table.cells]
    arms = 2 if table.paired else 1
    queues = [_blocks(row) for row in spread_over(rows, MAX_LOADS // arms)]
    for layer in range(max(map(len, queues), default=0)):
        for queue in queues:
            if layer < len(queue):
                yield from queue[layer]


def gather_waterfalls(folder: Path, table: ResultTable) -> Waterfalls:
    """Read HAR files under ``folder``/trials until a budget is spent."""
    records = [r for cell in table.cells for r in cell.records if r.measured_as(PageLoad)]
    falls = Waterfalls(total=len(records))
    full = False
    for record in choose(table):
        if full or falls.full:
            break
        try:
            content = read_har_bytes(folder, record)
            falls.read_bytes += len(content)
            full = not falls.add(record, parse_har(content))
        except HarError as error:
            falls.left_out[record.trial_id] = str(error)
    shown = {load["id"] for load in falls.loads}
    for record in records:
        if record.trial_id not in shown:
            falls.left_out.setdefault(record.trial_id, FULL)
    return falls


def _blocks(row: Sequence[Cell]) -> list[list[Record]]:
    """Return the loads of a row's cells by block, those that count in every cell first."""
    blocks: dict[tuple[int, int], list[Record]] = {}
    for cell in row:
        for record in cell.records:
            if record.measured_as(PageLoad) is not None:
                block = (record.trial.seed, record.trial.repetition)
                blocks.setdefault(block, []).append(record)
    counting = {
        block: sum(judge(record)[0] == "ok" for record in records)
        for block, records in blocks.items()
    }
    return [blocks[block] for block in sorted(blocks, key=lambda block: (-counting[block], block))]
