"""Table of exclusions: each row refuses what it names, and nothing else does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from testbed.kinds.exclusions import TABLE, find_exclusions
from testbed.kinds.experiment_file import ExperimentFile
from testbed.model import Condition, LinkSpec, QuicSpec, Spec, TcpSpec
from wings.server_loads.spec import ServerLoad
from wings.server_loads.tests.loads import LOAD

FILE = ExperimentFile({}, lambda _: "a.toml:1", False, False, {}, {})
OFF: dict[str, Any] = {
    "loss_bursts": "p 1 r 30 1-h 100 1-k 0", "changes": "at 1 s: rtt_ms 9", "path_mtu_bytes": 1400,
    "trace_up": "x", "trace_down": "x", "hop_up": "x", "hop_down": "x", "ip": "6", "gso": True,
    "gro": True, "traffic": "call", "visits": 2, "requests_per_connection": 5, "control": "reno",
}  # fmt: skip
"""Values off their defaults, of knobs that are no number."""


def condition_with(**knobs: Any) -> Condition:
    """A page load with knobs, by the last words of their paths."""
    specs: dict[str, Any] = {"link": LinkSpec, "tcp": TcpSpec, "quic": QuicSpec}
    parts = {
        name: spec(**{each: knobs.pop(each) for each in spec.__dataclass_fields__ if each in knobs})
        for name, spec in specs.items()
    }
    return Condition("p", "chromium", **parts, **knobs)


def server_load(link: dict[str, Any]) -> ServerLoad:
    return replace(LOAD, link=LinkSpec(**link))


def found(*conditions: Spec, kernel: str = "virtual") -> list[str]:
    return list(find_exclusions(conditions, kernel, FILE))


def test_a_usual_page_load_has_nothing_that_excludes_another() -> None:
    assert found(condition_with()) == []
    assert found(condition_with(), kernel="host") == []


@pytest.mark.parametrize(
    ("knobs", "says"),
    [
        ({"loss_bursts": OFF["loss_bursts"], "loss_pct": 1.0}, "loss_bursts: takes the place of"),
        ({"path_mtu_bytes": 1400, "corrupt_pct": 1.0}, "path_mtu_bytes: what is told of it may"),
        ({"path_mtu_bytes": 1400, "ip": "6"}, "path_mtu_bytes: routers tell of it over IPv4 alone"),
        ({"ip": "dual", "corrupt_pct": 1.0}, "corrupt_pct: whose damage is seen over IPv4 alone"),
        *(({"trace_up": "lte-drive-up", name: 1.0}, f"{name}: a link with a trace has none")
          for name in ("delay_jitter_ms", "reorder_pct")),
        *(({hop: "x", name: OFF.get(name, 1.0)}, f"{hop}: a last hop has no {name} beside it")
          for hop in ("hop_down", "hop_up")
          for name in ("trace_up", "changes", "path_mtu_bytes", "corrupt_pct", "delay_jitter_ms",
                       "gso", "ip")),
    ],
)  # fmt: skip
def test_what_no_link_has_together(knobs: dict[str, Any], says: str) -> None:
    (sentence,) = found(condition_with(**knobs))
    assert f"a.toml:1: link.{says}" in sentence


ROWS = [row for row in TABLE if row.beside != "at"]


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_each_row_has_a_reason_and_refuses_its_pair_alone(number: int) -> None:
    """Either of both alone is nothing that this row refuses."""
    row = ROWS[number]
    kind, kernel = row.beside == "kind", "host" if row.beside == "kernel" else "virtual"

    def value(path: str, wanted: Any) -> Any:
        return wanted if wanted is not None else OFF.get(path.rpartition(".")[2], 1.0)

    knob, beside = row.knob.rpartition(".")[2], row.beside.rpartition(".")[2]
    own = {knob: value(row.knob, row.value)}
    if row.beside in ("kind", "kernel"):
        both: Spec = server_load(own) if kind else condition_with(**own)
        alone = condition_with(**own) if kind else condition_with()
        assert any(row.why in each for each in found(both, kernel=kernel))
        assert not any(row.why in each for each in found(alone, kernel=kernel))
        return
    other = {beside: value(row.beside, row.other)}
    if row.other is False or other[beside] == "as-recorded":  # which is the default
        other = {}
    assert any(row.why in each for each in found(condition_with(**own | other)))
    if other:
        assert not any(row.why in each for each in found(condition_with(**other)))
