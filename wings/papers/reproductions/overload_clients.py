"""Clients by their SYN timers: Table I of Shukla and Brecht, 2006."""

from __future__ import annotations

from statistics import median

import pandas as pd

from analysis.records.results import Results
from wings.papers.reproductions.overload_curves import ArmPair
from wings.papers.reproductions.overload_figure import Frames
from wings.papers.reproductions.overload_sweep import OverloadSweep
from wings.papers.reproductions.sweep import proven_records
from wings.server_loads.measurement import ServedLoad
from wings.server_loads.spec import ServerLoad

SYSTEMS = {"3 6 12 24 48": "Linux 2.4 and 2.6", "3 3.2 3.2 3.2 3.2 6.2 12.2 24.2": "FreeBSD 5.3",
           "3 3 3 3 3 6 12 24": "Mac OS X 10.3", "3 6 12": "Windows 9x and NT",
           "3 6": "Windows 2000 and XP"}  # fmt: skip
"""Table I: the systems by their timers."""


def timers_of(results: Results) -> Frames:
    """Return a row for each timer of each system that went off: as it is stated, and as it was.

    Both are in seconds; ours is the median over the loads of medians over their connections.
    """
    found: dict[tuple[str, int], list[float]] = {}
    for record in proven_records(results):
        load, served = record.trial.condition, record.measured_as(ServedLoad)
        if isinstance(load, ServerLoad) and served is not None:
            for number, seen_s in enumerate(served.syn_timers_s):
                found.setdefault((load.arrivals.syn_timeouts_s, number), []).append(seen_s)
    rows = [
        {
            "system": SYSTEMS.get(timers, timers),
            "number": number + 1,
            "stated_s": float(timers.split()[number]),
            "seen_s": median(seen),
        }
        for (timers, number), seen in found.items()
        if timers
    ]
    return {"timers": pd.DataFrame(rows, columns=["system", "number", "stated_s", "seen_s"])}


SWEEP = OverloadSweep("Clients by their SYN timers", "syn_timeouts_s", "SYN again after (s)",
                      (ArmPair("abort rst-syn", "default"),), timers_of)  # fmt: skip
rebuild = SWEEP.rebuild
