"""A last hop in a real lab: proven by every client, the same at each boot, and no other passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base.errors import EXIT_OK
from testbed.model import CAPTURE_FILE
from testbed.traces.catalogue import read_all
from tests.acceptance.altered import PAGE, Alter, Done, without
from tests.acceptance.house import House, Plant, Ran, assert_ok, assert_refused
from tests.acceptance.test_traces import LATE, PACKED, irregular

pytestmark = pytest.mark.guest

HOPS = {"link.hop_down": "air-down.trace", "link.hop_up": "air-up.trace"}
FAST = {"link.rtt_ms": 20, "link.down_kbit": 16_000, "link.up_kbit": 1000}


@pytest.fixture(scope="module", autouse=True)
def at_home(house: House) -> None:
    house.take(PAGE)
    (house.folder / "air-down.trace").write_text(irregular(3, 4))
    (house.folder / "air-up.trace").write_text(irregular(4, 9))


def run(house: House, **knobs: object) -> Ran:
    return house.run(**{"page": PAGE, "client": "graph"} | FAST | HOPS | knobs)


@pytest.fixture(scope="module")
def ran(house: House) -> Ran:
    return run(house, **{"link.trace_phase": "seed"})


def test_the_lab_measures_the_hop(ran: Ran) -> None:
    (record,) = ran.records
    assert_ok(record)
    assert record.lab is not None
    measured = {each.name: each.measured for each in record.lab.measurements}
    assert measured["hop_down_trace"] < 1.0 and measured["hop_up_trace"] < 1.0  # us


def test_equal_boots(ran: Ran, house: House) -> None:
    (record,) = ran.records
    name = Path("trials", record.trial_id, CAPTURE_FILE)
    for _ in range(2):
        again = run(house, **{"link.trace_phase": "seed"})
        assert (ran.folder / name).read_bytes() == (again.folder / name).read_bytes()


@pytest.mark.nightly(but="^knobs0$")
@pytest.mark.parametrize(
    "knobs",
    [{"client": "chromium"}, {"client": "wget2", "link.loss_pct": 1},
     {"link.hop_up": "", "link.qdisc": "fq_codel"},
     {"link.framing_bytes": 14, "link.delay_up_ms": 15},
     {"link.hop_down": "", "link.delay_up_ms": 0},
     {"tcp.tfo": True, "tcp.cookies": "cold", "link.hop_down": "wifi-contention-down"}],
)  # fmt: skip
def test_loads_over_a_last_hop_are_proven(house: House, knobs: dict[str, object]) -> None:
    assert_ok(run(house, **knobs).one())


def test_a_long_request_leaves_packet_by_packet(house: House) -> None:
    """Each at an opportunity of its own, though TCP hands it to the device at once."""
    fetch = '/usr/bin/curl -sS -o {out}/page -H "X-Long: $(printf %06000d 0)" {url}'
    ran = run(house, client="command", command=f"sh -c '{fetch}; echo plt_ms=1'", allow_misses=True)
    reason = str(ran.records[0].reason)
    assert "the load ended after 1.000 ms" in reason and "opportunities" not in reason, reason


SET = "self._set({HOPS[way]: replace(_wanted_trace(self.spec, way), file=str(path))})"
NAMES = 'names = ("limit_bytes", "room_bytes", "", "opportunities", "end_ms", "crc")'
FAULTS: dict[str, tuple[tuple[tuple[str, str, str], ...], dict[str, object], str]] = {
    "missing": ((("lab/link/netem.py", SET, "way"),), {}, "hop_down_trace: measured "),
    "one direction": ((("lab/link/netem.py", SET, f'if way == "hop_down": {SET}'),), {},
                      "hop_up_trace: measured "),
    "one direction, and measured so": (
        (("kinds/workspace.py", "condition, tag = trial.linked, site.tag",
          "from dataclasses import replace; condition, tag = replace(trial.linked, "
          'link=replace(trial.linked.link, hop_up="")), site.tag'),),
        {}, "hop_up_trace of the link was not measured",
    ),
    "the trace of the other way": ((("lab/link/netem.py", "path = TRACES / trace",
                                     "path = TRACES / self.spec.hop_up"),),
                                   {}, "hop_down_trace: measured "),
    "begun 1 ms later": (
        (("lab/link/netem.py", "self.begun.update(origins_ns)",
          "self.begun.update({way: ns + 10**6 for way, ns in origins_ns.items()})"),),
        {}, "hop_down.trace_origin_ns: air-down.trace began 1 ms after the moment",
    ),
    "down 1 ms later, and not told": (
        LATE, {"link.hop_up": ""},
        "packets came down at no opportunity of the trace air-down.trace, the first at",
    ),
    "up 1 ms later, and not told": (
        LATE, {"link.hop_down": ""},
        "packets left at no opportunity of the trace air-up.trace, the first at",
    ),
    "two packets an opportunity, and not told": (
        (("lab/link/discipline.py", PACKED, PACKED.replace("room", "2 * room")),
         ("lab/link/discipline.py", NAMES,
          f"parms = (*parms[:2], parms[2] // 2, *parms[3:]); {NAMES}")),
        {"link.hop_up": ""},
        "times more came down than opportunities of air-down.trace let through",
    ),
}  # fmt: skip


@pytest.mark.nightly(but="^up 1 ms later, and not told$")
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_prints_no_number(house: House, plant: Plant, name: str) -> None:
    changes, knobs, says = FAULTS[name]
    for change in changes:
        plant(*change)
    wire = "packets" in says or "times more" in says
    assert_refused(run(house, **knobs), "unproven" if wire else "lab_mismatch", says)


ALTERED: dict[str, tuple[Alter, str]] = {
    "no trace": (without("lab", "knobs", "hop_up.trace"), "hop_up.trace was read back as 'none'"),
    "no beginning": (without("lab", "knobs", "hop_up.trace_origin_ns"),
                     "hop_up.trace_origin_ns: air-up.trace began "),
}  # fmt: skip


@pytest.mark.parametrize("name", ALTERED)
def test_an_altered_observation_prints_no_number(
    ran: Ran, house: House, name: str, tmp_path: Path
) -> None:
    record, (alter, says) = ran.records[0], ALTERED[name]
    traces = read_all([*HOPS.values()], house.folder, Path())
    done = Done(record, ran.folder, house.archive(PAGE).digest, traces)
    assert ran.code == EXIT_OK
    altered = done.judge(alter, tmp_path / "altered")
    assert altered.reason is not None and says in altered.reason
