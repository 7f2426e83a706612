"""Scenario, performed where its kernel runs: its script, line by line, over a network of its own.

Standard library only: this is what a guest executes.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import asdict

from testbed.base.errors import MissingError
from testbed.capture.counters import grown, read_all_counters
from testbed.kinds.workspace import Site
from testbed.lab.alignment import begin_stage, draw_secrets
from testbed.model import LabReading, Measurement, Trial
from wings.scenarios.calls import perform_call
from wings.scenarios.measurement import Call, Performance
from wings.scenarios.network import Network, open_network
from wings.scenarios.promise import read_promise
from wings.scenarios.script import Script
from wings.scenarios.spec import Scenario
from wings.scenarios.words import ATTACKER

SETTLING_ROUND_TRIPS = 3
LONGEST_S = 30.0
"""How long a script may wait in real time."""
_EXACT_MS, _BUSY_MS = 0.1, 5.0
"""How late a packet may be delivered, in virtual time and in real time."""


def perform(trial: Trial, site: Site, observation: dict[str, object]) -> None:
    """Perform the trial's script and write down what its hosts saw and sent.

    Raises:
        TestbedError, OSError: it did not come to its end; ``MissingError``: this kernel lacks
            what it needs.
    """
    promise = read_promise(trial.condition_as(Scenario).text)
    if site.aligned:
        begin_stage()
        draw_secrets()
    elif promise.cache_slots is not None:
        raise MissingError(
            "cache_slots is for a kernel that is booted for it: use the virtual kernel "
            "(--kernel virtual)"
        )
    elif promise.script.waits_s > LONGEST_S:
        raise MissingError(
            f"it waits {promise.script.waits_s:.0f} s, and this kernel's time is real: "
            "use the virtual kernel (--kernel virtual)"
        )
    hosts = promise.script.hosts
    try:
        with open_network(hosts, promise.rtt_ms, site.tag, site.scratch, promise.ip) as network:
            if site.aligned:
                begin_stage()
            settle_s = SETTLING_ROUND_TRIPS * promise.rtt_ms / 1000
            observation["performed"] = asdict(_perform(network, promise.script, settle_s))
            observation["lab"] = asdict(_read_lab(network, exact=site.aligned))
            observation["counters"] = {
                name: grown(host.counted, read_all_counters(host.namespace))
                for name, host in network.hosts.items()
            }
    finally:
        for name in (*hosts, ATTACKER):
            capture = site.scratch / f"{name}.pcap"
            if capture.exists():
                shutil.copyfile(capture, site.out / capture.name)


def _read_lab(network: Network, *, exact: bool) -> LabReading:
    """Return the delay of the packet that was delivered last after its time."""
    half_ms = network.half_s * 1000
    worst = Measurement(
        "delay", "ms", half_ms + network.late_ns / 1e6, half_ms, 0.0,
        _EXACT_MS if exact else _BUSY_MS,
    )  # fmt: skip
    return LabReading((worst,), {})


def _perform(network: Network, script: Script, settle_s: float) -> Performance:
    calls = []
    for action in script.actions:
        at_ns = time.time_ns()
        result = perform_call(network, action)
        # What the call made its kernel send is on the wire before the next one begins.
        network.run(0)
        calls.append(Call(action.line, action.actor, action.text, at_ns, time.time_ns(), result))
    network.run(settle_s)
    return Performance(tuple(calls), tuple(network.passages))
