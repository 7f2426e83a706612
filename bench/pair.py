"""Server and generator of loads in real time, a processor each, over one wire without a link.

What comes in at an end is taken by that end's processor, as by a network card's queue of its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.base import places, proc
from testbed.base.namespace import Namespace, new_namespace
from testbed.kinds.server_load.account import ServerAccount
from testbed.kinds.server_load.processors import choose_processors, read_ticks, receiving
from testbed.kinds.server_load.programs import serving
from testbed.lab.interfaces import (
    End,
    add_address,
    add_neighbour,
    add_wire,
    set_up,
    wait_until_running,
)
from testbed.lab.offloads import clear_offloads
from testbed.lab.rtnetlink import open_control
from testbed.wire.counters import read_all_counters

MTU_BYTES = 1500
NETWORK = "10.77.0"
SERVER_ADDRESS = f"{NETWORK}.1"
PORT = 80
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
    def serving(self, log: Path, **options: int) -> Iterator[Callable[[], ServerAccount]]:
        """Run the event server on its processor; what is yielded ends it."""
        given: dict[str, int | str] = {
            "listen": f"{SERVER_ADDRESS}:{PORT}", "backlog": 65535, "accepts-at-once": 1,
            "processors": self.server_processor,
        }  # fmt: skip
        given |= {name.replace("_", "-"): value for name, value in options.items()}
        with serving(self.server, _argv("event-server", given), log) as end:
            yield end

    def generate(self, seconds: float, **options: int | str) -> dict[str, Any]:
        """Run the generator on its processor for ``seconds`` and return its report."""
        given: dict[str, int | str] = {
            "target": f"{SERVER_ADDRESS}:{PORT}", "source": f"{NETWORK}.2-{NETWORK}.{1 + CLIENTS}",
            "duration-ms": round(seconds * 1000), "timeout-ms": 2000,
            "processor": self.client_processor,
        }  # fmt: skip
        given |= {name.replace("_", "-"): value for name, value in options.items()}
        argv = (*self.client.prefix, *_argv("load-generator", given))
        done = proc.run(argv, check=False, timeout_s=seconds + GRACE_S)
        report: dict[str, Any] = json.loads(done.stdout)
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


def _argv(program: str, given: Mapping[str, int | str]) -> tuple[str, ...]:
    words = (word for name, value in given.items() for word in (f"--{name}", str(value)))
    return (str(places.built_part("native") / program), *words)


@contextmanager
def open_pair(tag: str) -> Iterator[LoadPair]:
    """Make both ends; the undo removes them.

    Raises:
        MissingError: there is only one processor, or packets cannot be steered.
        OSError: a privilege is missing.
    """
    on = choose_processors(1)
    with ExitStack() as undo:
        server, client = (
            undo.enter_context(new_namespace(f"{tag}{role}")) for role in ("server", "client")
        )
        with server.opened() as here, client.opened() as there, open_control() as control:
            ends = End("s0", _mac(1), here), End("c0", _mac(2), there)
            add_wire(control, *ends, MTU_BYTES)
        clients = [f"{NETWORK}.{number}" for number in range(2, 2 + CLIENTS)]
        for namespace, device, own, others, mac in (
            (server, "s0", [SERVER_ADDRESS], clients, _mac(2)),
            (client, "c0", clients, [SERVER_ADDRESS], _mac(1)),
        ):
            with namespace.entered(), open_control() as control:
                set_up(control, "lo")
                for address in own:
                    add_address(control, device, f"{address}/24")
                set_up(control, device)
                for address in others:
                    add_neighbour(control, device, address, mac)
            clear_offloads(namespace, device)
        wait_until_running(server, "s0")
        server.write_sysctls(SYSCTLS["server"])
        client.write_sysctls(SYSCTLS["client"])
        undo.enter_context(receiving(server, "s0", on.server))
        undo.enter_context(receiving(client, "c0", [on.generator]))
        yield LoadPair(server, client, on.server[0], on.generator)


def _mac(side: int) -> str:
    return f"02:00:00:77:00:{side:02x}"
