"""Wait for an idle machine before something is measured in real time; bounded, and told."""

from __future__ import annotations

import threading
from pathlib import Path

from testbed import log
from testbed.machine import PROC, describe_machine, read_sample

IDLE_PCT = 20.0
"""Processor time of others, of all there is, from which on a trial waits."""
LOOK_S = 0.25
PATIENCE_S = 30.0
_log = log.logger(__name__)


def await_idle(
    cancel: threading.Event, look_s: float = LOOK_S, patience_s: float = PATIENCE_S,
    proc: Path = PROC,
) -> bool:  # fmt: skip
    """Return when the machine is idle, or after ``patience_s`` all the same.

    A trial on a machine that stays busy is judged by its own readings (``testbed.machine``).

    Returns:
        False when ``cancel`` was set meanwhile.
    """
    busy_pct = _read_busy(cancel, look_s, proc)
    if busy_pct <= IDLE_PCT or cancel.is_set():
        return not cancel.is_set()
    _log.info(
        "waiting for an idle machine (other processes take %.0f %%, limit %.0f %%), up to %.0f s",
        busy_pct, IDLE_PCT, patience_s,
    )  # fmt: skip
    waited_s = look_s
    while busy_pct > IDLE_PCT and waited_s < patience_s and not cancel.is_set():
        busy_pct = _read_busy(cancel, look_s, proc)
        waited_s += look_s
    if busy_pct > IDLE_PCT and not cancel.is_set():
        _log.warning("the machine is still busy (%.0f %%): going on", busy_pct)
    return not cancel.is_set()


def _read_busy(cancel: threading.Event, look_s: float, proc: Path) -> float:
    """The share of all processors' time that anybody uses now, in percent."""
    before = read_sample(proc, ours=False)
    cancel.wait(look_s)
    return describe_machine(before, read_sample(proc, ours=False), proc)["others_pct"]
