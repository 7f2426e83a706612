"""Server load, performed where its kernel runs: lab, server, generator and counters joined.

Standard library only: this is what a guest executes.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from functools import partial

from testbed.base.machine import describe_machine, read_sample
from testbed.capture.counters import grown, read_all_counters
from testbed.capture.tcpdump import CAPTURED_MOST, capture
from testbed.kinds.workspace import Site, link_numbers, open_lab_of
from testbed.lab.alignment import begin_stage, draw_secrets
from testbed.lab.laboratory import Lab
from testbed.lab.topology import origin_address
from testbed.model import CAPTURE_FILE, Trial
from wings.server_loads.account import ServerAccount, count_segments
from wings.server_loads.management import DEVICE, load_sysctls, managing
from wings.server_loads.measurement import HISTOGRAMS_FILE
from wings.server_loads.mechanisms.apply import Applied
from wings.server_loads.nginx import serving_nginx
from wings.server_loads.price_list import price_work
from wings.server_loads.processors import (
    Processors,
    choose_processors,
    receiving,
    watching,
)
from wings.server_loads.programs import (
    gather_load,
    generate,
    generator_argv,
    server_argv,
    serving,
)
from wings.server_loads.spec import ServerLoad

PORT = 80
ADDRESS = f"{origin_address(0)}:{PORT}"


def perform(trial: Trial, site: Site, observation: dict[str, object]) -> None:
    """Put the server under load and write down in ``observation`` what became of it.

    Raises:
        TestbedError, OSError: the load did not come to its end.
    """
    if site.aligned:
        begin_stage()
        draw_secrets()
    load = trial.condition_as(ServerLoad)
    on = None if site.aligned else choose_processors(load.server.workers)
    with open_lab_of(trial, 1, site, load_sysctls(load.arrivals)) as lab:
        observation["lab"] = asdict(lab.reading)
        if lab.reading.problems:
            return
        with managing(lab, load.server, PORT, site.management) as applied:
            ready = lab.read_settings()
            observation["sysctls"] = dict(ready.state.sysctls["server"])
            if on is None:
                _measure_in_virtual_time(trial, site, ready, applied, observation)
            else:
                _measure_in_real_time(trial, site, ready, applied, on, observation)


def _measure_in_virtual_time(
    trial: Trial, site: Site, lab: Lab, applied: Applied, observation: dict[str, object]
) -> None:
    """Measure a server whose work has a price: computing takes no time there."""
    load = trial.condition_as(ServerLoad)
    prices = {} if load.server.program == "nginx" else price_work(load.server)
    serve = partial(_serve, trial, site, lab, applied.backlog, prices, ())
    argv = generator_argv(site.bundle / "native" / "load-generator", ADDRESS, trial)
    _prime_cookies(lab, serve)
    with serve("server") as end_server, lab.watched() as read_again:
        begin_stage()
        lab.begin_traces(trial.seed)
        report, account, before = _generate(trial, site, lab, argv, end_server, observation)
        observation["lab"] = asdict(read_again())
        observation["taken_later"] = _count_taken(lab, before)
    observation["served"] = asdict(gather_load(report, account, prices))


def _measure_in_real_time(
    trial: Trial,
    site: Site,
    lab: Lab,
    applied: Applied,
    on: Processors,
    observation: dict[str, object],
) -> None:
    """Measure a server on processors of its own, and how busy those are."""
    load = trial.condition_as(ServerLoad)
    serve = partial(_serve, trial, site, lab, applied.backlog, {}, on.server)
    argv = generator_argv(site.bundle / "native" / "load-generator", ADDRESS, trial, on.generator)
    arrivals = load.arrivals
    with receiving(lab.topology.server, DEVICE, on.server):
        _prime_cookies(lab, serve)
        with serve("server") as end_server, lab.watched(applied.count_withheld) as read_again:
            began = read_sample()
            with watching(on.server, arrivals.warm_up_s, arrivals.duration_s) as busy_pct:
                report, account, before = _generate(trial, site, lab, argv, end_server, observation)
            machine = describe_machine(began, read_sample()) | link_numbers(lab)
            observation["lab"] = asdict(read_again())
            observation["taken_later"] = _count_taken(lab, before)
    served_load = gather_load(report, account, {}, busy_pct.result())
    observation["machine"] = machine
    observation["served"] = asdict(replace(served_load, management=applied.read_counters()))


def _serve(
    trial: Trial,
    site: Site,
    lab: Lab,
    backlog: int,
    prices: Mapping[str, int],
    processors: tuple[int, ...],
    name: str,
) -> AbstractContextManager[Callable[[], ServerAccount]]:
    """Run the server that the trial asks for; ``name`` is that of its files."""
    load, there = trial.condition_as(ServerLoad), lab.topology.server
    if load.server.program == "nginx":
        return serving_nginx(there, ADDRESS, load, backlog, processors, site.scratch / name)
    program = site.bundle / "native" / "event-server"
    argv = server_argv(program, ADDRESS, load, backlog, prices, processors)
    return serving(there, argv, site.scratch / f"{name}.json")


def _prime_cookies(
    lab: Lab, serve: Callable[[str], AbstractContextManager[Callable[[], ServerAccount]]]
) -> None:
    """Give the clients' kernel its Fast Open cookie, by a server that counts for nothing else."""
    if lab.condition.tcp.tfo:
        with serve("prime"):
            lab.prepare(1)


def _generate(
    trial: Trial,
    site: Site,
    lab: Lab,
    argv: tuple[str, ...],
    end_server: Callable[[], ServerAccount],
    observation: dict[str, object],
) -> tuple[dict[str, object], ServerAccount, dict[str, dict[str, int]]]:
    """Run the generator within a capture, and count what both kernels count meanwhile.

    Returns its report, the server's account and what both kernels had counted before.  The server
    ends before the counters are read again: until then it may have work, and so may the link.
    """
    kept = (CAPTURE_FILE, HISTOGRAMS_FILE)
    pcap, histograms = (site.scratch / name for name in kept)
    try:
        with capture(lab.topology.client, "c0", pcap, site.scratch / "tcpdump.log", CAPTURED_MOST):
            before = _count(lab)
            log = ("--histograms", str(histograms))
            report = generate(lab.topology.client, (*argv, *log), trial)
            # The last FINs and ACKs belong to the load.
            time.sleep(lab.settle_s)
            settled = read_all_counters(lab.topology.server)
            account = end_server()
            time.sleep(lab.settle_s)
            after = _count(lab)
    finally:
        # Of a failed load, too: its packets are what explains it.
        for path in (pcap, histograms):
            if path.exists():
                shutil.copyfile(path, site.out / path.name)
    observation["counters"] = {end: grown(before[end], after[end]) for end in after}
    observation["workers"] = account.workers
    segments = count_segments(grown(before["server"], settled))
    counts = account.counts | {"settled_segments": segments}
    return report, replace(account, counts=counts), before


def _count(lab: Lab) -> dict[str, dict[str, int]]:
    """What the kernels of both ends count."""
    ends = {"client": lab.topology.client, "server": lab.topology.server}
    return {end: read_all_counters(there) for end, there in ends.items()}


def _count_taken(lab: Lab, before: Mapping[str, dict[str, int]]) -> dict[str, int]:
    """How many segments each end's kernel has taken since ``before``, until now."""
    return {end: grown(before[end], now)["TcpInSegs"] for end, now in _count(lab).items()}
