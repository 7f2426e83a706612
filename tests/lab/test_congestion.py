"""Congestion control is what was asked, by sysctl or by route, as a real connection has it."""

from __future__ import annotations

import pytest

from testbed.base import proc
from testbed.base.errors import LabError
from testbed.base.namespace import Namespace
from testbed.lab import congestion
from testbed.lab.readback import read_state
from testbed.lab.tcp import read_knobs, set_knobs
from testbed.lab.topology import open_topology
from testbed.model import TcpSpec

pytestmark = pytest.mark.root

CUBIC = TcpSpec(congestion_control="cubic")


@pytest.mark.parametrize("algorithm", ["cubic", "reno"])
def test_both_ends_of_a_connection_have_it(tag: str, algorithm: str) -> None:
    with open_topology(tag, 1500, 1) as topology:
        set_knobs(topology, TcpSpec(congestion_control=algorithm))
        assert congestion.read_connection(topology) == (algorithm, algorithm)


def test_where_the_sysctl_is_refused_routes_have_it(
    tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Namespace.write_sysctls

    def refuse(self: Namespace, values: dict[str, str]) -> None:
        if congestion.SYSCTL in values:
            raise PermissionError(1, "Operation not permitted")
        written(self, values)

    monkeypatch.setattr(Namespace, "write_sysctls", refuse)
    with open_topology(tag, 1500, 1) as topology:
        assert set_knobs(topology, CUBIC) == "route"
        connection = congestion.read_connection(topology)
        values, errors = read_knobs(read_state(topology), CUBIC, connection)
    assert (connection, errors) == (("cubic", "cubic"), ())
    assert values["server.initcwnd_segments"] == "10"


def test_another_one_is_named(tag: str) -> None:
    with open_topology(tag, 1500, 1) as topology:
        set_knobs(topology, CUBIC)
        _, errors = read_knobs(read_state(topology), CUBIC, ("cubic", "bbr"))
    assert errors == (f"server: {congestion.SYSCTL} is 'bbr', asked was 'cubic'",)


def test_no_connection(tag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(congestion, "CONNECT_S", 0.2)
    with open_topology(tag, 1500, 1) as topology:
        proc.run(("ip", "-n", topology.near.name, "link", "set", "n1", "down"))
        with pytest.raises(LabError, match=r"no connection from 10\.0\.0\.2 to 10\.0\.2\.2"):
            congestion.read_connection(topology)
