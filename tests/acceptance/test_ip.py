"""IPv6 in real loads, alone and beside IPv4; and faults that may not pass as proven."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.base.errors import EXIT_CONFIGURATION
from testbed.model import CAPTURE_FILE, Proof
from tests.acceptance.altered import Alter, Done, Frames, Seen, given, without
from tests.acceptance.house import House, Plant, assert_bad, assert_ok, assert_refused

pytestmark = [pytest.mark.guest, pytest.mark.browser]

PAGE = "tum-website"
FALLBACK_MS = 300.0
"""After how long Chromium tries IPv4 beside IPv6, which has not answered."""
TYPE, IPV6, NEXT_HEADER = slice(12, 14), b"\x86\xdd", 20
Knobs = dict[str, Any]
LOADS: dict[str, Knobs] = {
    "4": {"client": "graph"},
    "6": {"client": "graph", "link.ip": "6"},
    "6, Fast Open": {"client": "graph", "link.ip": "6", "tfo": True},
    "6 by wget2": {"client": "wget2", "link.ip": "6"},
    "6 by Chromium": {"client": "chromium", "link.ip": "6"},
    "dual": {"client": "wget2", "link.ip": "dual"},
    "dual, Fast Open": {"client": "wget2", "link.ip": "dual", "tfo": True},
    "broken": {"client": "chromium", "link.ip": "dual-broken"},
}


@pytest.fixture(scope="module")
def loads(house: House) -> dict[str, Done]:
    house.take(PAGE)
    done = {}
    for name, knobs in LOADS.items():
        ran = house.run(page=PAGE, rtt_ms=20, **knobs)
        (record,) = ran.records
        assert_ok(record)
        done[name] = Done(record, ran.folder, house.archive(PAGE).digest)
    return done


def proof_of(done: Done) -> Proof:
    assert isinstance(done.record.proof, Proof)
    return done.record.proof


@pytest.mark.thorough
def test_what_clients_choose_of_both(loads: dict[str, Done]) -> None:
    chosen = {name: proof_of(done).ip for name, done in loads.items()}
    assert [name for name, choice in chosen.items() if not choice] == [
        name for name in LOADS if name[0] in "46"
    ]
    for name in ("dual", "dual, Fast Open"):
        connections = proof_of(loads[name]).connections
        assert chosen[name] == {"4": 0, "6": connections, "6.unanswered": 0}
    broken = chosen["broken"]
    assert broken["6"] == 0 < broken["6.unanswered"] and broken["4"] > 0
    assert broken["fallback_ms"] == pytest.approx(FALLBACK_MS, abs=2)


@pytest.mark.parametrize("name", ["6, Fast Open", "dual, Fast Open"])
def test_fast_open_has_cookies_for_ipv6(loads: dict[str, Done], name: str) -> None:
    proof = proof_of(loads[name])
    assert proof.syn_data_acked == proof.syns_with_payload == proof.connections > 0


def test_equal_boots_are_equal_over_ipv6(house: House, loads: dict[str, Done]) -> None:
    for name in ("6", "broken"):
        ran = house.run(page=PAGE, rtt_ms=20, **LOADS[name])
        first, again = (
            (folder / "trials" / loads[name].record.trial_id / CAPTURE_FILE).read_bytes()
            for folder in (loads[name].folder, ran.folder)
        )
        assert first == again


def _announcement(frames: list[bytearray]) -> None:
    """The last packet has an extension header, as one that tells of groups has (RFC 3810)."""
    assert frames[-1][TYPE] == IPV6
    frames[-1][NEXT_HEADER] = 0


CAPTURES: dict[str, tuple[str, str | None, Frames | None, str]] = {
    "a load over IPv4": ("6", "4", None, "packets are not of IPv6, and link.ip = 6"),
    "a load over IPv6": ("4", "6", None, "packets are not of IPv4, and link.ip = 4"),
    "IPv6 works": ("broken", "6 by Chromium", None, "IPv6, which was to be broken"),
    "IPv6 is broken": ("dual", "broken", None, "connections over IPv6 got no answer"),
    "an announcement": ("6", None, _announcement, "1 packets in the capture are not of the load"),
}


@pytest.mark.parametrize("fault", CAPTURES)
def test_faults_in_a_capture(loads: dict[str, Done], tmp_path: Path, fault: str) -> None:
    name, other, frames, says = CAPTURES[fault]
    capture_of = None if other is None else loads[other]
    judged = loads[name].judge(lambda _: None, tmp_path, frames=frames, capture_of=capture_of)
    assert judged.outcome == "unproven" and judged.reason is not None
    assert judged.proof is not None
    assert [problem for problem in judged.proof.problems if says in problem], judged.proof.problems


def _of_ipv4(seen: Seen) -> None:
    """It was measured over IPv4: a probe is the same, the rate that of shorter packets."""
    for each in seen["lab"]["measurements"]:
        if each["name"] == "down_rate":
            each["measured"] *= 1500 / 1480


ALTERED: dict[str, tuple[str, Alter, str]] = {
    "another": ("6", given("lab", "knobs", "link.ip", to="dual"), "link.ip was read back as"),
    "IP not read back": ("dual", without("lab", "knobs", "link.ip"), "link.ip was not read back"),
    "not broken": ("broken", given("lab", "knobs", "link.ip", to="dual"), "asked was 'dual-b"),
    "measured over IPv4": ("6", _of_ipv4, "down_rate: measured 4054"),
    "asked for IPv4": (
        "6", given("trial", "condition", "link", "ip", to="4"), "ip: performed was '4'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", ALTERED)
def test_faults_in_what_was_read_back(loads: dict[str, Done], tmp_path: Path, fault: str) -> None:
    name, alter, says = ALTERED[fault]
    assert_bad(loads[name].judge(alter, tmp_path), says, "lab_mismatch")


@pytest.mark.nightly(but="^(not broken|cookies for IPv4 alone)$")
@pytest.mark.parametrize(
    ("name", "module", "old", "new", "outcome", "says"),
    [pytest.param("dual", "lab/topology.py", 'self.ip == "dual-broken" and role',
                  'self.ip == "dual" and role', "lab_mismatch",
                  "link.ip was read back as 'dual-broken', asked was 'dual'",
                  id="broken, and nobody said so"),
     pytest.param("broken", "lab/topology.py", 'self.ip == "dual-broken" and role',
                  'self.ip == "none" and role', "lab_mismatch",
                  "link.ip was read back as 'dual', asked was 'dual-broken'", id="not broken"),
     pytest.param(
         "6", "lab/tcp.py",
         "                    set_route(control, destination, gateway, metrics=metrics)",
         '                    if "::" not in destination:\n'
         "                        set_route(control, destination, gateway, metrics=metrics)",
         "lab_mismatch", "server: route ::/0 is 'via 2001:db8:0:2::1 dev s0', asked was",
         id="no initial window",
     ),
     pytest.param("dual", "kinds/page_lab.py", "{h: addresses_in(ip, origin_address(i)) for",
                  "{h: addresses_in(ip, origin_address(i))[:1] for", "unproven",
                  "hosts have no address of IPv6, and link.ip = dual", id="names without IPv6"),
     pytest.param("dual, Fast Open", "mechanisms/fast_open/lab.py",
                  'topology.plan.ip == "dual-broken"', 'topology.plan.ip.startswith("dual")',
                  "unproven", "SYNs carry no request", id="cookies for IPv4 alone"),
     pytest.param("6", "lab/ends.py", 'return 48 if ip == "6" else 28', "return 28", "lab_mismatch",
                  "theory 23.325 ms", id="probes longer than theory has them"),
     pytest.param(
         "6", "kinds/page_load/performance.py",
         "client = CLIENTS[condition.client] if site.early is None else site.early.client",
         "client = (__import__('os').system('ip -n client -6 route change default via "
         "2001:db8::1 dev c0 metric 1024 initcwnd 2; ip -n client -6 route change default via "
         "2001:db8::1 dev c0 metric 1024'), site.early.client)[1]",
         "lab_mismatch", "client: a route changed during the load",
         id="a route changed and restored",
     )],
)  # fmt: skip
def test_a_fault_in_guest_code(
    house: House, loads: dict[str, Done], plant: Plant, name: str, module: str, old: str,
    new: str, outcome: str, says: str,
) -> None:  # fmt: skip
    plant(module, old, new)
    assert_refused(house.run(page=PAGE, rtt_ms=20, **LOADS[name]), outcome, says)


@pytest.mark.parametrize(
    ("words", "says"),
    [('traffic = "call"', "neighbours are on IPv4 alone"),
     ('kernel.name = "host"', "link.ip: takes virtual time"),
     ("link.mtu_bytes = 1200", "IPv6 has no link.mtu_bytes below 1280"),
     ('kind = "server_load"\narrivals.rate_per_s = 9', "loads on a server are over IPv4 alone")],
)  # fmt: skip
def test_what_cannot_be_over_ipv6_is_refused_by_name(house: House, words: str, says: str) -> None:
    house.take(PAGE)
    loaded = "" if "kind" in words else f'page = "{PAGE}"\nclient = "graph"\n'
    assert says in house.refused(f'{words}\n{loaded}link.ip = "6"\n')


def test_mininets_prompt_is_of_ipv4(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    house.take(PAGE)
    file = house.folder / "six.toml"
    file.write_text(f'page = "{PAGE}"\nclient = "graph"\nlink.ip = "6"\n')
    assert house.command("shell", str(file), "--script", str(file))[0] == EXIT_CONFIGURATION
    assert "names hosts by addresses of IPv4; take dual" in capsys.readouterr().err
