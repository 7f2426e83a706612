"""Verification of results: each record judged again from what its trial left, without a guest.

A record repeats what its trial observed and says what its judge found.  Both are computed again
here by the judge of the trial itself, from the observation and the captures in the folder, and
compared whole: so a number that was edited is found, whoever made its digests fit.  What no trial
observed follows from the plan, or has its digest in the seal (``testbed.results.seal``).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from testbed.base import places
from testbed.base.checksums import file_sha256
from testbed.base.errors import ConfigurationError
from testbed.client import tcp_alone
from testbed.experiment.ids import list_ids
from testbed.experiment.plan import positions
from testbed.kernel.run.interface import RawResult
from testbed.kinds import KINDS
from testbed.model import OBSERVATION_FILE, TRIAL_FILE, Linked, Record
from testbed.model.observation import Observation
from testbed.model.trace import Trace
from testbed.results.agreement import list_differences
from testbed.results.captures import is_dropped
from testbed.results.environment import Environment
from testbed.results.folder import TRACES_FOLDER
from testbed.results.manifest import Manifest, load_manifest, planned_trials, read_manifest
from testbed.results.records import as_read, plain_record, read_records
from testbed.results.seal import TRIALS, find_broken, name_folders, read_seal
from testbed.runner import judge
from testbed.runner.local import Conclude
from testbed.runner.performed import check_performed
from testbed.traces.catalogue import read_all

SHOWN = 5
"""How many contradictions of one record are named."""
_NOT_JUDGED = ("cost", "attempt", "position")
"""What of a record follows from no evidence: it is held against the plan, and sealed."""
_OBSERVED = ("lab", "replay", "machine")
"""What of a record its observation has, whether there are captures or not; and what it measured."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What the verification of one results folder came to.

    Attributes:
        records: how many there are.
        judged: how many of them were judged again.
        problems: a sentence for each thing in the folder that the evidence contradicts.
        unjudged: why others could not be judged, and their trials.
        missing: how many planned trials have no record.
    """

    records: int
    judged: int
    problems: tuple[str, ...]
    unjudged: Mapping[str, tuple[str, ...]]
    missing: int


class UnjudgeableError(ValueError):
    """Evidence of a record was not kept; the message says what."""


def verify(folder: Path, conclude: Conclude = judge.conclude) -> Verified:
    """Hold all that the results in ``folder`` say against the evidence beside them.

    Raises:
        ConfigurationError, StorageError: there are no results that can be read.
    """
    manifest, records = load_manifest(folder), read_records(folder)
    problems = list(check_manifest(folder, manifest))
    own = Reexamination(manifest.environment, conclude)
    try:
        own.traces = read_all(manifest.experiment.traces, folder / TRACES_FOLDER, places.TRACES)
    except ConfigurationError as error:
        problems += error.problems
    problems += own.check_traces()
    problems += check_plan(manifest, records)
    unjudged: dict[str, list[str]] = defaultdict(list)
    for name, record in name_folders(records):
        out, where = folder / TRIALS / name, f"{TRIALS}/{name}"
        try:
            dropped = is_dropped(record, manifest.keep_captures)
            found = list(own.contradictions(record, out, dropped=dropped))
        except UnjudgeableError as lacking:
            found = list(own.inner_contradictions(record, out))
            unjudged[str(lacking)].append(record.trial_id)
        more = len(found) - SHOWN
        problems += [f"{where}: {each}" for each in found[:SHOWN]]
        problems += [f"{where}: and {more} more"] if more > 0 else []
    problems += find_broken(folder, read_seal(folder), records)
    missing = len(set(manifest.trials) - {record.trial_id for record in records})
    others = {reason: tuple(names) for reason, names in unjudged.items()}
    judged = len(records) - sum(map(len, others.values()))
    return Verified(len(records), judged, tuple(problems), others, missing)


@dataclass(slots=True)
class Reexamination:
    """Judges records of one environment again; ``traces`` are those of their links, by name."""

    environment: Environment
    conclude: Conclude = judge.conclude
    traces: Mapping[str, Trace] = field(default_factory=dict)

    def check_traces(self) -> Iterator[str]:
        """Yield a sentence for each trace that is another than the environment has."""
        for name, trace in self.traces.items():
            told = self.environment.parts.get(f"trace.{name}")
            if told != trace.digest:
                yield f"environment.parts.trace.{name} is {told}, the trace here is {trace.digest}"

    def contradictions(self, record: Record, out: Path, *, dropped: bool = False) -> Iterator[str]:
        """Yield what ``record`` says otherwise than the evidence in the folder ``out``.

        ``dropped`` says that its captures were not to be kept.

        Raises:
            UnjudgeableError: they were not, or nothing that the trial left was.
        """
        if not out.is_dir():
            raise UnjudgeableError("what their trials left is not there")
        lacking = [name for name in record.artefacts if not (out / name).is_file()]
        observed = (out / OBSERVATION_FILE).exists()
        if not observed and _has_numbers(record) and OBSERVATION_FILE not in record.artefacts:
            raise UnjudgeableError("what their trials observed is not there")
        if dropped and any(name.endswith(".pcap") for name in lacking):
            raise UnjudgeableError("their captures were not kept")
        yield from _check_files(record, out)
        if observed and not lacking:
            yield from self._compare(record, out)

    def inner_contradictions(self, record: Record, out: Path) -> Iterator[str]:
        """Yield what contradicts itself in a record whose captures are not there."""
        trial = record.trial
        if (out / OBSERVATION_FILE).is_file():
            yield from _check_files(record, out, captures=False)
            yield from self._compare(record, out, (*_OBSERVED, KINDS[trial.kind].kept_as))
            return
        yield from _check_files(record, out, captures=False) if out.is_dir() else ()
        if record.outcome == "ok" and isinstance(trial.condition, Linked):
            digest = self.environment.pages.get(trial.page or "")
            said = Observation(
                lab=record.lab,
                trial=json.loads(json.dumps(asdict(trial))),
                archive={"name": trial.page or "", "digest": digest or ""},
                traces=dict(self.traces),
            )
            yield from check_performed(trial, said, digest)

    def _compare(self, record: Record, out: Path, only: Sequence[str] = ()) -> Iterator[str]:
        raw = RawResult(
            *("ended", "", "", None, out / OBSERVATION_FILE),
            archive=self.environment.pages.get(record.trial.page or ""),
            traces=self.traces,
        )
        try:
            again = as_read(
                self.conclude(record.trial, raw, out, self.environment.id, record.attempt)
            )
        except Exception as error:
            yield f"what the trial left cannot be judged: {error!r}"
            return
        told, found = plain_record(record), plain_record(again)
        names = only or [name for name in found if name not in _NOT_JUDGED]
        if only and again.measured is None:
            names = _OBSERVED
        told, found = ({name: each[name] for name in names} for each in (told, found))
        yield from (f"{each} by its evidence" for each in list_differences(told, found))


def check_manifest(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Yield a sentence for each thing in a manifest that does not follow from the rest of it."""
    environment, experiment = manifest.environment, manifest.experiment
    told = read_manifest(folder)["environment"].get("id")
    if told != environment.id:
        yield f"manifest.json: environment.id is {told}, its parts and pages make {environment.id}"
    planned = list_ids(planned_trials(experiment, manifest.shard, once=manifest.once))
    for difference in list_differences(list(manifest.trials), planned, "trials"):
        yield f"manifest.json: {difference} by its experiment"
    alone = tcp_alone(experiment.clients)
    for name, named in (("tcp_alone", manifest.tcp_alone or alone), ("once", manifest.once)):
        if named and named != alone:
            yield f"manifest.json: {name} is {', '.join(named)}, not {', '.join(alone)}"


