"""A kernel that boots nothing: plausible, deterministic observations, and failures on demand.

It exists to test the hallway without a kernel build, root or a browser, and is in no registry: no
experiment can name it by mistake.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from testbed.base.errors import TrialError
from testbed.kernel.run.interface import InterruptedTrial, RawResult
from testbed.model import (
    OBSERVATION_FILE,
    Condition,
    Cost,
    LabReading,
    Measurement,
    Outcome,
    PageLoad,
    Proof,
    Record,
    Replay,
    RequestTiming,
    Trial,
)

_PARTS: Mapping[str, TypeAdapter[Any]] = {
    "lab": TypeAdapter(LabReading),
    "measured": TypeAdapter(PageLoad),
    "replay": TypeAdapter(Replay),
    "proof": TypeAdapter(Proof),
}


@dataclass(frozen=True, slots=True)
class FakeKernel:
    """Every trial takes ``seconds`` of real time, and ends as ``plan`` says for its id.

    What is not in ``plan`` ends ``ok``.  Equal trials give equal observations.
    """

    version: str = "0"
    seconds: float = 0.0
    plan: Mapping[str, Outcome] = field(default_factory=dict)
    name: str = "fake"
    confinement: str = "none"

    def identity(self) -> dict[str, str]:
        """A fake kernel is what it is called."""
        return {"name": self.name, "version": self.version}

    def run(
        self, trial: Trial, page: Path | None, out: Path, slot: int, cancel: threading.Event
    ) -> RawResult:
        """Pretend to run ``trial`` (see ``Kernel.run``)."""
        started = time.monotonic()
        (out / "console.log").write_text(f"fake kernel {self.version}, slot {slot}\n")
        if cancel.wait(self.seconds):
            raise InterruptedTrial(f"trial {trial.id} was interrupted")
        outcome = self.plan.get(trial.id, "ok")
        if outcome == "failed":
            raise TrialError("the fake kernel was told to fail")
        if outcome == "timeout":
            return RawResult("timeout", "the guest did not end", "last line", None, None)
        observation = out / OBSERVATION_FILE
        observation.write_text(json.dumps(observe(trial, outcome), sort_keys=True))
        cost = Cost(cpu_s=0.0, wall_s=time.monotonic() - started, virtual_s=30.0)
        return RawResult("ended", "", "", cost, observation)


def observe(trial: Trial, outcome: Outcome = "ok") -> dict[str, Any]:
    """What a guest would have seen of ``trial``: a pure function of it and of ``outcome``."""
    if outcome == "unsupported":
        return {"unsupported": "this kernel lacks the mechanism"}
    link, tcp = trial.linked.link, trial.linked.tcp
    # Of page and seed alone: both arms load the same page, so Fast Open gains.
    chance = random.Random(f"{trial.condition_as(Condition).page} {trial.seed}")  # noqa: S311  not secret
    requests = chance.randint(5, 40)
    connections = min(6, requests)
    round_trips = 10 - 4 * tcp.tfo
    plt_ms = round_trips * link.rtt_ms + requests * 12_000 * 8 / link.down_kbit + chance.random()
    rtt = Measurement("rtt", "ms", link.rtt_ms * (1.5 if outcome == "lab_mismatch" else 1.0),
                      link.rtt_ms, 0.1)  # fmt: skip
    timings = tuple(
        RequestTiming(
            f"http://{trial.condition_as(Condition).page}/{i}", 200, i * 1.0, plt_ms, 12_000
        )
        for i in range(requests)
    )
    fast = connections if tcp.tfo and outcome != "unproven" else 0
    problems = ("no SYN carried a request",) if outcome == "unproven" else ()
    return {
        "lab": asdict(LabReading((rtt,), {"tcp_fastopen": "519" if tcp.tfo else "0"})),
        "load": asdict(PageLoad(trial.condition_as(Condition).client, "fake", plt_ms, timings)),
        "replay": asdict(Replay(requests, most_per_connection=-(-requests // connections))),
        "proof": asdict(
            Proof(connections, connections, fast, fast * 490, 0, fast, 0, {}, {}, problems)
        ),
    }


def conclude(trial: Trial, raw: RawResult, out: Path, environment: str, attempt: int) -> Record:
    """The Record of a trial that the fake kernel ran."""
    parts: dict[str, Any] = {}
    outcome: Outcome = "ok"
    reason: str | None = None
    if raw.status != "ended" or raw.observation is None:
        outcome = "timeout" if raw.status == "timeout" else "failed"
        reason = raw.message
    else:
        observed = json.loads(raw.observation.read_text())
        observed["measured"] = observed.pop("load", None)
        parts = {
            key: adapter.validate_python(observed[key])
            for key, adapter in _PARTS.items()
            if observed.get(key) is not None
        }
        if "unsupported" in observed:
            outcome, reason = "unsupported", observed["unsupported"]
        elif parts["lab"].problems:
            outcome, reason = "lab_mismatch", parts["lab"].problems[0]
        elif not parts["proof"].proven:
            outcome, reason = "unproven", parts["proof"].problems[0]
    return Record(
        trial.id, trial, outcome, environment, reason, cost=raw.cost, attempt=attempt, **parts
    )
