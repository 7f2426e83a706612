"""What a trial performed, held against what was asked: its own words, its lab, what that measured.

A guest writes down the trial and the page that it was given, and what it measured and read back.
Everything that follows from the trial alone is computed here again and compared whole, so that a
number can stand under no other condition than its own.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from testbed.base.seeding import start_offset_ns
from testbed.lab.calibration import PROBES, describe_passed, expect, left_meanwhile, train_sent
from testbed.lab.congestion import SYSCTL
from testbed.lab.exactness import HOST, VIRTUAL
from testbed.lab.link.changes import describe_phase
from testbed.lab.link.discipline import by_trace
from testbed.lab.link.netem import describe_drawn, describe_room
from testbed.lab.link.protocol import WAYS
from testbed.lab.link.words import differ
from testbed.lab.probe import expect_hops, expect_probed
from testbed.lab.readback import ENDS
from testbed.lab.tcp import PINNED, asked_sysctls
from testbed.mechanisms.acting import ACTING
from testbed.model import FIFO, LabReading, LinkChange, Linked, LinkSpec, Trial, in_real_time
from testbed.model.impairments import is_drawn, phases, ways
from testbed.model.observation import Observation
from testbed.model.settings import of_end
from testbed.model.trace import MS_NS, Trace, trace_origins, traced

START_NS = 1_000_000_000
"""A load in virtual time starts at a multiple of it."""

STEP_LATE_MS = 0.05
"""What waking up and the kernel's work may take in virtual time."""
_SEEDS = re.compile(r" [0-9a-f]{16}(?=;|$)")
_VERSION = re.compile(r"(\d+)\.(\d+)")
SEEDED = 6, 6
"""From that Linux on a kernel tells the seed of a netem (its parameter prng_seed)."""


def check_performed(trial: Trial, observed: Observation, archive: str | None) -> Iterator[str]:
    """Yield a sentence for each thing that the trial performed otherwise than asked.

    ``archive`` is the digest of the page's archive as the results' environment has it; ``None``:
    there is none to compare with.
    """
    asked = json.loads(json.dumps(asdict(trial)))
    yield from _differ("the trial", asked, observed.trial)
    lab = observed.lab
    if lab is None:
        return
    if trial.page is not None:
        yield from _differ("page", trial.page, observed.archive.get("name"))
        if archive is not None:
            yield from _differ("archive", archive, observed.archive.get("digest"))
    client = getattr(observed.measured, "client", trial.client)
    if client != trial.client:
        yield f"client: performed was {client!r}, asked was {trial.client!r}"
    if isinstance(trial.condition, Linked):
        real_time = in_real_time(trial.kernel)
        yield from check_calibration(lab, trial.linked.link, real_time=real_time)
        yield from check_steps(
            lab.steps, trial.linked.link, getattr(observed.measured, "plt_ms", 0.0)
        )
        if observed.measured is not None and not lab.traffic:
            yield "the lab was not read again after the load"
        if not lab.problems:
            yield from check_knobs(lab.knobs, trial.linked, trial.seed, trial.kernel_version)
            begun = observed.measured is not None
            yield from check_traces(lab.knobs, trial, observed.traces, begun=begun)


def _differ(what: str, asked: Any, performed: Any) -> Iterator[str]:
    if isinstance(asked, dict) and isinstance(performed, dict):
        for name in sorted(asked.keys() | performed.keys()):
            yield from _differ(name, asked.get(name), performed.get(name))
    elif asked != performed:
        yield f"{what}: performed was {performed!r}, asked was {asked!r}"


def check_calibration(lab: LabReading, link: LinkSpec, *, real_time: bool) -> Iterator[str]:
    """Yield a sentence where the lab did not measure all of ``link``, and nothing but it.

    Theory and tolerances must be those of the asked link.  In virtual time the kernel's counters
    show the packets that were measured by: no number came without them.
    """
    probed = () if real_time else (*expect_probed(link), *expect_hops(link))
    wanted = {m.name: m for m in (*expect(link, HOST if real_time else VIRTUAL), *probed)}
    found = {m.name: m for m in lab.measurements}
    if len(found) != len(lab.measurements) or found.keys() - wanted.keys():
        yield f"the lab measured {', '.join(m.name for m in lab.measurements)}"
    for name, theory in wanted.items():
        if name not in found:
            yield f"{name} of the link was not measured"
        elif replace(found[name], measured=theory.measured) != theory:
            yield (
                f"{name}: the lab was held against {found[name].theory:.6g} {found[name].unit} "
                f"(tolerance {found[name].bound}), the trial asks for {theory.theory:.6g} "
                f"{theory.unit} (tolerance {theory.bound})"
            )
        elif not math.isfinite(found[name].measured):
            yield f"{name}: measured {found[name].measured}"
    if real_time or any(found.keys() ^ wanted.keys()):
        return
    for way in WAYS:
        sent = train_sent(link, way)
        survived = int(found[f"{way}_buffer"].measured)
        told = [
            describe_passed(PROBES + survived + left, sent - survived - left)
            for left in range(left_meanwhile(link, way) + 1)
        ]
        passed = lab.knobs.get(f"{way}.calibration", "nothing")
        if passed not in told:
            yield (
                f"{way}: by its kernel the link passed {passed} when it was measured, not {told[0]}"
            )


