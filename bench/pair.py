"""Server and generator of loads in real time, a processor each, over one wire without a link.

What comes in at an end is taken by that end's processor, as by a network card's queue of its own.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.base import places, proc
from testbed.base.errors import MissingError
from testbed.base.namespace import Namespace, new_namespace
from testbed.capture.counters import read_all_counters
from testbed.kernel.build.native import ensure_native
from testbed.lab.interfaces import (
    End,
    add_address,
    add_neighbour,
    add_wire,
    set_up,
    wait_until_running,
)
from testbed.lab.offloads import clear_offloads, switch_offload
from testbed.lab.rtnetlink import open_control
from wings.server_loads.account import ServerAccount
from wings.server_loads.nginx import serving_nginx
from wings.server_loads.processors import choose_processors, read_ticks, receiving
from wings.server_loads.programs import server_argv, serving
from wings.server_loads.spec import ArrivalSpec, Program, ServerLoad, ServerSpec

MTU_BYTES = 1500
NETWORK = "10.77.0"
SERVER_ADDRESS = f"{NETWORK}.1"
PORT = 80
BACKLOG = 65_535
CLIENTS = 16
"""Addresses of clients: each has all ports."""
SYSCTLS = {
    "server": {"net.core.somaxconn": "65535", "net.ipv4.tcp_max_syn_backlog": "65535"},
    "client": {"net.ipv4.ip_local_port_range": "1024 65535", "net.ipv4.tcp_tw_reuse": "1"},
}
GRACE_S = 30.0


@dataclass(frozen=True, slots=True)
class LoadPair:
    """The two ends, and the processor of each."""

    server: Namespace
    client: Namespace
    server_processor: int
    client_processor: int

    @contextmanager
    def serving(
        self, scratch: Path, program: Program, response_bytes: int
    ) -> Iterator[Callable[[], ServerAccount]]:
        """Run the server ``program`` on its processor; what is yielded ends it.

        ``scratch`` is made, or a file: it holds what the server writes.
        """
        on = (self.server_processor,)
        load = ServerLoad(
            ServerSpec(program=program, response_bytes=response_bytes, price=0.0), ArrivalSpec()
        )
        address = f"{SERVER_ADDRESS}:{PORT}"
        if program == "nginx":
            running = serving_nginx(self.server, address, load, BACKLOG, on, scratch)
        else:
            path = ensure_native(places.cache(), print) / "event-server"
            argv = server_argv(path, address, load, BACKLOG, {}, on)
            running = serving(self.server, argv, scratch)
        with running as end:
            yield end

    def generate(self, seconds: float, **options: int | str) -> dict[str, Any]:
        """Run the generator on its processor for ``seconds`` and return its report."""
        arguments: dict[str, int | str] = {"target": f"{SERVER_ADDRESS}:{PORT}",
                                           "source": f"{NETWORK}.2-{NETWORK}.{1 + CLIENTS}",
                                           "duration-ms": round(seconds * 1000), "timeout-ms": 2000,
                                           "processor": self.client_processor}  # fmt: skip
        arguments |= {name.replace("_", "-"): value for name, value in options.items()}
        argv = (*self.client.prefix, *_argv("load-generator", arguments))
        completed = proc.run(argv, check=False, timeout_s=seconds + GRACE_S)
        report: dict[str, Any] = json.loads(completed.stdout)
        return report

    def read_server(self) -> dict[str, int]:
        """Return the server's counters, and the ticks that its processor was busy."""
        busy, _ = read_ticks([self.server_processor])
        return read_all_counters(self.server) | {"ticks": busy}

    def idle_ticks(self, seconds: float) -> float:
        """Return the ticks a second that the processor is busy without a load."""
        before = self.read_server()["ticks"]
        time.sleep(seconds)
        return (self.read_server()["ticks"] - before) / seconds


def _argv(program: str, arguments: Mapping[str, int | str]) -> tuple[str, ...]:
    words = (word for name, value in arguments.items() for word in (f"--{name}", str(value)))
    return (str(ensure_native(places.cache(), print) / program), *words)


@contextmanager
def open_pair(tag: str, *, card: bool = False) -> Iterator[LoadPair]:
    """Make both ends; the undo removes them.

    With ``card`` a kernel thread on the server's processor receives packets, as from a network
    card, and the sender pays for no interrupt of another processor.  Unlike an interrupt, that
    thread shares the processor with the server.

    Raises:
        MissingError: there is only one processor, or packets cannot be steered.
        OSError: a privilege is missing.
    """
    on = choose_processors(1)
    with ExitStack() as undo:
        server, client = (
            undo.enter_context(new_namespace(f"{tag}{role}")) for role in ("server", "client")
        )
        device_name = f"s{os.getpid()}"  # its threads have its name, whatever namespace it is in
        with server.opened() as server_fd, client.opened() as client_fd, open_control() as control:
            ends = End(device_name, _mac(1), server_fd), End("c0", _mac(2), client_fd)
            add_wire(control, *ends, MTU_BYTES)
        clients = [f"{NETWORK}.{number}" for number in range(2, 2 + CLIENTS)]
        for namespace, device, addresses, peers, mac in (
            (server, device_name, [SERVER_ADDRESS], clients, _mac(2)),
            (client, "c0", clients, [SERVER_ADDRESS], _mac(1)),
        ):
            with namespace.entered(), open_control() as control:
                set_up(control, "lo")
                for address in addresses:
                    add_address(control, device, f"{address}/24")
                set_up(control, device)
                for address in peers:
                    add_neighbour(control, device, address, mac)
            clear_offloads(namespace, device)
        wait_until_running(server, device_name)
        server.write_sysctls(SYSCTLS["server"])
        client.write_sysctls(SYSCTLS["client"])
        if card:
            _take_by_thread(server, device_name, on.server[0])
        else:
            undo.enter_context(receiving(server, device_name, on.server))
        undo.enter_context(receiving(client, "c0", [on.generator]))
        yield LoadPair(server, client, on.server[0], on.generator)


def _take_by_thread(namespace: Namespace, device: str, processor: int) -> None:
    """Let a kernel thread receive the packets of ``device``; it ends with the device.

    Source: Documentation/networking/napi.rst, threaded NAPI; a veth has one where it merges.

    Raises:
        MissingError: this kernel has no such threads.
    """
    switch_offload(namespace, device, "gro", on=True)
    words = ("sh", "-c", f"echo 1 > /sys/class/net/{device}/threaded")
    echo = proc.run((*namespace.prefix, *words), check=False)
    threads = _find_threads(f"napi/{device}-")
    if echo.returncode != 0 or not threads:
        raise MissingError(
            f"this kernel has no threads that take packets ({echo.stderr.strip()}); Linux 5.12 has"
        )
    for thread in threads:
        os.sched_setaffinity(thread, {processor})


def _find_threads(begin: str) -> list[int]:
    """Return the process ids of the kernel threads whose names start with ``begin``."""
    threads = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):  # it has ended
            if path.read_text().startswith(begin):
                threads.append(int(path.parent.name))
    return threads


def _mac(side: int) -> str:
    return f"02:00:00:77:00:{side:02x}"
