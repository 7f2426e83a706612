"""Idle machine: required before a run in real time, waited for before each of its trials.

Both waits are bounded and logged.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testbed.base import log
from testbed.base.errors import MissingError
from testbed.base.machine import (
    PROC,
    describe_machine,
    judge_machine,
    read_queued,
    read_sample,
    real_time_priority,
)

IDLE_PCT = 20.0
"""Processor time of others, of all there is, from which on a trial waits."""
LOOK_S = 0.25
PATIENCE_S = 30.0
NAP_S = 0.001
WORK = bytes(1 << 20)
"""To hash it takes about a millisecond."""
_log = log.logger(__name__)


def require_idle(
    look: Callable[[], Mapping[str, float]] | None = None, patience_s: float = PATIENCE_S
) -> None:
    """Return as soon as one look finds a machine on which a trial would count.

    Args:
        look: readings of the machine now, by default ``look_around``; it takes ``LOOK_S``.
        patience_s: how long that is waited for.

    Raises:
        MissingError: it was not found; or this kernel lacks what trials are judged by.
    """
    try:
        read_queued(os.getpid())
    except OSError as error:
        raise MissingError(
            "this kernel does not say how long a process waits for a processor "
            f"({error.filename}: {error.strerror}), by which trials in real time are judged: take "
            "one with CONFIG_SCHED_INFO, or the virtual kernel: --kernel virtual"
        ) from None
    look = look_around if look is None else look
    logged = False
    for _ in range(max(1, round(patience_s / LOOK_S))):
        machine = look()
        problems = judge_machine(machine)
        if not problems:
            return
        if not logged:
            _log.info(
                "waiting up to %.0f s for a machine that is idle enough: %s",
                patience_s, "; ".join(problems),
            )  # fmt: skip
            logged = True
    raise MissingError(
        f"this machine is too busy to measure in real time, for {patience_s:g} s at a stretch: "
        f"{'; '.join(problems)}; the hypervisor took {machine['steal_pct']:.3g} %; end what else "
        "runs, take a quieter machine, or the virtual kernel: --kernel virtual"
    )


def look_around(look_s: float = LOOK_S) -> dict[str, float]:
    """Return what others take now, and what a link and a client would feel of it.

    ``worst_lateness_ms`` is how late a thread was that sleeps as a packet of the link does, with
    the link's real-time priority, if it may; ``worker_queued_pct`` how long another one, of
    ordinary priority, that works a little now and then as a client does, waited for a processor.
    """
    before, worst_ms = read_sample(ours=False), 0.0
    ends = time.monotonic() + look_s
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(_work, ends)
        with real_time_priority():
            while True:  # a machine that is busy enough has one nap only
                due = time.monotonic() + NAP_S
                time.sleep(NAP_S)
                worst_ms = max(worst_ms, 1e3 * (time.monotonic() - due))
                if time.monotonic() >= ends:
                    break
        queued_s = working.result()
    machine = describe_machine(before, read_sample(ours=False))
    share = 100.0 * queued_s / look_s
    return machine | {"worst_lateness_ms": worst_ms, "worker_queued_pct": share}


def _work(ends: float) -> float:
    """Work and nap in turn, without Python's lock; returns how many seconds were waited for it."""
    before = read_queued("thread-self")
    while time.monotonic() < ends:
        hashlib.sha256(WORK)
        time.sleep(NAP_S)
    return read_queued("thread-self") - before


def await_idle(
    cancel: threading.Event, look_s: float = LOOK_S, patience_s: float = PATIENCE_S,
    proc: Path = PROC,
) -> bool:  # fmt: skip
    """Return when the machine is idle, or after ``patience_s`` all the same.

    A trial on a machine that stays busy is judged by its own readings (``testbed.base.machine``).

    Returns:
        False when ``cancel`` was set before that.
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
    """Return the share of all processors' time that is used now, in percent."""
    before = read_sample(proc, ours=False)
    cancel.wait(look_s)
    return describe_machine(before, read_sample(proc, ours=False), proc)["others_pct"]
