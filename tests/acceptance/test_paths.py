"""Fast lines, narrow paths and offloads in a real lab: measured, proven, or refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.model import CAPTURE_FILE, Record
from tests.acceptance.altered import Alter, Done, given, without
from tests.acceptance.house import House, Plant, Ran, assert_bad, assert_ok, assert_refused

pytestmark = pytest.mark.guest

PAGE = "tum-website"
NETEM = "lab/link/netem.py"


def run(house: House, **link: Any) -> Ran:
    house.take(PAGE)
    knobs = {
        name if "." in name else f"link.{name}": value
        for name, value in {"rtt_ms": 40, **link}.items()
    }
    return house.run(page=PAGE, client="graph", **knobs)


def one(ran: Ran) -> Record:
    (record,) = ran.records
    return record


@pytest.mark.nightly(but="^1000000$")
@pytest.mark.parametrize("kbit", [1_000_000, 10_000_000])
def test_a_fast_line_is_measured_to_the_packet(house: House, kbit: int) -> None:
    record = one(run(house, rtt_ms=0.2, down_kbit=kbit, up_kbit=kbit, buffer_bytes=500_000))
    assert_ok(record)
    assert record.lab is not None
    found = {each.name: each for each in record.lab.measurements}
    for way in ("down", "up"):
        buffer = found[f"{way}_buffer"]
        assert abs(buffer.measured - 334) <= 2
        assert buffer.tolerance == 2


def test_a_larger_buffer_of_a_fast_line_is_found(house: House, plant: Plant) -> None:
    """All of a train that is sent as fast as the line takes it would come through."""
    plant(NETEM, "spec.buffer_bytes, overhead)\n", "2 * spec.buffer_bytes, overhead)\n")
    ran = run(house, rtt_ms=0.2, down_kbit=1_000_000, up_kbit=1_000_000)
    assert_refused(ran, "lab_mismatch", "down_buffer: measured 1", "theory 88 packets")


ICMP = {"path_mtu_bytes": 1400}
HOLE = {"path_mtu_bytes": 1400, "path_mtu_discovery": "black-hole"}
PROBING = {"tcp.sysctl.tcp_mtu_probing": 1}


@pytest.mark.nightly(but="^link0$")
@pytest.mark.parametrize("link", [ICMP, {"path_mtu_bytes": 600}, {**HOLE, **PROBING}])
def test_a_narrow_path_is_proven_and_the_same_again(house: House, link: dict[str, Any]) -> None:
    record = one(run(house, **link))
    assert_ok(record)
    assert record.lab is not None
    assert record.lab.traffic["down.too_long"] > 0
    again = one(run(house, **link))
    assert again.artefacts[CAPTURE_FILE] == record.artefacts[CAPTURE_FILE]
    assert again.lab == record.lab


@pytest.mark.nightly(but="^wget2$")
@pytest.mark.parametrize("client", ["chromium", "wget2"])
@pytest.mark.browser
def test_a_narrow_path_with_other_clients(house: House, client: str) -> None:
    house.take(PAGE)
    assert_ok(one(house.run(page=PAGE, client=client, **{"link.path_mtu_bytes": 1300})))


def test_a_black_hole_ends_a_load_without_a_remedy(house: House) -> None:
    record = one(run(house, **HOLE))
    assert (record.outcome, "not complete in 120 s" in str(record.reason)) == ("timeout", True)


PATH_MTU = "mechanisms/path_mtu/lab.py"
ASKED = 'if spec.path_mtu_discovery == "black-hole":\n                    order'
FAULTS: dict[str, tuple[dict[str, Any], tuple[tuple[str, str], ...], str]] = {
    "another path MTU": (ICMP,
                         (("device, spec.path_mtu_bytes)", "device, spec.path_mtu_bytes + 50)"),),
                         "near: MTU of n1 is '1450', asked was '1400'"),
    "a wide path that claims to be narrow": (ICMP,
                                             (("device, spec.path_mtu_bytes)",
                                               "device, spec.mtu_bytes)"),
                                              ('MTU of {device}": str(spec.path_mtu_bytes)',
                                               'MTU of {device}": str(spec.mtu_bytes)'),
                                              ('table.get(f"{role}: MTU of {device}", "") for',
                                               "str(condition.link.path_mtu_bytes) for")),
                                             "were too long for the line, its router has 0"),
    "one direction wide": (ICMP,
                           (("for role, device in ROUTERS.values():\n            with",
                             "for role, device in [ROUTERS['up']]:\n            with"),),
                           "far: MTU of f0 is '1500'"),
    "a router that says nothing": (ICMP, ((ASKED, ASKED.replace('== "black-hole"', '== "icmp"')),),
                                   "near: rule 1"),
    "a black hole that tells": ({**HOLE, **PROBING},
                                ((ASKED, ASKED.replace('== "black-hole"', '== "icmp"')),),
                                "near: rule 1 is None"),
    "nothing counted": (ICMP, (("int(ip[\"FragFails\"])", "0"),),
                        "packets that went into the link"),
    "a silent router that claims to tell": (
        ICMP,
        ((ASKED, ASKED.replace('== "black-hole"', '== "icmp"')),
         ('if spec.path_mtu_discovery == "black-hole":\n            name',
          'if spec.path_mtu_discovery == "icmp":\n            name'),
         ('"black-hole" if table', '"icmp" if table')),
        "0 messages came back of",
    ),
}  # fmt: skip


@pytest.mark.nightly(but="^another path MTU$")
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_prints_no_number(house: House, plant: Plant, name: str) -> None:
    link, changes, says = FAULTS[name]
    for old, new in changes:
        plant(PATH_MTU, old, new)
    # With a remedy for what may become a black hole.
    ran = run(house, **{**PROBING, **link})
    assert_refused(ran, one(ran).outcome, says)
    assert one(ran).outcome in ("lab_mismatch", "unproven")


@pytest.fixture(scope="module")
def done(house: House) -> Done:
    ran = run(house, **ICMP)
    assert_ok(one(ran))
    return Done(one(ran), ran.folder, house.archive(PAGE).digest)


@pytest.mark.parametrize(
    ("alter", "says"),
    [(given("lab", "knobs", "link.path_mtu_bytes", to="1450"), "read back as '1450'"),
     (without("lab", "knobs", "link.path_mtu_bytes"), "link.path_mtu_bytes was not read back"),
     (given("lab", "knobs", "link.path_mtu_discovery", to="black-hole"), "as 'black-hole'"),
     (given("lab", "traffic", "down.too_long", to=0), "its router has 0"),
     (given("lab", "traffic", "up.too_long", to=7), "its router has 7")],
)  # fmt: skip
def test_an_altered_reading_prints_no_number(
    done: Done, alter: Alter, says: str, tmp_path: Path
) -> None:
    assert_bad(done.judge(alter, tmp_path), says, "lab_mismatch", "unproven")


def test_what_cannot_be_is_refused_at_once(house: House) -> None:
    page = f'page = "{PAGE}"\nclient = "graph"\n'
    said = house.refused(f'{page}traffic = "bulk up"\n[link]\npath_mtu_bytes = 1600\n')
    assert "wrong.toml:5: link.path_mtu_bytes: 1600 is more than an end sends" in said
    assert "leave it out, or traffic" in said
    fragments = "[link]\npath_mtu_bytes = 1400\n[tcp.sysctl.server]\nip_no_pmtu_disc = 1\n"
    assert "pieces prove nothing" in house.refused(page + fragments)


@pytest.mark.nightly
def test_offloads_of_the_ends_change_no_packet(house: House) -> None:
    """TCP hands large segments to the stack either way, and no two packets come at once."""
    plain = one(run(house))
    for on in ({"gso": True}, {"gro": True}, {"gso": True, "gro": True}):
        record = one(run(house, **on))
        assert_ok(record)
        assert record.lab is not None
        assert record.lab.knobs["server.offloads"] == " ".join(on)
        assert record.artefacts[CAPTURE_FILE] == plain.artefacts[CAPTURE_FILE]


ACTS, DEVICES = "mechanisms/offload/lab.py", "lab/offloads.py"


@pytest.mark.nightly(but="_wanted")
@pytest.mark.parametrize(
    ("module", "old", "new", "says"),
    [
        (ACTS, "for name in _wanted(condition):", "for name in ():",
         "client: offloads of c0 are none, asked was gso gro"),
        (ACTS, "        for role, device in SENDERS:\n            for",
         "        for role, device in SENDERS[:1]:\n            for",
         "server: offloads of s0 are none, asked was gso gro"),
        (ACTS, "device, name, on=True)", "device, 'gro', on=True)",
         "client: offloads of c0 are gro, asked was gso gro"),
        (ACTS, 'for name in ("gso", "gro") if', 'for name in ("gro",) if',
         "client.offloads was read back as 'gro', asked was 'gso gro'"),
        (ACTS, "device, name, on=True)",
         "device, name, on=True); switch_offload(topology.role(role), device, 'tso', on=True)",
         "client: offloads of c0 are tso gso gro, asked was gso gro"),
    ],
)  # fmt: skip
def test_a_planted_offload_prints_no_number(
    house: House, plant: Plant, module: str, old: str, new: str, says: str
) -> None:
    plant(module, old, new)
    assert_refused(run(house, gso=True, gro=True), "lab_mismatch", says)


def test_segments_that_a_device_did_not_cut_are_found(house: House, plant: Plant) -> None:
    """Whatever was read back, the captures show what came to the wire uncut."""
    on = "switch_offload(topology.role(role), device, 'tso', on=True)"
    plant(ACTS, "device, name, on=True)", f"device, name, on=True); {on}")
    told = 'tuple(name for name, (get, _) in OFFLOADS.items() if name != "tso" and'
    plant(DEVICES, "tuple(name for name, (get, _) in OFFLOADS.items() if", told)
    ran = run(house, gso=True)
    assert one(ran).outcome in ("lab_mismatch", "unproven"), one(ran).reason
