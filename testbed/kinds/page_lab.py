"""Lab of a page: its wires and hosts, the servers that replay it, and the order of what runs there.

Page loads have it, and whatever else runs beside a page's servers.  Standard library only: this is
what a guest executes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from testbed.archive.reading import Archive, read_archive, tls_of
from testbed.client import CLIENTS
from testbed.client.interface import ClientPlace, EarlyClient, LoadOrder
from testbed.kinds.workspace import EarlyStart, Site, open_lab_of
from testbed.lab.alignment import (
    RESTART_NS,
    Moments,
    begin_stage,
    choose_moments,
    draw_secrets,
    forget,
    forget_by,
    idle,
    next_launch,
)
from testbed.lab.laboratory import Lab
from testbed.lab.topology import RESOLVER_ADDRESS, addresses_in, lay_topology, origin_address
from testbed.model import (
    SERVER_LOG_FILE,
    Condition,
    Ip,
    Opening,
    Randomness,
    Trial,
)
from testbed.model.command import CLIENT as COMMAND
from testbed.model.device import DEVICES
from testbed.model.traffic import lead_s, parse_traffic
from testbed.server.choice import VISITS
from testbed.server.listeners import lab_listeners
from testbed.server.nginx import ERROR_LOG, PROGRAMS, Handshakes, ServerOptions, serve
from testbed.server.quic import serve_quic
from testbed.server.resolver import Addresses, name_files, resolve
from testbed.server.think import think_of

COMPLAINTS = ("[error]", "[crit]", "[alert]", "[emerg]", "Traceback")
# A client handles what pages send: it has no privileges, and a browser then has its sandbox.
CLIENT_USER = 1000
START = Path("native") / "start"
SETTLE_S = 60.0
"""After which a browser does nothing more at its empty page."""


@contextmanager
def begun_early(opening: Opening, site: Site) -> Iterator[Site]:
    """Do what needs the client's opening alone: lay the wires, and start it if it can be.

    This is for virtual time.  The undo ends it.

    Raises:
        TestbedError, OSError: it cannot be done.
    """
    begin_stage()
    draw_secrets()
    client, ip = CLIENTS[opening.client], opening.ip
    with (
        lay_topology(site.tag, ip=ip) as topology,
        name_files(topology.client, resolver_address(ip)),
    ):
        there = replace(site, topology=topology)
        if not isinstance(client, EarlyClient):
            yield there
            return
        launch_ns = next_launch()
        prefix = start_argv(site.bundle, topology.client.name, CLIENT_USER, launch_ns)
        folders = make_folders(site.scratch)
        seat = ClientPlace(prefix, site.bundle, *folders, CLIENT_USER, opening=opening)
        with client.started(seat) as started:
            time.sleep(SETTLE_S)
            yield replace(there, early=EarlyStart(started, launch_ns))


def resolver_address(ip: Ip) -> str:
    """Return the address of the lab's name server: of IPv4, if there is one."""
    return addresses_in(ip, RESOLVER_ADDRESS)[0]


@contextmanager
def open_lab_for(
    archive: Archive, trial: Trial, site: Site, observation: dict[str, object]
) -> Iterator[tuple[Lab, Addresses]]:
    """Open the lab of a page; yield it, and the addresses of each of the page's hosts.

    What the lab measured of itself is in ``observation`` by then, its problems too.
    """
    ip = trial.linked.link.ip
    hosts = (*archive.hosts, *archive.unserved)
    addresses = {h: addresses_in(ip, origin_address(i)) for i, h in enumerate(hosts)}
    if site.aligned:
        begin_stage()
        if site.topology is None:
            draw_secrets()
    observation["archive"] = {"name": archive.name, "digest": archive.digest}
    observation["hosts"] = {address: host for host, of in addresses.items() for address in of}
    neighbours = parse_traffic(trial.condition_as(Condition).traffic)
    with open_lab_of(trial, len(addresses), site, neighbours=neighbours) as lab:
        observation["lab"] = asdict(lab.reading)
        yield lab, addresses


@contextmanager
def replayed(
    trial: Trial,
    site: Site,
    archive: Archive,
    addresses: Addresses,
    lab: Lab,
    nginx: Path,
) -> Iterator[int]:
    """Serve the page in the lab, names included; yield the process that serves.

    ``nginx`` is the server's folder, which is made.  What it complained about is kept.
    """
    condition, topology = trial.condition_as(Condition), lab.topology
    name_server = resolver_address(condition.link.ip)
    listeners = lab_listeners(archive, addresses, condition.protocol)
    ends = topology.client, topology.server
    others = any(each.fails == "unresolved" for each in archive.failures)
    named = nullcontext() if site.topology else name_files(topology.client, name_server)
    try:
        with (
            named,
            _serving(trial, site)(topology.server, archive, listeners, nginx) as server,
            resolve(*ends, addresses, name_server, condition.dns, site.scratch, others),
        ):
            yield server
    finally:
        _keep_complaints(nginx / ERROR_LOG, site.out / SERVER_LOG_FILE)


def _serving(trial: Trial, site: Site) -> Callable[..., AbstractContextManager[int]]:
    """Return what starts the server of the page, by its namespace, page, listeners and folder."""
    condition, options = trial.condition_as(Condition), server_options(trial, site)
    if condition.web_server == "aioquic":
        return partial(serve_quic, options=options, quic=condition.quic)
    return partial(serve, terms=options)