def check_plan(manifest: Manifest, records: Sequence[Record]) -> Iterator[str]:
    """Yield a sentence for each record that is not of the plan, or of another attempt than told."""
    experiment = manifest.experiment
    most = max((r.trial.repetition + 1 for r in records), default=0)
    looked = None if experiment.until_ci_pct is None else min(most, experiment.max_repetitions)
    trials = planned_trials(experiment, manifest.shard, looked, manifest.once)
    planned = dict(zip(list_ids(trials), trials, strict=True))
    place = positions(trials)
    attempts: Counter[str] = Counter()
    for record in records:
        name = record.trial_id
        attempts[name] += 1
        if name not in planned:
            yield f"{name}: the plan has no such trial"
        elif record.trial != planned[name]:
            asked, trial = asdict(record.trial), asdict(planned[name])
            differing = list_differences(asked, trial, "trial")
            yield from (f"{name}: {each} by the plan" for each in differing)
        if record.environment != manifest.environment.id:
            yield f"{name}: environment is {record.environment}, not {manifest.environment.id}"
        if record.attempt != attempts[name]:
            yield f"{name}: attempt {record.attempt} has the place of attempt {attempts[name]}"
        if record.position != place.get(name):
            yield f"{name}: position is {record.position}, by the plan {place.get(name)}"


def _check_files(record: Record, out: Path, *, captures: bool = True) -> Iterator[str]:
    """Yield a sentence for each file that is not that of the record, or not its trial."""
    for name, sha256 in record.artefacts.items():
        if not captures and name.endswith(".pcap"):
            continue
        if not (out / name).is_file():
            yield f"{name} is lacking"
        elif file_sha256(out / name) != sha256:
            yield f"{name} is not the file of its record, by its SHA-256"
    path = out / TRIAL_FILE
    try:
        asked = json.loads(path.read_bytes()) if path.exists() else None
    except ValueError:
        asked = {}
    if asked is not None:
        wanted = json.loads(json.dumps(asdict(record.trial)))
        yield from (f"{each} in {TRIAL_FILE}" for each in list_differences(wanted, asked))


def _has_numbers(record: Record) -> bool:
    parts = (record.lab, record.measured, record.replay, record.proof)
    return record.outcome == "ok" or any(part is not None for part in parts)
