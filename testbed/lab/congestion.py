"""Congestion control at both ends: by sysctl, or by route where the kernel refuses that.

A namespace may only choose what the host allows (``tcp_allowed_congestion_control``), and that is
the host's to say; the attribute ``congctl`` of a route needs no leave (ip-route(8)).  Nothing is
chosen that is not there already: asking for it would load a module.
"""

from __future__ import annotations

import socket
from typing import Literal

from testbed.base.addresses import family_of
from testbed.base.errors import LabError, MissingError
from testbed.base.namespace import Namespace
from testbed.lab.topology import CLIENT_ADDRESS, SERVER_ADDRESS, Topology, addresses_in

SYSCTL = "net.ipv4.tcp_congestion_control"
AVAILABLE = "net.ipv4.tcp_available_congestion_control"
CONNECT_S = 10.0
Pinned = Literal["sysctl", "route"]


def choose(topology: Topology, algorithm: str) -> Pinned:
    """Set the sysctl at both ends, or find that it has to be done by route.

    Raises:
        MissingError: the kernel does not have the algorithm.
    """
    ends = (topology.client, topology.server)
    for end in ends:
        require(end, algorithm)
    try:
        for end in ends:
            end.write_sysctls({SYSCTL: algorithm})
    except PermissionError:
        return "route"
    return "sysctl"


def require(end: Namespace, algorithm: str) -> None:
    """Find that the kernel has ``algorithm``.

    Raises:
        MissingError: it does not.
    """
    available = end.read_sysctl(AVAILABLE).split()
    if algorithm not in available:
        raise MissingError(
            f"this kernel does not have congestion control {algorithm!r}, only "
            f"{', '.join(available)}; it needs CONFIG_TCP_CONG_{algorithm.upper()}, or its module: "
            f"`modprobe tcp_{algorithm}`"
        )


def read_connection(topology: Topology) -> tuple[str, str]:
    """The algorithm that a real connection has at the client and at the server.

    Raises:
        LabError: there is no connection over the link.
    """
    here, there = (
        addresses_in(topology.plan.ip, each)[0] for each in (CLIENT_ADDRESS, SERVER_ADDRESS)
    )
    with topology.server.entered():
        listener = socket.create_server((there, 0), family=family_of(there))
    with topology.client.entered():
        client = socket.socket(family_of(here), socket.SOCK_STREAM)
    with listener, client:
        listener.settimeout(CONNECT_S)
        client.settimeout(CONNECT_S)
        try:
            client.connect(listener.getsockname()[:2])
            server, _ = listener.accept()
        except OSError as error:
            raise LabError(f"no connection from {here} to {there}: {error}") from error
        with server:
            return _algorithm_of(client), _algorithm_of(server)


def _algorithm_of(connection: socket.socket) -> str:
    name = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return name.rstrip(b"\0").decode()
