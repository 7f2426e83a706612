"""Network namespaces for tests: their names hold the process id, so no other run has them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.base import proc
from testbed.base.namespace import Namespace

Ends = tuple[Namespace, Namespace]
LEFT_ADDRESS = "10.99.0.1"
RIGHT_ADDRESS = "10.99.0.2"


@contextmanager
def namespace(label: str) -> Iterator[Namespace]:
    """A new network namespace with its loopback device up."""
    made = Namespace(f"fft{os.getpid()}{label}")
    proc.run(("ip", "netns", "add", made.name))
    try:
        proc.run(("ip", "-n", made.name, "link", "set", "lo", "up"))
        yield made
    finally:
        proc.run(("ip", "netns", "delete", made.name))


@contextmanager
def joined(label: str) -> Iterator[Ends]:
    """Two namespaces with a wire between them: devices ``c0`` and ``s0``, IPv4 only."""
    with namespace(f"{label}l") as left, namespace(f"{label}r") as right:
        peer = ("type", "veth", "peer", "name", "s0", "netns", right.name)
        proc.run(("ip", "-n", left.name, "link", "add", "c0", *peer))
        for end, device, address in ((left, "c0", LEFT_ADDRESS), (right, "s0", RIGHT_ADDRESS)):
            end.write_sysctls({"net.ipv6.conf.all.disable_ipv6": "1"})
            proc.run(("ip", "-n", end.name, "address", "add", f"{address}/24", "dev", device))
            proc.run(("ip", "-n", end.name, "link", "set", device, "up"))
        yield left, right
