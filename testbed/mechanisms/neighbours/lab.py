"""Neighbours' hosts as they must be: congestion controls at hand, TCP pinned and read back."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.lab.acting import Acting, Reading
from testbed.lab.congestion import require
from testbed.lab.neighbour_hosts import HOSTS
from testbed.lab.readback import State
from testbed.lab.sysctls import describe_sysctls, judge_sysctls
from testbed.lab.tcp import PINNED
from testbed.lab.topology import Topology
from testbed.model import Linked
from testbed.model.traffic import NO_TRAFFIC, Neighbour, parse_traffic


class Neighbours(Acting):
    """Looks at the hosts of neighbours, where there are any."""

    def act(self, topology: Topology, condition: Linked) -> None:
        """Find that the kernel has all congestion controls of the neighbours."""
        algorithms = (each.algorithm for each in _neighbours_of(condition))
        for algorithm in dict.fromkeys(name for name in algorithms if name):
            require(topology.role(HOSTS[0]), algorithm)

    def read(self, topology: Topology, state: State, condition: Linked) -> Reading:
        """What the kernel has of TCP at the neighbours' ends."""
        sysctls = state.sysctls
        hosts = [host for host in HOSTS if host in sysctls]
        values = {f"{host}.sysctls": describe_sysctls(sysctls[host]) for host in hosts}
        values |= {f"{host}.{name}": sysctls[host][name] for host in hosts for name in PINNED}
        return values, tuple(
            f"{host}: {each}" for host in hosts for each in judge_sysctls(sysctls[host], PINNED)
        )

    def expect(self, condition: Linked) -> Iterator[tuple[str, str | None]]:
        """The pinned sysctls, and no offload."""
        for host in HOSTS if _neighbours_of(condition) else ():
            yield from ((f"{host}.{name}", value) for name, value in PINNED.items())
            yield f"{host}.sysctls", None
            yield f"{host}.offloads", "none"


NEIGHBOURS = Neighbours()


def _neighbours_of(condition: Linked) -> tuple[Neighbour, ...]:
    return parse_traffic(getattr(condition, "traffic", NO_TRAFFIC))
