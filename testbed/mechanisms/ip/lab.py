"""IP version of the lab's ends, read back; the lab's plan gives them their addresses and routes."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.lab.acting import Acting, Reading
from testbed.lab.readback import ENDS, State
from testbed.lab.topology import Topology
from testbed.model import Linked

_KNOWN = {("4", "4"): "4", ("6", "6"): "6", ("4 6", "4 6"): "dual", ("4 6", "4"): "dual-broken"}
"""``link.ip``, by what client and server have."""


class IpVersion(Acting):
    """Reads the IP version of both ends, where it is not IPv4 alone."""

    def read(self, topology: Topology, state: State, condition: Linked) -> Reading:
        """By the default routes of both ends."""
        if condition.link.ip == "4":
            return {}, ()
        client, server = (
            " ".join(ip for ip, where in (("4", "default"), ("6", "::/0"))
                     if f"{role}: route {where}" in state.table) for role in ENDS
        )  # fmt: skip
        otherwise = f"client {client or 'none'}, server {server or 'none'}"
        return {"link.ip": _KNOWN.get((client, server), otherwise)}, ()

    def expect(self, condition: Linked) -> Iterator[tuple[str, str | None]]:
        """The IP that is asked for."""
        if condition.link.ip != "4":
            yield "link.ip", condition.link.ip


IP = IpVersion()
