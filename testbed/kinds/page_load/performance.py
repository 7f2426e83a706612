"""Page load, performed where its kernel runs: lab, server, client and capture joined.

Standard library only: this is what a guest executes.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from testbed.archive.reading import Archive, read_archive
from testbed.base.errors import LabError
from testbed.base.machine import describe_machine, describe_queues, read_queued, read_sample
from testbed.capture.counters import difference, read_counters
from testbed.capture.recorder import recorded
from testbed.capture.tcpdump import capture, snap_bytes
from testbed.client import CLIENTS
from testbed.client.interface import EarlyClient, LoadError, LoadOrder
from testbed.client.page_coverage import (
    check_protocols,
    compare,
    judge_coverage,
    measure_coverage,
    unreached,
)
from testbed.kinds.page_lab import CLIENT_USER, open_lab_for, order_of, replayed
from testbed.kinds.page_load.second_load import Loading, loaded_again, served_again
from testbed.kinds.workspace import Site, link_numbers
from testbed.lab.alignment import begin_stage, read_call_ns
from testbed.lab.laboratory import Lab
from testbed.mechanisms.neighbours.sending import KernelAccount, accompanied
from testbed.model import (
    CAPTURE_FILE,
    SERVER_CAPTURE_FILE,
    Condition,
    PageLoad,
    RequestTiming,
    Trial,
)
from testbed.server.lengths import check_lengths, list_connections
from testbed.server.listeners import Listener, lab_listeners
from testbed.server.quic_stack import check_stack, read_stack
from testbed.server.replay_log import LoggedAnswer, read_answered, read_replay
from testbed.server.resolver import Addresses


def perform(trial: Trial, site: Site, observation: dict[str, object]) -> None:
    """Load the page and write down in ``observation`` what was seen, as far as it went.

    Raises:
        TestbedError, OSError: the load did not come to its end.
    """
    archive = read_archive(site.page)
    with open_lab_for(archive, trial, site, observation) as (lab, addresses):
        if not lab.reading.problems:
            _measure(trial, site, archive, addresses, lab, observation)


def _measure(
    trial: Trial,
    site: Site,
    archive: Archive,
    addresses: Addresses,
    lab: Lab,
    observation: dict[str, object],
) -> None:
    condition = trial.condition_as(Condition)
    listeners = lab_listeners(archive, addresses, condition.protocol)
    nginx = site.scratch / "nginx"
    try:
        with (
            replayed(trial, site, archive, addresses, lab, nginx) as server,
            served_again(trial, site, archive, lab),
        ):
            lab.prepare(len(archive.hosts))
            with lab.watched() as read_again:
                load, counters, machine, met, second = _load(trial, site, archive, lab, server)
                observation["lab"] = asdict(read_again())
            if condition.web_server != "nginx":
                observation["server_program"] = str(Path(f"/proc/{server}/exe").readlink())
    except LoadError:
        # What the server was asked explains a load that came to no end.
        observation["replay"] = asdict(read_replay(nginx, archive.served))
        raise
    # The server has ended: its log is complete.
    replay = read_replay(nginx, archive.served)
    answered = read_answered(nginx, archive.served)
    load = load if load.requests else _with_coverage(load, archive, answered)
    stack = read_stack(nginx, condition)
    served = {(listener.host, listener.port) for listener in listeners} | archive.dead_ends
    requests = [request for visit in load.visits for request in visit.requests]
    replay = replace(
        replay,
        missed=(*replay.missed, *unreached(requests, served)),
        page=measure_coverage(archive, load, replay),
        quic="" if stack is None else stack.text,
    )
    observation |= {"load": asdict(load), "replay": asdict(replay), "counters": counters}
    observation |= {"machine": machine, "call_ns": read_call_ns() if site.aligned else None}
    observation["connections"] = [asdict(connection) for connection in list_connections(answered)]
    protocols = check_protocols(replay, _offers(listeners))
    observation |= {"neighbours": [asdict(told) for told in met.told], "load_ns": met.load_ns}
    if (again := second.read(site, archive)) is not None:
        observation["second"] = asdict(again)
    unlike = () if stack is None else check_stack(stack, condition.quic)
    others = (
        *unlike,
        *met.problems,
        *(f"the second page: {problem}" for problem in second.problems),
    )
    lengths = (each for visit in load.visits for each in check_lengths(answered, visit))
    observation["problems"] = (*protocols, *others, *dict.fromkeys(lengths))
    for visit in load.visits:
        reason = judge_coverage(visit, replay, archive.recorded, condition.allow_misses)
        if reason is not None:
            raise LabError(reason)


def _with_coverage(load: PageLoad, archive: Archive, answered: Sequence[LoggedAnswer]) -> PageLoad:
    """Return the load of a client that names no request, held against what its server was asked."""
    requests = [
        RequestTiming(
            answer.request.partition(" ")[2], answer.status if answer.complete else 0, 0.0, 0.0
        )
        for answer in answered
    ]
    coverage = compare(archive, requests)
    return replace(load, missing=coverage.missing, extra=coverage.extra, failed=coverage.failed)


def _load(
    trial: Trial, site: Site, archive: Archive, lab: Lab, server: int
) -> tuple[PageLoad, dict[str, dict[str, int]], dict[str, float], KernelAccount, Loading]:
    """Load the page; return the load, the growth of both ends' TCP counters, and the machine.

    The last are what the kernel told of neighbours, and a neighbour's load of the page.

    ``server`` is the process that serves.
    """
    ends = {"client": lab.topology.client, "server": lab.topology.server}
    if site.aligned:
        begin_stage()
    order = order_of(trial, site, archive, lab.topology.client.name, CLIENT_USER)
    lab.begin_traces(trial.seed, order.wait_until_ns)
    condition = trial.condition_as(Condition)
    client = CLIENTS[condition.client] if site.early is None else site.early.client
    pcap, crossed = site.scratch / CAPTURE_FILE, site.scratch / SERVER_CAPTURE_FILE
    # In virtual time what the machine does has no effect, so it is not watched.
    began = None if site.aligned else (read_sample(), read_queued(server))
    try:
        with (
            recorded(ends["server"], "s0", crossed),
            capture(
                ends["client"], "c0", pcap, site.scratch / "tcpdump.log", None,
                snap_bytes(condition, tls=order.opening.keys),
            ),
        ):  # fmt: skip
            # Within the capture: what the counters grow by, it must show.
            before = {end: read_counters(namespace) for end, namespace in ends.items()}
            with (
                accompanied(condition, lab, order, site.scratch) as met,
                loaded_again(condition, site, lab, order) as second,
                lab.changing() as begin,
            ):
                load = client.load(order if begin is None else _announced(order, trial, begin))
            # The last FINs and ACKs belong to the trial.
            time.sleep(lab.settle_s)
            after = {end: read_counters(namespace) for end, namespace in ends.items()}
    finally:
        # Of a failed load, too: its log and its packets are what explains it.
        for file in (*sorted(site.scratch.glob("*.pcap")), *sorted(order.out.iterdir())):
            if file.is_file() and not file.is_symlink():
                shutil.copyfile(file, site.out / file.name)
    machine: dict[str, float] = {}
    if began is not None:
        sample, queued_s = began
        server_s = read_queued(server) - queued_s
        machine = describe_machine(sample, read_sample()) | link_numbers(lab)
        machine |= describe_queues(load.plt_ms, load.browser.get("queued_s"), server_s)
    return load, {end: difference(before[end], after[end]) for end in ends}, machine, met, second


def _announced(order: LoadOrder, trial: Trial, begin: Callable[[int], None]) -> LoadOrder:
    """Return ``order`` with which ``begin`` is told when its load begins, in virtual time."""
    restart = order.restart
    client = CLIENTS[trial.condition_as(Condition).client]
    if not isinstance(client, EarlyClient) or restart is None:
        if order.wait_until_ns is not None:
            begin(order.wait_until_ns)
        return order

    def restart_and_tell() -> None:
        restart()
        begin(time.time_ns())

    return replace(order, restart=restart_and_tell)


def _offers(listeners: Iterable[Listener]) -> dict[str, str]:
    """Return what is to be spoken, by origin, of those with TLS."""
    return {
        f"https://{each.host}{'' if each.port == 443 else f':{each.port}'}": each.speaks
        for each in listeners
        if each.tls
    }
