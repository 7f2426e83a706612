"""Small sweeps with hand-picked load times, written as a run writes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from analysis.records.results import Results, read_results
from analysis.report.publications import Rebuilt, StatedCheck
from testbed.model import Condition, LinkSpec, Record, RequestTiming, TcpSpec
from tests.analysis.sample import experiment, record, write_results
from tests.measured import load_of

LINK = {spec.name for spec in fields(LinkSpec)}
TCP = {spec.name for spec in fields(TcpSpec)}


def condition(page: str, rtt_ms: float, **knobs: Any) -> Condition:
    """A condition by its knobs' leaf names."""
    link = LinkSpec(rtt_ms=rtt_ms, **{n: v for n, v in knobs.items() if n in LINK})
    tcp = TcpSpec(**{n: v for n, v in knobs.items() if n in TCP})
    rest = {n: v for n, v in knobs.items() if n not in LINK | TCP}
    return Condition(page, **{"client": "graph", **rest}, link=link, tcp=tcp)


def results_of(folder: Path, records: Iterable[Record], name: str = "a-sweep") -> Results:
    """The results of an experiment that planned exactly these trials."""
    kept = tuple(records)
    planned = tuple(dict.fromkeys(load.trial.condition for load in kept))
    repetitions = max((load.trial.repetition + 1 for load in kept), default=1)
    sweep = experiment(repetitions, conditions=planned, name=name, reference=None)
    return read_results(write_results(folder, kept, sweep))


def fetch(cell: Condition, plt_ms: float, transfer_bytes: int) -> Record:
    """The load of a page of one object."""
    good = record(cell, 0, plt_ms)
    only = RequestTiming(f"http://{cell.page}.test/", 200, 0.0, plt_ms, transfer_bytes, "1")
    return replace(good, measured=replace(load_of(good), client="graph", requests=(only,)))


def checks_at(rebuilt: Rebuilt, words: str) -> list[StatedCheck]:
    """The checks whose place or quantity holds ``words``."""
    return [check for check in rebuilt.checks if words in f"{check.where}: {check.what}"]


def check_at(rebuilt: Rebuilt, words: str) -> StatedCheck:
    """The only one."""
    (check,) = checks_at(rebuilt, words)
    return check
