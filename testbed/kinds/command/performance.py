"""Command, performed where its kernel runs: in the lab of a page load, beside its servers.

Standard library only: this is what a guest executes.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path

from testbed.archive.reading import Archive, read_archive
from testbed.base import proc
from testbed.base.errors import LabError
from testbed.base.machine import describe_machine, read_sample
from testbed.base.namespace import Namespace
from testbed.capture.counters import difference, read_counters
from testbed.capture.tcpdump import CAPTURED_MOST, capture, snap_bytes
from testbed.client.command import began_ns, keep_files, load_values
from testbed.client.interface import LoadError, LoadOrder, client_environment
from testbed.client.process import read_tail, run_logged
from testbed.kinds.command.measurement import ERROR_FILE, OUTPUT_FILE, PEER_FILE, Executed
from testbed.kinds.command.spec import LabCommand
from testbed.kinds.page_lab import (
    open_lab_for,
    order_of,
    replayed,
    start_argv,
    start_beside,
)
from testbed.kinds.workspace import Site, link_numbers
from testbed.lab.alignment import begin_stage, choose_moments
from testbed.lab.laboratory import Lab
from testbed.lab.topology import CLIENT_ADDRESS, SERVER_ADDRESS, addresses_in
from testbed.mechanisms.neighbours.sending import accompanied
from testbed.model import CAPTURE_FILE, Trial
from testbed.model.command import fill_words, split_words
from testbed.model.traffic import lead_s, parse_traffic
from testbed.server.quic_stack import read_stack
from testbed.server.replay_log import read_replay

ROOT = 0
"""The user of commands: they are the user's own, and ping, tcpdump or ss need it."""
PEER_READY_S = 5.0
PEER_POLL_S = 0.01
NOT_STARTED = 125  # the status of native/start.c, which says why
LISTENING = ("07", "0A")
"""States of a socket that waits for others, of UDP and of TCP (/proc/net/udp and tcp)."""


def perform(trial: Trial, site: Site, observation: dict[str, object]) -> None:
    """Run the command and write down in ``observation`` what became of it, as far as it went.

    Raises:
        TestbedError, OSError: it could not be run, or took too long.
    """
    archive = read_archive(site.page)
    with open_lab_for(archive, trial, site, observation) as (lab, addresses):
        if lab.reading.problems:
            return
        nginx = site.scratch / "nginx"
        with replayed(trial, site, archive, addresses, lab, nginx) as server:
            lab.prepare(len(archive.hosts))
            with lab.watched() as read_again:
                _execute(trial, site, archive, lab, observation)
                observation["lab"] = asdict(read_again())
            if trial.condition_as(LabCommand).web_server != "nginx":
                observation["server_program"] = str(Path(f"/proc/{server}/exe").readlink())
        # The server has ended: its log is complete.
        stack = read_stack(nginx, trial.condition_as(LabCommand))
        replay = read_replay(nginx, archive.served)
        observation["replay"] = asdict(replace(replay, quic="" if stack is None else stack.text))


def _execute(
    trial: Trial, site: Site, archive: Archive, lab: Lab, observation: dict[str, object]
) -> None:
    spec, topology = trial.condition_as(LabCommand), lab.topology
    ends = {"client": topology.client, "server": topology.server}
    here, there = ends.get(spec.at), ends["client" if spec.at == "server" else "server"]
    order = order_of(trial, site, archive, topology.client.name, ROOT)
    kept = order.scratch / "out"
    kept.mkdir()
    values = load_values(order, kept)
    ip = spec.link.ip
    values |= {"client": addresses_in(ip, CLIENT_ADDRESS)[0]}
    values |= {"server": addresses_in(ip, SERVER_ADDRESS)[0], "tag": site.tag}
    pcap = site.scratch / CAPTURE_FILE
    peer_words = fill_words(split_words(spec.peer), values) if spec.peer else ()
    began = None if site.aligned else read_sample()
    try:
        with (
            capture(
                ends["client"],
                "c0",
                pcap,
                site.scratch / "tcpdump.log",
                CAPTURED_MOST,
                snap_bytes(spec, tls=order.opening.keys),
            ),
            _peer(site.bundle, there, order, peer_words) if peer_words else nullcontext() as peer,
        ):
            before = {end: read_counters(namespace) for end, namespace in ends.items()}
            words = fill_words(split_words(spec.command), values)
            order = _timed(trial, site, order, here)
            lab.begin_traces(trial.seed, order.load_ns)
            with accompanied(spec, lab, order, site.scratch) as met:
                status, began_at, duration_ms = _run(site, order, words)
            peer_status = None if peer is None else peer.poll()
            # The last FINs and ACKs belong to the trial.
            time.sleep(lab.settle_s)
            after = {end: read_counters(namespace) for end, namespace in ends.items()}
    finally:
        keep_files(kept, order.out)
        for file in (*sorted(site.scratch.glob("*.pcap")), *sorted(order.out.iterdir())):
            if file.is_file() and not file.is_symlink():
                shutil.copyfile(file, site.out / file.name)
    printed, said = ((site.out / name).stat().st_size for name in (OUTPUT_FILE, ERROR_FILE))
    observation["executed"] = asdict(Executed(status, duration_ms, printed, said, peer_status))
    observation |= {"neighbours": [asdict(told) for told in met.told], "load_ns": met.load_ns}
    observation |= {"began_ns": began_at, "problems": tuple(met.problems)}
    observation["counters"] = {end: difference(before[end], after[end]) for end in ends}
    if began is not None:
        observation["machine"] = describe_machine(began, read_sample()) | link_numbers(lab)


