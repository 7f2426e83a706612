"""Server load, performed where its kernel runs: lab, server, generator and counters joined.

Standard library only: this is what a guest executes.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, replace

from testbed.base.machine import describe_machine, read_sample
from testbed.kinds.server_load.management import client_sysctls, managing
from testbed.kinds.server_load.price_list import price_work
from testbed.kinds.server_load.processors import choose_processors, watching
from testbed.kinds.server_load.programs import (
    gather_load,
    generate,
    generator_argv,
    server_argv,
    serving,
)
from testbed.kinds.site import Site, link_numbers, open_lab_of
from testbed.lab.alignment import begin_stage, draw_secrets
from testbed.lab.laboratory import Lab
from testbed.lab.topology import origin_address
from testbed.model import CAPTURE_FILE, HISTOGRAMS_FILE, Trial
from testbed.model.served import CAPTURED_MOST
from testbed.server.mechanisms.apply import Applied
from testbed.wire.capture import capture
from testbed.wire.counters import grown, read_all_counters

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
    load = trial.server_load
    with open_lab_of(trial, 1, site, {"client": client_sysctls(load.arrivals)}) as lab:
        observation["lab"] = asdict(lab.reading)
        if lab.reading.problems:
            return
        with managing(lab, load.server, PORT, site.scratch) as applied:
            measure = _measure_in_virtual_time if site.aligned else _measure_in_real_time
            measure(trial, site, lab.read_settings(), applied, observation)


def _measure_in_virtual_time(
    trial: Trial, site: Site, lab: Lab, applied: Applied, observation: dict[str, object]
) -> None:
    """Measure a server whose work has a price: computing takes no time there."""
    load, native = trial.server_load, site.bundle / "native"
    prices = price_work(load.server)
    serve = server_argv(native / "event-server", ADDRESS, load, applied.backlog, prices)
    argv = generator_argv(native / "load-generator", ADDRESS, trial)
    _prime_cookies(lab, serve, site)
    with (
        serving(lab.topology.server, serve, site.scratch / "server.json") as end_server,
        lab.watched() as read_again,
    ):
        begin_stage()
        report, counts = _generate(trial, site, lab, argv, end_server, observation)
        observation["lab"] = asdict(read_again())
    observation["served"] = asdict(gather_load(report, counts, prices))


def _measure_in_real_time(
    trial: Trial, site: Site, lab: Lab, applied: Applied, observation: dict[str, object]
) -> None:
    """Measure a server on a processor of its own, and how busy that is."""
    load, native, on = trial.server_load, site.bundle / "native", choose_processors()
    serve = server_argv(native / "event-server", ADDRESS, load, applied.backlog, {}, on.server)
    argv = generator_argv(native / "load-generator", ADDRESS, trial, on.generator)
    arrivals = load.arrivals
    _prime_cookies(lab, serve, site)
    with (
        serving(lab.topology.server, serve, site.scratch / "server.json") as end_server,
        lab.watched() as read_again,
    ):
        began = read_sample()
        with watching(on.server, arrivals.warm_up_s, arrivals.duration_s) as busy_pct:
            report, counts = _generate(trial, site, lab, argv, end_server, observation)
        machine = describe_machine(began, read_sample()) | link_numbers(lab)
        observation["lab"] = asdict(read_again())
    managed = applied.attached.read_counters() if applied.attached is not None else {}
    found = gather_load(report, counts, {}, busy_pct.result())
    observation["machine"] = machine
    observation["served"] = asdict(replace(found, management=managed))


def _prime_cookies(lab: Lab, serve: tuple[str, ...], site: Site) -> None:
    """Give the clients' kernel its Fast Open cookie, by a server that counts for nothing else."""
    if lab.condition.tcp.tfo:
        with serving(lab.topology.server, serve, site.scratch / "prime.json"):
            lab.prime_cookies(1)


def _generate(
    trial: Trial,
    site: Site,
    lab: Lab,
    argv: tuple[str, ...],
    end_server: Callable[[], dict[str, int]],
    observation: dict[str, object],
) -> tuple[dict[str, object], dict[str, int]]:
    """Run the generator within a capture, and count what both kernels count meanwhile.

    Returns its report and the server's counts.  The server ends before the counters are read for
    the last time: until then it may have work, and so may the link.
    """
    ends = {"client": lab.topology.client, "server": lab.topology.server}
    kept = (CAPTURE_FILE, HISTOGRAMS_FILE)
    pcap, histograms = (site.scratch / name for name in kept)
    try:
        with capture(ends["client"], "c0", pcap, site.scratch / "tcpdump.log", CAPTURED_MOST):
            before = {end: read_all_counters(there) for end, there in ends.items()}
            log = ("--histograms", str(histograms))
            report = generate(ends["client"], (*argv, *log), trial)
            # The last FINs and ACKs belong to the load.
            time.sleep(lab.settle_s)
            settled = read_all_counters(ends["server"])
            counts = end_server()
            time.sleep(lab.settle_s)
            after = {end: read_all_counters(there) for end, there in ends.items()}
    finally:
        # Of a failed load, too: its packets are what explains it.
        for path in (pcap, histograms):
            if path.exists():
                shutil.copyfile(path, site.out / path.name)
    observation["counters"] = {end: grown(before[end], after[end]) for end in ends}
    counts["settled_segments"] = sum(
        settled[name] - before["server"][name] for name in ("TcpInSegs", "TcpOutSegs")
    )
    return report, counts