def check_steps(steps: Sequence[LinkChange], link: LinkSpec, plt_ms: float) -> Iterator[str]:
    """Yield a sentence for each change of ``link`` that was not performed, or otherwise.

    What is due after a load has ended, which took ``plt_ms``, need not be performed.
    """
    asked = phases(link)[1:]
    for phase, step in zip(asked, steps, strict=False):
        text, at_ms = describe_phase(phase), phase.at_ns / 1e6
        if (step.link, step.asked_ms) != (text, at_ms):
            yield (
                f"changes: performed was {step.link!r} at {step.asked_ms:g} ms, asked was {text!r} "
                f"at {at_ms:g} ms"
            )
        elif not 0 <= step.began_ms - at_ms <= STEP_LATE_MS or step.took_ms > STEP_LATE_MS:
            yield (
                f"changes: {text!r} was asked for at {at_ms:g} ms, began at {step.began_ms:.4f} ms "
                f"and took {step.took_ms:.4f} ms"
            )
    if len(steps) > len(asked):
        yield f"changes: {len(steps)} were performed, asked were {len(asked)}"
    for phase in asked[len(steps) :]:
        if phase.at_ns / 1e6 < plt_ms:
            yield (
                f"changes: {describe_phase(phase)!r} at {phase.at_ns / 1e6:g} ms was not performed "
                f"in a load of {plt_ms:.3f} ms"
            )


def check_knobs(
    knobs: Mapping[str, str], asked: Linked, seed: int, version: str = ""
) -> Iterator[str]:
    """Yield a sentence for each setting of ``asked`` that was not read back, or is another.

    ``seed`` is the trial's, by which its link draws, and ``version`` its kernel's.
    """
    for name, value in expected_knobs(asked):
        if name not in knobs:
            yield f"{name} was not read back"
        elif value is not None and knobs[name] != value:
            yield f"{name} was read back as {knobs[name]!r}, asked was {value!r}"
    for name, way in ways(asked.link).items():
        loss = knobs.get(f"{name}.loss_pct", "nan")
        if not math.isclose(float(loss), way.loss_pct, rel_tol=1e-4):
            yield f"{name}.loss_pct was read back as {loss}, asked was {way.loss_pct:g}"
    for name, queue in asked.link.queues.items():
        told = knobs.get(f"{name}.qdisc")
        if queue == FIFO and told is not None:
            yield f"{name}.qdisc was read back as {told!r}, asked was a plain FIFO"
        elif queue != FIFO and told is not None:
            yield from (f"{name}.qdisc {problem}" for problem in differ(queue, told))
    if not is_drawn(asked.link) and asked.link.delay_up_ms is None:
        return
    number = _VERSION.match(version)
    tells = number is not None and tuple(map(int, number.groups())) >= SEEDED
    for name, text in describe_drawn(asked.link, seed).items():
        told = knobs.get(name, "nothing")
        if told != text and (tells or told != _SEEDS.sub("", text)):
            yield f"{name} was read back as {told!r}, asked was {text!r}"


def check_traces(
    knobs: Mapping[str, str], trial: Trial, traces: Mapping[str, Trace], *, begun: bool
) -> Iterator[str]:
    """Yield a sentence where a direction of the link had another trace, or at another time.

    ``traces`` are those that were to run.  A load starts at a whole second, later by what its seed
    says: once a load has ``begun``, its traces have, from there.
    """
    link = trial.linked.link
    missing = [name for name in traced(link).values() if name not in traces]
    if missing:
        yield f"there is no trace {', '.join(missing)} to hold the link against"
        return
    offset_ns = start_offset_ns(trial.seed, getattr(trial.condition, "start_spread_ms", 0.0))
    before_ns = trace_origins(link, traces, trial.seed, offset_ns)
    for way, name in traced(link).items():
        wanted = by_trace(traces[name], *describe_room(link, way)).text
        told = knobs.get(f"{way}.trace", "none")
        if told != wanted:
            yield f"{way}.trace was read back as {told!r}, {name} is {wanted!r}"
        if not begun:
            continue
        end = knobs.get(f"{way}.trace_end")
        if end != link.trace_end:
            yield f"{way}.trace_end was read back as {end!r}, asked was {link.trace_end!r}"
        since_ns = int(knobs.get(f"{way}.trace_origin_ns", "-1")) - before_ns[way]
        if since_ns % START_NS and not in_real_time(trial.kernel):
            yield (
                f"{way}.trace_origin_ns: {name} began {since_ns % START_NS / MS_NS:g} ms after the "
                "moment that the trial's seed says"
            )


def expected_knobs(asked: Linked) -> Iterator[tuple[str, str | None]]:
    """Name and value of what a lab reads back; ``None``: what it is the kernel alone knows."""
    tcp = asked.tcp
    for role in ENDS:
        for name, value in (PINNED | asked_sysctls(tcp, role)).items():
            yield f"{role}.{name}", " ".join(value.split())
        yield f"{role}.{SYSCTL}", tcp.algorithm_of(role)
        yield f"{role}.sysctls", None
        if of_end(tcp.route, role):
            yield f"{role}.route", None
    yield "server.initcwnd_segments", str(tcp.initcwnd_segments)
    yield "link.backend", None
    yield "congestion_control.pinned_by", None
    yield "stray_packets", "0"
    for mechanism in ACTING:
        yield from mechanism.expect(asked)
    yield from ((f"{way}.qdisc", None) for way, text in asked.link.queues.items() if text != FIFO)
