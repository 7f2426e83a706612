"""TCP knobs, set in the client's and the server's namespace and read back from the kernel.

Sources: ip-sysctl (kernel documentation), RFC 7413 (Fast Open), RFC 6928 (initial window),
ip-route(8) for ``initcwnd`` and ``congctl``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType

from testbed.base.errors import MissingError
from testbed.lab import congestion
from testbed.lab.congestion import Pinned
from testbed.lab.interfaces import set_route
from testbed.lab.readback import ENDS, State
from testbed.lab.rtnetlink import open_control
from testbed.lab.sysctls import FASTOPEN_KEY, describe_sysctls, judge_sysctls, pin_sysctls
from testbed.lab.topology import ROUTES, Topology
from testbed.model import TcpSpec

# tcp_fastopen bits: 1 client, 2 server, 4 client without cookie, 0x200 server without cookie.
FASTOPEN_WITH_COOKIES = 3
FASTOPEN_COOKIE_NOT_REQUIRED = 519

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


def fastopen_value(spec: TcpSpec) -> int:
    """The ``net.ipv4.tcp_fastopen`` value for both ends."""
    if not spec.tfo:
        return 0
    if spec.cookies == "not-required":
        return FASTOPEN_COOKIE_NOT_REQUIRED
    return FASTOPEN_WITH_COOKIES


def fastopen_key(purpose: str) -> str:
    """A fixed Fast Open key in the sysctl's format, a different one for each purpose."""
    text = hashlib.sha256(f"fastopen key: {purpose}".encode()).hexdigest()[:32]
    return "-".join(text[i : i + 8] for i in range(0, 32, 8))


def wanted_sysctls(spec: TcpSpec) -> dict[str, str]:
    """Every sysctl that is not at its default at both ends, but that of the congestion control."""
    return {**PINNED, "net.ipv4.tcp_fastopen": str(fastopen_value(spec))}


def set_knobs(topology: Topology, spec: TcpSpec, own: Mapping[str, Sysctls] = NOTHING) -> Pinned:
    """Set all knobs at both ends; returns how the congestion control was.

    ``own`` has further sysctls, of one end, by its role.

    Raises:
        MissingError: the kernel refuses a value (a congestion control that it does not have).
    """
    try:
        for role in ENDS:
            pin_sysctls(topology.role(role), wanted_sysctls(spec) | own.get(role, {}))
    except OSError as error:
        raise MissingError(f"this kernel does not have what the trial asks for: {error}") from error
    pinned = congestion.choose(topology, spec.congestion_control)
    topology.server.write_sysctls({FASTOPEN_KEY: fastopen_key("first")})
    by_route = spec.congestion_control if pinned == "route" else None
    windows = {"server": spec.initcwnd_segments} | ({"client": None} if by_route else {})
    for role, window in windows.items():
        with topology.role(role).entered(), open_control() as control:
            for destination, gateway in ROUTES[role].items():
                set_route(
                    control,
                    destination,
                    gateway,
                    initcwnd_segments=window,
                    congestion_control=by_route,
                )
    return pinned


def route_metrics(spec: TcpSpec, pinned: Pinned) -> dict[str, str]:
    """What the default routes of the ends say beyond their gateways, by role (ip-route(8))."""
    by_route = f"congctl {spec.congestion_control}" if pinned == "route" else ""
    server = f"initcwnd {spec.initcwnd_segments} {by_route}".rstrip()
    return {"server": server} | ({"client": by_route} if by_route else {})


def rotate_key(topology: Topology) -> None:
    """Give the server another Fast Open key: every cookie that clients hold becomes stale."""
    topology.server.write_sysctls({FASTOPEN_KEY: fastopen_key("rotated")})


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
        found, wanted = state.sysctls[role], wanted_sysctls(spec) | own.get(role, {})
        values |= {f"{role}.{name}": found[name] for name in wanted if name in found}
        values[f"{role}.sysctls"] = describe_sysctls(found)
        errors += [f"{role}: {error}" for error in judge_sysctls(found, wanted)]
    if connection is None:
        client, server = (state.sysctls[role][congestion.SYSCTL] for role in ENDS)
        connection = (client, server)
    values |= {
        f"{role}.{congestion.SYSCTL}": name for role, name in zip(ENDS, connection, strict=True)
    }
    errors += judge_connection(connection, spec)
    default = state.table.get("server: route default", "").split()
    window = dict(pairwise(default)).get("initcwnd")
    values["server.initcwnd_segments"] = str(window)
    return values, tuple(errors)


def judge_connection(algorithms: tuple[str, str], spec: TcpSpec) -> Iterator[str]:
    """A sentence for each end, client and server, with another congestion control than asked."""
    for role, algorithm in zip(ENDS, algorithms, strict=True):
        if algorithm != spec.congestion_control:
            yield (
                f"{role}: {congestion.SYSCTL} is {algorithm!r}, "
                f"asked was {spec.congestion_control!r}"
            )


def judge_key(state: State, spec: TcpSpec) -> Iterator[str]:
    """A sentence if the server's Fast Open key is not that of primed cookies, or of stale ones."""
    purpose = "rotated" if spec.tfo and spec.cookies == "cold" else "first"
    if state.sysctls["server"].get(FASTOPEN_KEY) != fastopen_key(purpose):
        yield f"server: {FASTOPEN_KEY} is not the {purpose} key"
