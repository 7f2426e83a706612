"""TCP knobs, set in the client's and the server's namespace and read back from the kernel.

Sources: ip-sysctl (kernel documentation), RFC 7413 (Fast Open), RFC 6928 (initial window),
ip-route(8) for ``initcwnd`` and ``congctl``.
"""

from __future__ import annotations

import hashlib
import json

from testbed import proc
from testbed.errors import MissingError
from testbed.lab import congestion
from testbed.lab.congestion import Pinned
from testbed.lab.topology import Topology
from testbed.model import TcpSpec

# tcp_fastopen bits: 1 client, 2 server, 4 client without cookie, 0x200 server without cookie.
FASTOPEN_WITH_COOKIES = 3
FASTOPEN_COOKIE_NOT_REQUIRED = 519

ENDS = ("client", "server")
CLIENT_ROUTER, SERVER_ROUTER = "10.0.0.1", "10.0.2.1"

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
    """Every sysctl that is set at both ends, but that of the congestion control."""
    return {**PINNED, "net.ipv4.tcp_fastopen": str(fastopen_value(spec))}


def set_knobs(topology: Topology, spec: TcpSpec) -> Pinned:
    """Set all knobs at both ends; returns how the congestion control was.

    Raises:
        MissingError: the kernel refuses a value (a congestion control that it does not have).
    """
    try:
        for end in (topology.client, topology.server):
            end.write_sysctls(wanted_sysctls(spec))
    except OSError as error:
        raise MissingError(f"this kernel does not have what the trial asks for: {error}") from error
    pinned = congestion.choose(topology, spec.congestion_control)
    topology.server.write_sysctls({"net.ipv4.tcp_fastopen_key": fastopen_key("first")})
    by_route = ("congctl", spec.congestion_control) if pinned == "route" else ()
    window = ("initcwnd", str(spec.initcwnd_segments))
    _replace_route(topology.server.name, SERVER_ROUTER, (*window, *by_route))
    if by_route:
        _replace_route(topology.client.name, CLIENT_ROUTER, by_route)
    return pinned


def _replace_route(namespace: str, router: str, metrics: tuple[str, ...]) -> None:
    proc.run(("ip", "-n", namespace, "route", "replace", "default", "via", router, *metrics))


def rotate_key(topology: Topology) -> None:
    """Give the server another Fast Open key: every cookie that clients hold becomes stale."""
    topology.server.write_sysctls({"net.ipv4.tcp_fastopen_key": fastopen_key("rotated")})


def read_knobs(
    topology: Topology, spec: TcpSpec, connection: tuple[str, str] | None = None
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Read every knob back.

    Args:
        topology: the running lab.
        spec: what was asked.
        connection: the congestion control of a connection's client and server, where there was
            one; a sysctl does not tell of routes.

    Returns:
        The values as the kernel has them, and a sentence for each that is not as asked.
    """
    values: dict[str, str] = {}
    errors: list[str] = []
    for role in ENDS:
        for name, wanted in wanted_sysctls(spec).items():
            found = topology.role(role).read_sysctl(name)
            values[f"{role}.{name}"] = found
            if found != wanted:
                errors.append(f"{role}: {name} is {found!r}, asked was {wanted!r}")
    if connection is None:
        connection = (
            topology.client.read_sysctl(congestion.SYSCTL),
            topology.server.read_sysctl(congestion.SYSCTL),
        )
    for role, found in zip(ENDS, connection, strict=True):
        values[f"{role}.{congestion.SYSCTL}"] = found
        if found != spec.congestion_control:
            errors.append(
                f"{role}: {congestion.SYSCTL} is {found!r}, asked was {spec.congestion_control!r}"
            )
    found_window = _read_initcwnd(topology)
    values["server.initcwnd_segments"] = str(found_window)
    if found_window != spec.initcwnd_segments:
        errors.append(
            f"server: initcwnd is {found_window}, asked was {spec.initcwnd_segments} segments"
        )
    return values, tuple(errors)


def _read_initcwnd(topology: Topology) -> int | None:
    argv = ("ip", "-j", "-n", topology.server.name, "route", "show", "default")
    routes = json.loads(proc.run(argv).stdout or "[]")
    for route in routes:
        for metric in route.get("metrics", []):
            if "initcwnd" in metric:
                return int(metric["initcwnd"])
    return None
