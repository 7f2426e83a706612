"""Batch of trials for a run on other machines: performed here, and sent back as entries.

What asks writes a line of JSON to standard input (``Request``) and keeps it open for as long as it
wants the batch; an answer is a sequence of frames on standard output, each a line of JSON and as
many bytes as its ``bytes`` says.  A frame is ``ready`` (the machine has what it takes, and says its
environment), ``began``, ``progress`` (a trial's virtual time goes on) or ``entry`` (a trial has
ended, ``testbed.results.entry``).
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from testbed.base.errors import ConfigurationError
from testbed.base.scratch import scratch_folder
from testbed.experiment.plan import plan_trials
from testbed.model import Experiment, Linked, Record, Spec, Trial
from testbed.model.trace import traced
from testbed.results.entry import pack_entry
from testbed.results.environment import Environment, differences
from testbed.results.folder import fresh_folder
from testbed.results.manifest import Manifest, load_manifest, plain_manifest
from testbed.way.local import RunSetup, on_this_machine

PROTOCOL = 1
PROGRESS_S = 1.0
"""How often a trial's progress is looked at, at the most."""

Prepare = Callable[[Experiment, int], tuple[RunSetup, Environment]]


@dataclass(frozen=True, slots=True)
class BatchFrame:
    """One part of an answer: what it is, what it says, and bytes of an entry."""

    kind: str
    says: dict[str, Any]
    content: bytes = b""


def find_decisive(conditions: Sequence[Spec]) -> tuple[Spec, ...]:
    """Return the first condition with each page and trace: these are part of an environment."""
    first: dict[object, Spec] = {}
    for each in conditions:
        names: list[object] = [("page", getattr(each, "page", None))]
        if isinstance(each, Linked):
            names += [("trace", name) for name in traced(each.link).values()]
        for name in names:
            first.setdefault(name, each)
    return tuple(dict.fromkeys(first.values()))


def write_request(manifest: Manifest, trials: Sequence[Trial], decisive: Sequence[Spec]) -> bytes:
    """Return the request for ``trials`` of the plan in ``manifest``, as one line.

    Of the plan it has no more conditions than these trials need, and the ``decisive`` ones.
    """
    conditions = dict.fromkeys([*decisive, *(trial.condition for trial in trials)])
    asked = replace(
        manifest,
        experiment=replace(manifest.experiment, conditions=tuple(conditions)),
        trials=tuple(trial.id for trial in trials),
        shard=None,
    )
    return json.dumps({"protocol": PROTOCOL, "manifest": plain_manifest(asked)}).encode() + b"\n"


def serve_batch(prepare: Prepare, asking: IO[bytes], answering: IO[bytes], jobs: int) -> None:
    """Perform the batch that ``asking`` has, and write frames to ``answering``.

    Raises:
        ConfigurationError: the request is none, or this environment is another.
        TestbedError: a part cannot be had here, or results not be written.
    """
    with scratch_folder("determinism") as scratch:
        manifest = _read_request(asking.readline(), scratch)
        write = _Writer(answering)
        setup, environment = prepare(manifest.experiment, jobs)
        differing = differences(environment, manifest.environment)
        if differing:
            raise ConfigurationError([f"differs: {difference}" for difference in differing])
        write(BatchFrame("ready", {"environment": environment.id, "facts": environment.facts}))
        planned = {trial.id: trial for trial in plan_trials(manifest.experiment)}
        unknown = [trial_id for trial_id in manifest.trials if trial_id not in planned]
        if unknown:
            raise ConfigurationError([f"the plan has no trial {name}" for name in unknown])
        trials = [planned[trial_id] for trial_id in manifest.trials]
        perform = on_this_machine(setup, manifest.environment)
        stop = threading.Event()
        folder = scratch / "results"
        with (
            _stopped_with(asking, stop),
            fresh_folder(folder) as results,
            closing(perform(trials, results, stop, _Telling(write, folder))) as ended,
        ):
            for record in ended:
                place = results.trial(record.trial_id)
                entry = pack_entry(record, place, record.cost)
                write(BatchFrame("entry", {"trial_id": record.trial_id}, entry))
                results.discard_trial(record.trial_id)


def _read_request(line: bytes, scratch: Path) -> Manifest:
    try:
        asked = json.loads(line)
        protocol, document = asked["protocol"], asked["manifest"]
    except (ValueError, TypeError, KeyError):
        raise ConfigurationError(
            ["standard input has no request; this is what ./run.sh run --on calls"]
        ) from None
    if protocol != PROTOCOL:
        raise ConfigurationError([f"the request is of protocol {protocol}, and not {PROTOCOL}"])
    (scratch / "manifest.json").write_text(json.dumps(document), "utf-8")
    return load_manifest(scratch)


class _Writer:
    """Writes frames whole, whichever thread has one."""

    def __init__(self, answering: IO[bytes]) -> None:
        self._answering, self._lock = answering, threading.Lock()

    def __call__(self, frame: BatchFrame) -> None:
        line = {"kind": frame.kind, "bytes": len(frame.content), **frame.says}
        with self._lock:
            self._answering.write(json.dumps(line).encode() + b"\n" + frame.content)
            self._answering.flush()


class _Telling:
    """Display that tells what asked that a trial begins, and goes on."""

    def __init__(self, write: _Writer, folder: Path) -> None:
        self._write, self._trials = write, folder / "trials"
        self._size, self._next_s = 0, 0.0

    @contextmanager
    def showing(self, todo: Sequence[Trial], done: Sequence[Record]) -> Iterator[None]:
        yield

    def began(self, trial: Trial) -> None:
        self._write(BatchFrame("began", {"trial_id": trial.id}))

    def waited(self) -> None:
        """Tell that what a trial writes has grown: nothing else does in a clock that stands."""
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + PROGRESS_S
        size = sum(path.stat().st_size for path in self._trials.rglob("*") if path.is_file())
        if size != self._size:
            self._size = size
            self._write(BatchFrame("progress", {"written": size}))

    def ended(self, record: Record) -> None:
        """Tell nothing: its entry does."""


@contextmanager
def _stopped_with(asking: IO[bytes], stop: threading.Event) -> Iterator[None]:
    """Set ``stop`` when ``asking`` ends: nobody wants the batch any more."""

    def watch() -> None:
        os.read(asking.fileno(), 1)  # a buffered read would be in the way of the process's end
        stop.set()

    threading.Thread(target=watch, daemon=True).start()
    yield