def _timed(trial: Trial, site: Site, order: LoadOrder, namespace: Namespace | None) -> LoadOrder:
    """Return ``order`` with the words that start the command, in virtual time at a round instant.

    What runs outside of the lab's hosts begins at once.
    """
    if site.aligned:
        begin_stage()
    if namespace is None:
        return replace(order, prefix=())
    if not site.aligned:
        return replace(
            order, prefix=start_argv(site.bundle, namespace.name, ROOT, None, order.began)
        )
    neighbours = parse_traffic(trial.condition_as(LabCommand).traffic)
    lead = lead_s(neighbours) if neighbours else None
    at_ns = choose_moments(trial, None, lead).launch_ns
    if lead is None:
        prefix = start_argv(site.bundle, namespace.name, ROOT, at_ns, order.began)
    else:
        prefix = start_beside(site, namespace.name, ROOT, at_ns, lead, order.began)
    return replace(order, prefix=prefix, load_ns=at_ns)


def _run(site: Site, order: LoadOrder, words: tuple[str, ...]) -> tuple[int, int, float]:
    """Run ``words``; return their exit status, when they began in ns, and for how long in ms.

    Raises:
        LoadTimeoutError: they did not end in time.
        LoadError: they could not be started.
    """
    log = site.out / ERROR_FILE  # there, too, when a guest that never ends is killed
    start_ns = time.time_ns()
    status = run_logged(
        (*order.prefix, *words),
        log=log,
        env=client_environment(order),
        cwd=order.scratch,
        timeout_s=order.timeout_s,
        good=range(256),
        output=site.out / OUTPUT_FILE,
    )
    ended_ns, start_ns = time.time_ns(), began_ns(order, start_ns)
    said = read_tail(log)
    if status == NOT_STARTED and said.startswith("start: "):
        raise LoadError(f"`{' '.join(words)}` could not be started: {said}")
    return status, start_ns, (ended_ns - start_ns) / 1e6


@contextmanager
def _peer(
    bundle: Path, namespace: Namespace, order: LoadOrder, words: tuple[str, ...]
) -> Iterator[proc.Process]:
    """Run ``words`` in ``namespace`` for the time of the block, from when they listen there.

    What listens on no socket is given ``PEER_READY_S``.

    Raises:
        LabError: they ended before that, with another status than 0.
    """
    log = order.out / PEER_FILE
    argv = (*start_argv(bundle, namespace.name, ROOT), *words)
    before = _listeners(namespace)
    with (
        log.open("wb") as output,
        proc.started(
            argv, env=client_environment(order), cwd=order.scratch, stdout=output, stderr=output
        ) as child,
    ):
        deadline = time.monotonic() + PEER_READY_S
        while _listeners(namespace) <= before and time.monotonic() < deadline:
            if child.poll():
                raise LabError(
                    f"`{' '.join(words)}` ended with status {child.returncode} before the command "
                    f"began: {read_tail(log)}"
                )
            time.sleep(PEER_POLL_S)
        yield child


def _listeners(namespace: Namespace) -> set[str]:
    """Return the sockets of ``namespace`` that wait for others, as lines of /proc/net."""
    sockets: set[str] = set()
    with namespace.entered():
        for name in ("tcp", "tcp6", "udp", "udp6"):
            table = Path("/proc/thread-self/net") / name
            lines = table.read_text().splitlines()[1:] if table.exists() else []
            rows = (line.split() for line in lines)
            sockets |= {f"{name} {row[1]} {row[9]}" for row in rows if row[3] in LISTENING}
    return sockets
