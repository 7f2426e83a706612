"""TCP knobs, set in the client's and the server's namespace and read back from the kernel.

Sources: ip-sysctl (kernel documentation), RFC 6928 (initial window), ip-route(8) for
``initcwnd``, ``congctl`` and the other attributes of routes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType

from testbed.base.errors import MissingError
from testbed.lab import congestion
from testbed.lab.congestion import Pinned
from testbed.lab.interfaces import set_route
from testbed.lab.readback import ENDS, State
from testbed.lab.routes import describe_metrics, encode_metrics
from testbed.lab.rtnetlink import open_control
from testbed.lab.sysctls import (
    describe_sysctls,
    judge_sysctls,
    pin_sysctls,
    set_sysctls,
)
from testbed.lab.topology import Topology
from testbed.model import TcpSpec
from testbed.model.settings import CONGCTL, of_end, sysctl_path

Sysctls = dict[str, str]
NOTHING: Mapping[str, Sysctls] = MappingProxyType({})
# Pinned, because their defaults follow the machine's memory, and the window scale follows them.
PINNED = {
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
    # A trial starts from what the knobs say, not from what earlier connections learned.
    "net.ipv4.tcp_no_metrics_save": "1",
    # One lost SYN with data must not switch Fast Open off for the rest of the trial.
    "net.ipv4.tcp_fastopen_blackhole_timeout_sec": "0",
}


def asked_sysctls(spec: TcpSpec, role: str) -> dict[str, str]:
    """The sysctls that are asked of an end by their names, by their full names."""
    return {sysctl_path(name): str(value) for name, value in of_end(spec.sysctl, role).items()}


def asked_names(spec: TcpSpec) -> frozenset[str]:
    """The full names of all sysctls that are asked of an end by their names."""
    return frozenset(name for role in ENDS for name in asked_sysctls(spec, role))


def set_knobs(topology: Topology, spec: TcpSpec, own: Mapping[str, Sysctls] = NOTHING) -> Pinned:
    """Set all knobs at both ends; returns how the congestion control was.

    ``own`` has further sysctls, of one end, by its role.

    Raises:
        MissingError: the kernel refuses a value (a congestion control that it does not have), or
            has no such sysctl.
    """
    try:
        for role in ENDS:
            pin_sysctls(topology.role(role), PINNED | own.get(role, {}))
    except OSError as error:
        raise MissingError(f"this kernel does not have what the trial asks for: {error}") from error
    problems = [problem for role in ENDS for problem in _set_asked(role, topology, spec)]
    if problems:
        raise MissingError("; ".join(problems))
    pinned = congestion.choose(topology, spec.congestion_control)
    for role in reversed(ENDS):
        metrics = encode_metrics(_metrics_of(spec, role, pinned))
        if metrics:
            with topology.role(role).entered(), open_control() as control:
                for destination, gateway in topology.plan.routes_of(role).items():
                    set_route(control, destination, gateway, metrics=metrics)
    return pinned


def _set_asked(role: str, topology: Topology, spec: TcpSpec) -> Iterator[str]:
    """Set an end's sysctls by name; a sentence for each that does not go, and for its congctl."""
    end = topology.role(role)
    yield from set_sysctls(role, end, asked_sysctls(spec, role))
    if CONGCTL in of_end(spec.route, role):
        try:
            congestion.require(end, spec.algorithm_of(role))
        except MissingError as error:
            yield f"{role}: {error}"


def _metrics_of(spec: TcpSpec, role: str, pinned: Pinned) -> dict[str, int | str]:
    """The attributes of an end's default route (ip-route(8))."""
    window = {"initcwnd": spec.initcwnd_segments} if role == "server" else {}
    by_route = {CONGCTL: spec.congestion_control} if pinned == "route" else {}
    return {**window, **by_route, **of_end(spec.route, role)}


def route_metrics(spec: TcpSpec, pinned: Pinned) -> dict[str, str]:
    """What the default routes of the ends say beyond their gateways, by role (ip-route(8))."""
    told = {role: describe_metrics(_metrics_of(spec, role, pinned)) for role in ENDS}
    return {role: text for role, text in told.items() if text}


def read_knobs(
    state: State,
    spec: TcpSpec,
    connection: tuple[str, str] | None = None,
    own: Mapping[str, Sysctls] = NOTHING,
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Hold every knob against what the kernel has.

    Args:
        state: what was read back of the lab.
        spec: what was asked.
        connection: the congestion control of a connection's client and server, where there was
            one; a sysctl does not tell of routes.
        own: sysctls that were asked of one end only, by its role.

    Returns:
        The values as the kernel has them, and a sentence for each that is not as asked.
    """
    values: dict[str, str] = {}
    errors: list[str] = []
    for role in ENDS:
        sysctls = state.sysctls[role]
        wanted = PINNED | own.get(role, {}) | asked_sysctls(spec, role)
        values |= {f"{role}.{name}": sysctls[name] for name in wanted if name in sysctls}
        values[f"{role}.sysctls"] = describe_sysctls(sysctls)
        errors += [f"{role}: {error}" for error in judge_sysctls(sysctls, wanted)]
        if of_end(spec.route, role):
            values[f"{role}.route"] = _default_route(state, role) or "none"
    if connection is None:
        client, server = (
            _read_metrics(state, role).get(CONGCTL, state.sysctls[role][congestion.SYSCTL])
            for role in ENDS
        )
        connection = (client, server)
    values |= {
        f"{role}.{congestion.SYSCTL}": name for role, name in zip(ENDS, connection, strict=True)
    }
    errors += judge_connection(connection, spec)
    values["server.initcwnd_segments"] = str(_read_metrics(state, "server").get("initcwnd"))
    return values, tuple(errors)


def _read_metrics(state: State, role: str) -> dict[str, str]:
    """The words of an end's default route, each with the one after it."""
    return dict(pairwise(_default_route(state, role).split()))


def _default_route(state: State, role: str) -> str:
    """An end's default route: of IPv4, if there is one; that of IPv6 has the same attributes."""
    table = state.table
    return table.get(f"{role}: route default") or table.get(f"{role}: route ::/0", "")


def judge_connection(algorithms: tuple[str, str], spec: TcpSpec) -> Iterator[str]:
    """A sentence for each end, client and server, with another congestion control than asked."""
    for role, algorithm in zip(ENDS, algorithms, strict=True):
        wanted = spec.algorithm_of(role)
        if algorithm != wanted:
            yield f"{role}: {congestion.SYSCTL} is {algorithm!r}, asked was {wanted!r}"
