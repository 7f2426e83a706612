"""Second load of the page, by a neighbour: its own client and server, behind the same line.

Its hosts have a kernel's defaults of TCP, whatever is asked of the first client's.  Standard
library only: this is what a guest executes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Thread

from testbed.archive.reading import Archive
from testbed.base.errors import TestbedError
from testbed.client.graph import Graph
from testbed.client.interface import LoadOrder
from testbed.client.page_coverage import judge_coverage
from testbed.kinds.page_lab import CLIENT_USER, make_folders, server_options, start_argv
from testbed.kinds.page_load.measurement import SecondLoad
from testbed.kinds.workspace import Site
from testbed.lab.laboratory import Lab
from testbed.lab.neighbour_hosts import REMOTE_RESOLVER, remote_address
from testbed.model import NO_OPENING, Condition, PageLoad, Trial
from testbed.model.traffic import parse_traffic, second_page
from testbed.server.lengths import check_lengths, list_connections
from testbed.server.listeners import lab_listeners
from testbed.server.nginx import NGINX, Handshakes, ServerOptions, serve
from testbed.server.replay_log import read_answered, read_replay
from testbed.server.resolver import name_files, resolve

FOLDER = "second"


@dataclass(slots=True)
class Loading:
    """A second load under way: what it came to is there when the block has ended."""

    load: PageLoad | None = None
    problems: list[str] = field(default_factory=list)

    def read(self, site: Site, archive: Archive) -> SecondLoad | None:
        """Return it with its server's account, after that has ended; problems are noted."""
        if self.load is None:
            return None
        nginx = site.scratch / FOLDER / "nginx"
        replay = read_replay(nginx, archive.served)
        answered = read_answered(nginx, archive.served)
        reason = judge_coverage(self.load, replay, archive.recorded, allow_misses=False)
        self.problems += check_lengths(answered, self.load)
        self.problems += [] if reason is None else [reason]
        return SecondLoad(self.load, replay, tuple(list_connections(answered)))


@contextmanager
def served_again(trial: Trial, site: Site, archive: Archive, lab: Lab) -> Iterator[None]:
    """Serve the page at the neighbours' remote end, if one of them is to load it."""
    condition, topology = trial.condition_as(Condition), lab.topology
    if second_page(parse_traffic(condition.traffic)) is None:
        yield
        return
    folder = site.scratch / FOLDER
    folder.mkdir()
    addresses = {host: (remote_address(number),) for number, host in enumerate(archive.hosts)}
    listeners = lab_listeners(archive, addresses, "h1")
    ends = topology.role("neighbour"), topology.role("remote")
    with (
        name_files(ends[0], REMOTE_RESOLVER),
        serve(ends[1], archive, listeners, folder / "nginx", _server_options(trial, site)),
        resolve(*ends, addresses, REMOTE_RESOLVER, condition.dns, folder),
    ):
        yield


def _server_options(trial: Trial, site: Site) -> ServerOptions:
    """Return how the neighbour's server answers: sessions are opened as without any knob."""
    handshakes = Handshakes(trial.condition_as(Condition).tls_version)
    return replace(server_options(trial, site), handshakes=handshakes, program=NGINX)


@contextmanager
def loaded_again(condition: Condition, site: Site, lab: Lab, order: LoadOrder) -> Iterator[Loading]:
    """Load the page a second time at its time, if a neighbour is to; the undo waits for its end.

    ``order`` is that of the first load.
    """
    loading, neighbour = Loading(), second_page(parse_traffic(condition.traffic))
    if neighbour is None or order.load_ns is None:
        yield loading
        return
    scratch, out = make_folders(site.scratch / FOLDER)
    second = replace(
        order,
        prefix=start_argv(site.bundle, lab.topology.role("neighbour").name, CLIENT_USER),
        scratch=scratch,
        out=out,
        tfo=False,
        protocol="h1",
        opening=NO_OPENING,
        resumption=False,
        wait_until_ns=order.load_ns + round(neighbour.from_s * 1e9),
        restart=None,
        user=CLIENT_USER,
    )
    thread = Thread(target=_load, args=(loading, second), daemon=True)
    thread.start()
    try:
        yield loading
    finally:
        thread.join()  # a client has a time-out


def _load(loading: Loading, order: LoadOrder) -> None:
    try:
        loading.load = Graph().load(order)
    except (TestbedError, OSError) as error:
        loading.problems.append(str(error))
