"""Faults planted in what a guest was given, measured and read back: none may pass as proven.

Most alter what one real trial of each kind wrote down, and have it judged again; the others are in
guest code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.base.errors import EXIT_OK
from testbed.results.folder import read_records
from tests.acceptance.altered import COMMAND, KNOBS, PAGE, Alter, Done, Seen, given, without
from tests.acceptance.house import House, Plant, assert_bad, assert_ok, assert_refused

pytestmark = pytest.mark.guest

SERVER_LOAD = """\
kind = "server_load"
[link]
rtt_ms = 2
down_kbit = 100000
up_kbit = 100000
[server]
price = 80
[arrivals]
rate_per_s = 50
warm_up_s = 1
duration_s = 1
"""


@pytest.fixture(scope="module", autouse=True)
def page(house: House) -> None:
    house.take(PAGE)


@pytest.fixture(scope="module")
def trials(house: House, page: None) -> dict[str, Done]:
    done = {}
    for kind, words in {
        "page_load": ("run", _file(house, "load", _toml(KNOBS))),
        "server_load": ("run", _file(house, "server", SERVER_LOAD)),
        "command": ("run", _file(house, "own", COMMAND)),
        "scenario": ("scenario", "cached-cookie", "--kernel-version", "7.3"),
    }.items():
        folder = house.folder / "results" / kind
        code, said = house.command(*words, "-o", str(folder))
        assert code == EXIT_OK, said
        (record,) = read_records(folder)
        digest = None if record.trial.page is None else house.archive(PAGE).digest
        done[kind] = Done(record, folder, digest)
    return done


def _file(house: House, name: str, text: str) -> str:
    path = house.folder / f"{name}.toml"
    path.write_text(text)
    return str(path)


def _toml(knobs: dict[str, Any]) -> str:
    return (
        f'page = "{knobs["page"]}"\nclient = "{knobs["client"]}"\n[link]\n'
        f"rtt_ms = {knobs['rtt_ms']}\n"
    )


def measured(name: str, **changed: object) -> Alter:
    """Changes a measurement of the lab; without changes it is left out."""

    def alter(seen: Seen) -> None:
        found = seen["lab"]["measurements"]
        (one,) = (m for m in found if m["name"] == name)
        one.update(changed) if changed else found.remove(one)

    return alter


def _of_the_question(seen: Seen) -> None:
    """No packet was sent to measure anything: each answer is computed."""
    for each in seen["lab"]["measurements"]:
        each["measured"] = each["theory"]
    for way in ("down", "up"):
        seen["lab"]["knobs"][f"{way}.calibration"] = "0 delivered, 0 dropped"


def _one_way(seen: Seen) -> None:
    seen["lab"]["measurements"] = [
        m for m in seen["lab"]["measurements"] if not m["name"].startswith("up")
    ]


def _passage(seen: Seen) -> Seen:
    passage: Seen = next(p for p in seen["performed"]["passages"] if p["arrivals"])
    return passage


OF_EVERY_KIND: dict[str, tuple[Alter, str]] = {
    "another seed": (given("trial", "seed", to=9), "seed: performed was 9, asked was 0"),
    "another kernel": (given("trial", "kernel_version", to="6.1"), "kernel_version: performed was"),
    "another repetition": (given("trial", "repetition", to=3), "repetition: performed was 3"),
    "no trial": (without("trial"), "asked was "),
}
FAULTS: dict[str, dict[str, tuple[Alter, str]]] = {
    "page_load": {
        "another page": (given("trial", "condition", "page", to="wsj"),
                         "page: performed was 'wsj'"),
        "another archive's name": (given("archive", "name", to="wsj"), "page: performed was 'wsj'"),
        "another archive": (given("archive", "digest", to="0" * 64), "archive: performed was '000"),
        "no archive": (without("archive"), "page: performed was None"),
        "another rate": (given("trial", "condition", "link", "down_kbit", to=8000),
                         "down_kbit: performed was 8000"),
        "another RTT": (given("trial", "condition", "link", "rtt_ms", to=100.0),
                        "rtt_ms: performed was 100.0"),
        "another client": (given("trial", "condition", "client", to="wget2"),
                           "client: performed was 'wget2'"),
        "a load of another client": (given("load", "client", to="wget2"),
                                     "client: performed was 'wget2'"),
        "another arm": (given("trial", "condition", "tcp", "tfo", to=True),
                        "tfo: performed was True"),
        "RTT not measured": (measured("rtt"), "rtt of the link was not measured"),
        "rate not measured": (measured("down_rate"), "down_rate of the link was not measured"),
        "buffer not measured": (measured("up_buffer"), "up_buffer of the link was not measured"),
        "one direction": (_one_way, "up_rate of the link was not measured"),
        "nothing measured": (given("lab", "measurements", to=[]),
                             "rtt of the link was not measured"),
        "answers of the question": (_of_the_question, "passed 0 delivered, 0 dropped when it was"),
        "no packets": (without("lab", "knobs", "down.calibration"), "down: by its kernel the link"),
        "another rate's theory": (measured("down_rate", theory=8000.0, measured=8000.0),
                                  "down_rate: the lab was held against 8000 kbit/s"),
        "another RTT's theory": (measured("rtt", theory=40.0, measured=40.0),
                                 "rtt: the lab was held against 40 ms"),
        "a wide tolerance": (measured("up_rate", tolerance_pct=50.0, measured=200.0),
                             "up_rate: the lab was held"),
        "no number": (measured("rtt", measured=float("nan")), "rtt: measured nan"),
        "50 us later": (measured("rtt", measured=23.375), "rtt: measured 23.375 ms, theory 23.325"),
        "a sysctl not read": (without("lab", "knobs", "client.net.ipv4.tcp_rmem"),
                              "client.net.ipv4.tcp_rmem was not"),
        "a window not read": (without("lab", "knobs", "server.initcwnd_segments"),
                              "initcwnd_segments was not read"),
        "offloads not read": (without("lab", "knobs", "server.offloads"),
                              "server.offloads was not"),
        "all sysctls not read": (without("lab", "knobs", "server.sysctls"),
                                 "server.sysctls was not"),
        "loss not read": (without("lab", "knobs", "up.loss_pct"),
                          "up.loss_pct was read back as nan"),
        "no knob read": (given("lab", "knobs", to={}), "was not read back"),
        "another arm's Fast Open": (given("lab", "knobs", "client.net.ipv4.tcp_fastopen", to="3"),
                                    "was read back as '3'"),
        "another window": (given("lab", "knobs", "server.initcwnd_segments", to="3"),
                           "was read back as '3'"),
        "not read after the load": (given("lab", "traffic", to={}),
                                    "the lab was not read again after the load"),
    },
    "server_load": {
        "another rate": (given("trial", "condition", "arrivals", "rate_per_s", to=60),
                         "performed was 60"),
        "another mechanism": (given("trial", "condition", "server", "mechanism", to="abort"),
                              "mechanism: performed was"),
        "a calibration without its rates": (measured("down_rate"), "was not measured"),
        "free work": (given("served", "prices_ns", to={}), "the server paid {} ns, asked was"),
        "other prices": (given("served", "prices_ns", "syn", to=1),
                         "'syn': 1} ns, asked was {'syn': 400000"),
        "another time": (given("served", "seconds", to=2), "2 s were measured, asked were 1 s"),
        "fewer connections": (given("served", "started", to=40),
                              "40 connections started when measured, due"),
        "throughput of nobody": (given("served", "replies_per_s", to=500.0),
                                 "500 responses a second for 1 s are more"),
        "failures hidden": (given("served", "failed_pct", to=10.0), "10 % failed, but 0 of 50"),
        "responses before requests": (given("served", "response_p50_ms", to=0.5),
                                      "within 0.5 ms, which 4 ms preclude"),
        "a processor without its ledger": (given("served", "server_cpu_pct", to=None),
                                           "the ledger does not say how busy"),
        "a processor busier than one": (given("served", "server_cpu_pct", to=250.0),
                                        "was busy for 250 % of the time"),
        "clients' sysctls not read": (without("lab", "knobs", "client.net.ipv4.tcp_syn_retries"),
                                      "was read back as None"),
    },
    "command": {"another page": (given("archive", "name", to="wsj"), "page: performed was 'wsj'"),
                "another command": (given("trial", "condition", "command", to="true"),
                                    "command: performed was 'true'"),
                "another end": (given("trial", "condition", "at", to="server"),
                                "at: performed was 'server'"),
                "an RTT not measured": (measured("rtt"), "rtt of the link was not measured"),
                "more output than kept": (given("executed", "output_bytes", to=7),
                                          "wrote 7 bytes to command.out, kept are 0"),
                "less time than none": (given("executed", "duration_ms", to=-1.0),
                                        "the command took -1 ms")},
    "scenario": {
        "another script": (given("trial", "condition", "scenario", to="refused"),
                           "scenario: performed was 'refused'"),
        "delay not measured": (given("lab", "measurements", to=[]),
                               "the delay of the network was not"),
        "another delay": (measured("delay", theory=5.0, measured=5.0),
                          "the delay was held against 5 ms"),
        "a host not counted": (without("counters", "server"), "the server's kernel was not asked"),
        "another line": (lambda seen: seen["performed"]["calls"][0].update(text="wait 1ms"),
                         "is not the script's"),
        "a packet's time": (
            lambda seen: _passage(seen).update(at_ns=_passage(seen)["at_ns"] + 50_000),
            "was at another time than on the network",
        ),
        "a packet too fast": (
            lambda seen: _passage(seen)["arrivals"][0].update(at_ns=_passage(seen)["at_ns"]),
            "took 0 ms",
        ),
    },
}  # fmt: skip
CASES = [
    (kind, name, *fault)
    for kind, own in FAULTS.items()
    for name, fault in {**OF_EVERY_KIND, **own}.items()
]


@pytest.mark.parametrize("kind", FAULTS)
def test_without_a_fault_the_same_record(
    trials: dict[str, Done], kind: str, tmp_path: Path
) -> None:
    record = trials[kind].judge(lambda _: None, tmp_path)
    assert_ok(record)
    assert record.measured == trials[kind].record.measured


@pytest.mark.parametrize(
    ("kind", "alter", "says"),
    [pytest.param(kind, alter, says, id=f"{kind}: {name}") for kind, name, alter, says in CASES],
)
def test_a_planted_fault_prints_no_number(
    trials: dict[str, Done], kind: str, alter: Alter, says: str, tmp_path: Path
) -> None:
    record = trials[kind].judge(alter, tmp_path)
    assert_bad(record, says, "lab_mismatch", "unproven", "failed")


def test_a_page_that_is_not_the_environment_s(trials: dict[str, Done], tmp_path: Path) -> None:
    record = trials["page_load"].judge(lambda _: None, tmp_path, archive="f" * 64)
    assert_bad(record, "asked was 'fff", "lab_mismatch")


DURING = """
    import subprocess
    subprocess.run({words!r}, shell=True, check=True)
    client = """


@pytest.mark.nightly(but="^(rate|computed|rmem_max)")
@pytest.mark.parametrize(
    ("module", "old", "new", "says"),
    [pytest.param("kinds/workspace.py", "condition, tag = trial.linked, site.tag",
                  "from dataclasses import replace; condition, tag = replace(trial.linked, "
                  "link=replace(trial.linked.link, down_kbit=8000)), site.tag",
                  "down_rate: the lab was held against 8000 kbit/s", id="rate 8 for 4 Mbit/s"),
     pytest.param("kinds/workspace.py", "condition, tag = trial.linked, site.tag",
                  "from dataclasses import replace; condition, tag = replace(trial.linked, "
                  "link=replace(trial.linked.link, rtt_ms=10)), site.tag",
                  "rtt: the lab was held against 13.325 ms", id="RTT 10 for 20 ms"),
     pytest.param("runner/trial.py",
                  "trial = read_trial(json.loads((site.out / TRIAL_FILE).read_text()))",
                  "trial = read_trial(json.loads((site.out / TRIAL_FILE).read_text())); "
                  "trial = replace(trial, seed=trial.seed + 1)",
                  "seed: performed was 1, asked was 0", id="another seed"),
     pytest.param("lab/link/netem.py", "_to_ns(way.delay_ms), NETEM",
                  "_to_ns(way.delay_ms) + 50_000, NETEM", "rtt: measured 23.4",
                  id="50 us later, both ways"),
     pytest.param(
         "lab/laboratory.py", "measurements = calibrate(topology, spec, exactness, traces)",
         "from testbed.lab.calibration import expect; measurements = expect(spec, exactness)",
         "passed 0 delivered, 0 dropped when it was measured", id="computed, not measured",
     ),
     pytest.param("lab/calibration.py",
                  '            *_measure_train("up", *ends.ways["up"], spec, exactness, traces),\n',
                  "", "up_rate of the link was not measured", id="no uplink calibration"),
     pytest.param(
         "kinds/page_load/performance.py",
         "client = CLIENTS[condition.client] if site.early is None else site.early.client",
         DURING.format(
             words="ip -n client neigh change 10.0.0.1 lladdr 02:00:00:00:00:99 "
             "dev c0 nud permanent; ip -n client neigh change 10.0.0.1 lladdr $(ip -n near -o "
             "link show dev n0 | sed 's/.*ether //; s/ .*//') dev c0 nud permanent"
         ) + "CLIENTS[condition.client] if site.early is None else site.early.client",
         "client: a neighbour changed during the load", id="neighbour changed and restored",
     ),
     pytest.param(
         "kinds/page_load/performance.py",
         "client = CLIENTS[condition.client] if site.early is None else site.early.client",
         DURING.format(
             words="f=/proc/sys/net/core/rmem_max; v=$(cat $f); echo 4096 > $f; echo $v > $f"
         ) + "CLIENTS[condition.client] if site.early is None else site.early.client",
         "machine: net.core.rmem_max was written during the load", id="rmem_max and restored",
     )],
)  # fmt: skip
def test_a_fault_in_guest_code(
    house: House, plant: Plant, module: str, old: str, new: str, says: str
) -> None:
    plant(module, old, new)
    assert_refused(house.run(**KNOBS), "lab_mismatch", says)
