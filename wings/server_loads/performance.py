"""Server load, performed where its kernel runs: lab, server, generator and counters joined.

Standard library only: this is what a guest executes.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace

from testbed.base.machine import describe_machine, read_sample
from testbed.capture.counters import grown, read_all_counters
from testbed.capture.tcpdump import CAPTURED_MOST, capture
from testbed.kinds.workspace import Site, link_numbers, open_lab_of
from testbed.lab.alignment import begin_stage, draw_secrets
from testbed.lab.laboratory import Lab
from testbed.lab.topology import origin_address
from testbed.model import CAPTURE_FILE, Trial
from wings.server_loads.account import ServerAccount, count_segments
from wings.server_loads.measurement import HISTOGRAMS_FILE
from wings.server_loads.mechanisms.apply import Applied, apply_management
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
from wings.server_loads.sysctls import load_sysctls

PORT = 80
DEVICE = "s0"
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
        there = lab.topology.server
        with apply_management(there, DEVICE, PORT, load.server, site.management) as applied:
            ready = lab.read_settings()
            observation["sysctls"] = dict(ready.state.sysctls["server"])
            with nullcontext() if on is None else receiving(there, DEVICE, on.server):
                _measure(trial, site, ready, applied, on, observation)


def _measure(
    trial: Trial,
    site: Site,
    lab: Lab,
    applied: Applied,
    on: Processors | None,
    observation: dict[str, object],
) -> None:
    """Measure a server on processors of its own, ``on``, and how busy those are.

    In virtual time there are none: computing takes no time there, so its work has a price.
    """
    load, there = trial.condition_as(ServerLoad), lab.topology.server
    arrivals, native = load.arrivals, site.bundle / "native"
    is_nginx, processors = load.server.program == "nginx", () if on is None else on.server
    prices = {} if is_nginx or on is not None else price_work(load.server)

    def serve(name: str) -> AbstractContextManager[Callable[[], ServerAccount]]:
        backlog, files = applied.backlog, site.scratch / name
        if is_nginx:
            return serving_nginx(there, ADDRESS, load, backlog, processors, files)
        argv = server_argv(native / "event-server", ADDRESS, load, backlog, prices, processors)
        return serving(there, argv, files.with_suffix(".json"))

    if load.tcp.tfo:
        # The clients' kernel has its cookie from a server that counts for nothing else.
        with serve("prime"):
            lab.prepare(1)
    generator = None if on is None else on.generator
    argv = generator_argv(native / "load-generator", ADDRESS, trial, generator)
    with (
        serve("server") as end_server,
        lab.watched(lambda: applied.read_counters().get("withheld", 0)) as read_again,
    ):
        if on is None:
            begin_stage()
            lab.begin_traces(trial.seed)
            report, account, before = _generate(trial, site, lab, argv, end_server, observation)
            busy_pct = None
        else:
            began = read_sample()
            with watching(on.server, arrivals.warm_up_s, arrivals.duration_s) as busy:
                report, account, before = _generate(trial, site, lab, argv, end_server, observation)
            machine = describe_machine(began, read_sample())
            observation["machine"] = machine | link_numbers(lab)
            busy_pct = busy.result()
        observation["lab"] = asdict(read_again())
        observation["taken_later"] = {
            end: grown(before[end], now)["TcpInSegs"] for end, now in _count(lab).items()
        }
    served_load = gather_load(report, account, prices, busy_pct)
    observation["served"] = asdict(replace(served_load, management=applied.read_counters()))


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
