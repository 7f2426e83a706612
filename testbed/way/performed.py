"""What a trial performed, held against what was asked: its own words, its lab, what that measured.

A guest writes down the trial and the page that it was given, and what it measured and read back.
Everything that follows from the trial alone is computed here again and compared whole, so that a
number can stand under no other condition than its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from testbed.kinds.observation import Observation
from testbed.lab.beside import HOSTS
from testbed.lab.calibration import (
    PROBES,
    TRAIN_SURPLUS,
    describe_passed,
    expect,
    train_theory,
)
from testbed.lab.congestion import SYSCTL
from testbed.lab.exactness import HOST, VIRTUAL
from testbed.lab.link.protocol import WAYS
from testbed.lab.readback import ENDS
from testbed.lab.tcp import PINNED, algorithm_of, asked_sysctls, wanted_sysctls
from testbed.model import FIFO, LabReading, Linked, LinkSpec, Trial, in_real_time
from testbed.model.settings import of_end
from testbed.model.traffic import NO_TRAFFIC


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
        if observed.measured is not None and not lab.traffic:
            yield "the lab was not read again after the load"
        if not lab.problems:
            yield from check_knobs(lab.knobs, trial.linked)


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
    wanted = {m.name: m for m in expect(link, HOST if real_time else VIRTUAL)}
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
    sent = train_theory(link) + TRAIN_SURPLUS
    for way in WAYS:
        survived = int(found[f"{way}_buffer"].measured)
        told = describe_passed(PROBES + survived, sent - survived)
        passed = lab.knobs.get(f"{way}.calibration", "nothing")
        if passed != told:
            yield f"{way}: by its kernel the link passed {passed} when it was measured, not {told}"


def check_knobs(knobs: Mapping[str, str], asked: Linked) -> Iterator[str]:
    """Yield a sentence for each setting of ``asked`` that was not read back, or is another."""
    for name, value in expected_knobs(asked):
        if name not in knobs:
            yield f"{name} was not read back"
        elif value is not None and knobs[name] != value:
            yield f"{name} was read back as {knobs[name]!r}, asked was {value!r}"
    for way in WAYS:
        loss = knobs.get(f"{way}.loss_pct", "nan")
        if not math.isclose(float(loss), asked.link.loss_pct, rel_tol=1e-4):
            yield f"{way}.loss_pct was read back as {loss}, asked was {asked.link.loss_pct:g}"


def expected_knobs(asked: Linked) -> Iterator[tuple[str, str | None]]:
    """Name and value of what a lab reads back; ``None``: what it is the kernel alone knows."""
    tcp = asked.tcp
    for role in ENDS:
        given = asked_sysctls(tcp, role)
        for name, value in (wanted_sysctls(tcp) | given).items():
            yield f"{role}.{name}", " ".join(value.split())
        yield f"{role}.{SYSCTL}", algorithm_of(tcp, role)
        yield f"{role}.sysctls", None
        yield f"{role}.offloads", "none"
        if of_end(tcp.route, role):
            yield f"{role}.route", None
    yield "server.initcwnd_segments", str(tcp.initcwnd_segments)
    yield "link.backend", None
    yield "congestion_control.pinned_by", None
    yield "stray_packets", "0"
    if getattr(asked, "traffic", NO_TRAFFIC) != NO_TRAFFIC:
        for host in HOSTS:
            yield from ((f"{host}.{name}", value) for name, value in PINNED.items())
            yield f"{host}.sysctls", None
            yield f"{host}.offloads", "none"
    if asked.link.qdisc != FIFO:
        yield from ((f"{way}.qdisc", None) for way in WAYS)
