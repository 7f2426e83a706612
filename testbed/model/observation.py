"""Observation of a trial: what it wrote down about itself before anybody judged it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from testbed.model.asked import LinkSpec
from testbed.model.measured import LabReading, PageLoad, Replay, ServedConnection
from testbed.model.trace import RunningTrace, traced
from testbed.model.traffic import ToldConnection


@dataclass(frozen=True, slots=True)
class Observation:
    """What a trial of any kind leaves; each kind's judgement adds what its own leave.

    ``problems`` are what it holds against its own proof, and ``error`` why it did not succeed.
    ``trial`` is the one that it was given, as plain data, ``archive`` name and digest of the page
    that it served.
    ``machine`` is what the machine did meanwhile, of a trial in real time.  ``traces`` are those
    that its link was to have, by name, and ``built`` the folder of the page that was to be served:
    not its own words, but the run's.

    ``load`` is a page's, ``hosts`` are the page's by their addresses in the lab, ``connections``
    its servers' account, ``neighbours`` what the kernel told of theirs, and ``load_ns`` when these
    expected the start.  ``server_program`` is the file of the program that served it, and
    ``call_ns`` what a system call cost behind the load, in virtual time.
    """

    lab: LabReading | None = None
    replay: Replay | None = None
    counters: dict[str, dict[str, int]] | None = None
    problems: tuple[str, ...] = ()
    error: str | None = None
    outcome: Literal["failed", "timeout", "unsupported"] = "failed"
    machine: dict[str, float] = field(default_factory=dict)
    trial: dict[str, Any] = field(default_factory=dict)
    archive: dict[str, str] = field(default_factory=dict)
    traces: dict[str, Any] = field(default_factory=dict)
    built: Path | None = None
    load: PageLoad | None = None
    hosts: dict[str, str] | None = None
    connections: tuple[ServedConnection, ...] | None = None
    neighbours: tuple[ToldConnection, ...] = ()
    load_ns: int = 0
    call_ns: int | None = None
    server_program: str = ""

    def running_traces(self, link: LinkSpec) -> dict[str, RunningTrace]:
        """Return the traces of ``link`` by direction, as its lab says that they ran.

        That it says nothing, or of another trace, is a problem of itself.
        """
        knobs = {} if self.lab is None else self.lab.knobs
        once = link.trace_end == "once"
        return {
            way: RunningTrace(self.traces[name], int(knobs[f"{way}.trace_origin_ns"]), once)
            for way, name in traced(link).items()
            if name in self.traces and f"{way}.trace_origin_ns" in knobs
        }

    @property
    def measured(self) -> object | None:
        """What the trial measured, where it says so itself; ``None``: its judge has to."""
        return None