def server_options(trial: Trial, site: Site) -> ServerOptions:
    """Return how a server of the page answers."""
    condition = trial.condition_as(Condition)
    return ServerOptions(
        condition.tcp.requests_per_connection,
        Handshakes(
            condition.tls_version,
            condition.tls_resumption,
            condition.early_data,
            condition.key_share,
            condition.early_data_at,
            condition.certificates,
        ),
        tls_of(site.page),
        think=think_of(condition, trial.seed, lambda: read_archive(site.page)),
        program=PROGRAMS[condition.web_server],
        validates=condition.visits > 1,
        at_once=condition.push_times == "at-once",
    )


def order_of(trial: Trial, site: Site, archive: Archive, namespace: str, user: int) -> LoadOrder:
    """Return the order of what runs in ``namespace`` as ``user``; its folders are made."""
    scratch, out = make_folders(site.scratch)
    condition, tls = trial.condition_as(Condition), tls_of(site.page)
    launched_ns = None if site.early is None else site.early.launched_ns
    neighbours = parse_traffic(condition.traffic)
    lead = lead_s(neighbours) if neighbours else None
    moments = choose_moments(trial, launched_ns, lead) if site.aligned else None
    launch_ns = None if moments is None else moments.launch_ns
    began = site.scratch / "began" if condition.client == COMMAND else None
    order = LoadOrder(
        archive=archive,
        prefix=start_argv(site.bundle, namespace, user, launch_ns, began),
        tfo=condition.tcp.tfo,
        think_time=condition.think_time,
        bundle=site.bundle,
        scratch=scratch,
        out=out,
        timeout_s=trial.timeout_s,
        user=user,
        wait_until_ns=None if moments is None else moments.load_ns,
        tls=tls,
        tls_version=condition.tls_version,
        protocol=condition.protocol,
        pinned=_pins(condition.randomness, archive.pinned),
        think_spread_pct=condition.think_spread_pct,
        seed=trial.seed,
        command=condition.command,
        began=began,
        restart=forget if site.aligned else None,
        opening=replace(trial.opening, keys=tls is not None),
        resumption=condition.tls_resumption,
        preconnect_pct=condition.preconnect_pct,
        visits=condition.visits,
        keep_cache=condition.between == "keep",
        idle=partial(_between_visits, site, condition.idle_s),
        film=condition.film,
        device=DEVICES.get(condition.device, archive.device),
        blocked=archive.list_blocked(condition.block),
    )
    if lead is None or moments is None:
        return order
    if condition.client == COMMAND:  # which starts with its process
        start_ns = moments.launch_ns
        prefix = start_beside(site, namespace, user, start_ns, lead, began)
        return replace(order, prefix=prefix, load_ns=start_ns)
    return _with_neighbours(order, condition.client, moments, lead)


def _between_visits(site: Site, idle_s: float) -> None:
    """Wait between two visits, and have the server know that one has ended."""
    (idle if site.aligned else time.sleep)(idle_s)
    with (site.scratch / "nginx" / VISITS).open("ab") as file:
        file.write(b"\n")


def _with_neighbours(order: LoadOrder, client: str, moments: Moments, lead: float) -> LoadOrder:
    """Return ``order`` for a load that neighbours precede by ``lead`` seconds at the most.

    A client that was started early has the guest started anew before the first of them begins.
    """
    if not isinstance(CLIENTS[client], EarlyClient):
        return replace(order, load_ns=moments.load_ns)
    return replace(
        order,
        wait_until_ns=moments.load_ns - RESTART_NS - round(lead * 1e9),
        restart=partial(forget_by, moments.load_ns),
        load_ns=moments.load_ns,
    )


def make_folders(scratch: Path) -> tuple[Path, Path]:
    """Return a client's folders, its own and that of what it leaves; they are there then."""
    folders = scratch / "client", scratch / "client-out"
    for folder in folders:
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
    return folders


def start_argv(
    bundle: Path,
    namespace: str,
    user: int,
    at_ns: int | None = None,
    began: Path | None = None,
    begin_ns: int | None = None,
) -> tuple[str, ...]:
    """Return the command that starts the words after it as ``user`` (native/start.c).

    ``at_ns`` is the round instant of virtual time at which it does; ``None``: at once.  ``began``
    is the file in which it notes when.  ``begin_ns`` is a later moment to wait for.
    """
    options = {"at-ns": at_ns, "began": began, "begin-ns": begin_ns}
    given = (f"{name}={value}" for name, value in options.items() if value is not None)
    return (str(bundle / START), f"namespace={namespace}", f"user={user}", *given, "--")


def start_beside(
    site: Site, namespace: str, user: int, load_ns: int, lead_s: float, began: Path | None
) -> tuple[str, ...]:
    """Return ``start_argv`` for ``load_ns``, where neighbours begin ``lead_s`` before.

    Before the first of them does the guest is started anew, and not in the midst of them: that
    would move their packets.
    """
    anew_ns = load_ns - RESTART_NS - round(lead_s * 1e9)
    return start_argv(site.bundle, namespace, user, anew_ns, began, load_ns)


def _pins(randomness: Randomness, recorded: bool) -> bool:
    """Return whether scripts get pinned clocks and random numbers."""
    return recorded if randomness == "as-recorded" else randomness == "pinned"


def _keep_complaints(log: Path, kept: Path) -> None:
    said = log.read_text(errors="replace") if log.is_file() else ""
    if any(level in said for level in COMPLAINTS):
        kept.write_text(said)
