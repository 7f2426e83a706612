"""Connection management of a load: the server's mechanisms and queues, and the clients' sysctls."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.base.errors import MissingError
from testbed.lab.laboratory import Lab
from testbed.lab.sysctls import DEFAULTS, IPV4
from wings.server_loads.mechanisms.apply import Applied, apply_management
from wings.server_loads.mechanisms.mechanism import MECHANISMS, Queues
from wings.server_loads.spec import ArrivalSpec, ServerSpec

DEVICE = "s0"
LINEAR = "net.ipv4.tcp_syn_linear_timeouts"
FIRST_TIMEOUT = "net.ipv4.tcp_rto_init_ms"
USUAL_MS = 1000
"""Of kernels since 3.1, which need not be told."""


def queues_of(server: ServerSpec) -> Queues:
    """Return the queues of ``server``'s socket."""
    return Queues(
        syn=server.syn_backlog,
        accept=server.listen_backlog,
        syncookies=server.syncookies,
        young=server.admission == "linux-2.4",
    )


@contextmanager
def managing(lab: Lab, server: ServerSpec, port: int, program: Path | None) -> Iterator[Applied]:
    """Have the server's kernel manage connections as ``server`` asks; start the server afterwards.

    ``program`` is the compiled BPF program, for where the kernel itself cannot do it.

    Raises:
        MissingError: this kernel cannot do it, with what it lacks.
        LabError: a sysctl did not take its value.
    """
    there, management = lab.topology.server, MECHANISMS[server.mechanism]
    with apply_management(there, DEVICE, port, management, queues_of(server), program) as applied:
        yield applied


def load_sysctls(arrivals: ArrivalSpec) -> dict[str, dict[str, str]]:
    """Return what the namespaces of both ends have beyond TCP's own knobs.

    Raises:
        MissingError: this kernel cannot wait so long for the answer to a SYN.
    """
    ms = round(arrivals.syn_timeout_s * 1000)
    timer = {} if ms == USUAL_MS else {FIRST_TIMEOUT: str(ms)}
    if timer and not (IPV4 / FIRST_TIMEOUT.rpartition(".")[2]).exists():
        raise MissingError(
            f"this kernel ({os.uname().release}) has no {FIRST_TIMEOUT}; use the virtual kernel "
            "7.3, or set syn_timeout_s = 1"
        )
    return {"client": timer | _client_sysctls(arrivals), "server": timer}


def _client_sysctls(arrivals: ArrivalSpec) -> dict[str, str]:
    linear = str(arrivals.syn_linear_timeouts)
    # A kernel without this sysctl sends none of them: there is nothing to write.
    known = (IPV4 / LINEAR.rpartition(".")[2]).exists()
    return {
        **({LINEAR: linear} if known and linear != DEFAULTS[LINEAR] else {}),
        **own_sysctls(arrivals),
    }


def own_sysctls(arrivals: ArrivalSpec) -> dict[str, str]:
    """Return those that every kernel has."""
    return {
        # As many connections as one address can have, and a port is free again a second after its
        # connection has ended.
        "net.ipv4.ip_local_port_range": "1024 65535",
        "net.ipv4.tcp_tw_reuse": "1",
        "net.ipv4.tcp_syn_retries": str(arrivals.syn_retries),
    }
