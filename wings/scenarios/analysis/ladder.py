"""Ladder diagram of a scenario, from its captures and its calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from analysis.plot.ladder import Ladder
from analysis.plot.sequence import BoxRule, Exchange, Landing, Remark, Rung
from analysis.records.kept import find_kept
from testbed.base.errors import ConfigurationError
from testbed.capture.packets import Packet, read_capture
from testbed.model import Record
from wings.scenarios.analysis.labels import Labels
from wings.scenarios.analysis.promises import key_of
from wings.scenarios.analysis.remarks import remarks_of
from wings.scenarios.matching import Captures, Sight, see
from wings.scenarios.measurement import Performance, ScenarioResult
from wings.scenarios.promise import Promise, read_promise
from wings.scenarios.words import ADDRESSES, ATTACKER, MIDDLEBOX, address_of, describe_end

MOST = 200
"""How many packets a ladder has at the most."""


def draw_ladder(results_dir: Path, record: Record) -> Ladder:
    """Return the ladder of a scenario that was performed.

    Raises:
        ConfigurationError: it was not performed, or a capture is missing, or not what it was.
    """
    result = record.measured_as(ScenarioResult)
    if result is None:
        raise ConfigurationError([f"trial {record.trial_id} performed no scenario"])
    promise = read_promise(key_of(record)[1])
    captures = _read_captures(results_dir, record)
    try:
        exchange = read_exchange(promise, result.performance, captures)
    except (LookupError, ValueError) as error:
        raise ConfigurationError([f"trial {record.trial_id}: {error}"]) from error
    packets = len(result.performance.passages)
    part = f" (the first {MOST} of {packets:,} packets)" if packets > MOST else ""
    return Ladder(exchange, promise.title + part)


def _read_captures(results_dir: Path, record: Record) -> dict[str, tuple[Packet, ...]]:
    captures = {}
    for name in (*ADDRESSES, ATTACKER):
        if f"{name}.pcap" not in record.artefacts:
            continue
        path, problem = find_kept(results_dir, record, f"{name}.pcap")
        if path is None:
            raise ConfigurationError([problem])
        try:
            captures[name] = read_capture(path).packets
        except (OSError, ValueError) as error:
            raise ConfigurationError([f"{path} cannot be read: {error}"]) from error
    return captures


def read_exchange(promise: Promise, performance: Performance, captures: Captures) -> Exchange:
    """Return the packets of a performance, and what its applications and its middlebox did.

    Raises:
        LookupError: a capture has not all its packets.
    """
    began_ns = min(
        (passage.at_ns for passage in performance.passages),
        default=min((call.at_ns for call in performance.calls), default=0),
    )

    def ms(at_ns: int) -> float:
        return (at_ns - began_ns) / 1e6

    sights = see(performance, captures)[:MOST]
    last_ns = sights[-1].packet.at_ns if len(sights) == MOST else math.inf
    calls = tuple(call for call in performance.calls if call.ended_ns <= last_ns)
    rungs = tuple(_rungs(sights, ms))
    hosts = promise.script.hosts
    attacked = any(rung.sender == ATTACKER for rung in rungs)
    clients = tuple(host for host in hosts if host.startswith("client"))
    left = (*clients, *([ATTACKER] if attacked or not clients else []))
    right = tuple(host for host in hosts if host not in clients) or ("server",)
    remarks = (
        Remark(host, ms(at_ns), text)
        for host, at_ns, text in remarks_of(promise.script, calls, round(promise.rtt_ms * 500_000))
    )
    told = (
        Remark(sight.refusal[0], ms(sight.refusal[1].at_ns), "ICMP: host unreachable")
        for sight in sights
        if sight.refusal is not None
    )
    rules = (
        BoxRule(ms(call.at_ns), f"{MIDDLEBOX}: {call.text.removeprefix(f'{MIDDLEBOX} ')}")
        for call in calls
        if call.actor == MIDDLEBOX
    )
    below = {host: address_of(host, promise.ip) for host in (*left, *right) if host in ADDRESSES}
    return Exchange(left, right, promise.rtt_ms / 2, rungs, (*remarks, *told), tuple(rules), below)


def _rungs(sights: Sequence[Sight], ms: Callable[[int], float]) -> Iterator[Rung]:
    labels = Labels()
    for sight in sights:
        labels.note(sight.packet, [copy for _, copy in sight.copies])
    for sight in sights:
        packet = sight.packet
        label = labels.describe(packet)
        if sight.sender == ATTACKER:
            label = f"{label}, as {describe_end(packet.source)}"
        receiver = sight.copies[0][0] if sight.copies else labels.host_of(packet, sight.sender)
        yield Rung(
            sight.sender, receiver, ms(packet.at_ns), label,
            tuple(
                Landing(host, ms(copy.at_ns), labels.describe_change(packet, copy))
                for host, copy in sight.copies
            ),
            labels.connection_of(packet), labels.kind_of(packet),
        )  # fmt: skip
