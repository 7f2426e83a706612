"""Sysctls of a load beyond TCP's own knobs: ports, retries and timers."""

from __future__ import annotations

import os

from testbed.base.errors import MissingError
from testbed.lab.sysctls import DEFAULTS, IPV4
from wings.server_loads.spec import ArrivalSpec

LINEAR = "net.ipv4.tcp_syn_linear_timeouts"
FIRST_TIMEOUT = "net.ipv4.tcp_rto_init_ms"
USUAL_MS = 1000
"""Of kernels since 3.1, which need not be told."""


def timers_of(arrivals: ArrivalSpec) -> tuple[int, int, int]:
    """Return what the clients' kernel is told: the first timer in ms, linear ones, and doublings.

    Of a list their sockets do the rest.
    """
    times_s = arrivals.syn_timers_s
    if arrivals.syn_timeouts_s:
        return round(times_s[0] * 1000), 0, len(times_s)
    return round(times_s[0] * 1000), arrivals.syn_linear_timeouts, arrivals.syn_retries


def load_sysctls(arrivals: ArrivalSpec) -> dict[str, dict[str, str]]:
    """Return what the namespaces of both ends have beyond TCP's own knobs.

    Raises:
        MissingError: this kernel cannot wait so long for the answer to a SYN.
    """
    ms, linear, _ = timers_of(arrivals)
    timer = {} if ms == USUAL_MS else {FIRST_TIMEOUT: str(ms)}
    if timer and not _is_known(FIRST_TIMEOUT):
        raise MissingError(
            f"this kernel ({os.uname().release}) has no {FIRST_TIMEOUT}; use the virtual kernel "
            "7.3, or set syn_timeout_s = 1, or a list that begins with 1"
        )
    # A kernel without this sysctl sends none of them: there is nothing to write.
    told = str(linear) != DEFAULTS[LINEAR] and _is_known(LINEAR)
    retries = {LINEAR: str(linear)} if told else {}
    return {"client": timer | retries | own_sysctls(arrivals), "server": timer}


def _is_known(sysctl: str) -> bool:
    return (IPV4 / sysctl.rpartition(".")[2]).exists()


def own_sysctls(arrivals: ArrivalSpec) -> dict[str, str]:
    """Return those of the clients that every kernel has."""
    return {
        # As many connections as one address can have, and a port is free again a second after its
        # connection has ended.
        "net.ipv4.ip_local_port_range": "1024 65535",
        "net.ipv4.tcp_tw_reuse": "1",
        "net.ipv4.tcp_syn_retries": str(timers_of(arrivals)[2]),
    }
