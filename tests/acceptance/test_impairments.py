"""Impairments in a real lab: drawn by the seed, measured, proven, or refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from testbed.base.errors import EXIT_MISSING
from testbed.model import CAPTURE_FILE, Record
from tests.acceptance.house import House, Plant, Ran, assert_ok, assert_refused

pytestmark = pytest.mark.guest

PAGE = "tum-website"
BURSTS = "p 3 r 40 1-h 100 1-k 0"
CHANGES = "at 0.2 s: down for 0.3 s; at 0.7 s: rtt_ms 80, down_kbit 1000"
IMPAIRMENTS: dict[str, dict[str, Any]] = {
    "delay up": {"delay_up_ms": 5}, "loss up": {"loss_up_pct": 3},
    "bursts": {"loss_bursts": BURSTS, "loss_up_pct": 0}, "uniform": {"delay_jitter_ms": 5},
    "normal": {"delay_jitter_ms": 3, "delay_distribution": "normal"},
    "pareto": {"delay_jitter_ms": 5, "delay_distribution": "pareto"},
    "reordering": {"reorder_pct": 5, "reorder_ms": 15}, "copies": {"duplicate_pct": 5},
    "damage": {"corrupt_pct": 3}, "changes": {"changes": CHANGES},
    "all": {"loss_bursts": BURSTS, "delay_jitter_ms": 3, "reorder_pct": 2, "duplicate_pct": 3,
            "corrupt_pct": 1, "delay_up_ms": 15, "changes": CHANGES},
}  # fmt: skip


def run(house: House, **link: Any) -> Ran:
    house.take(PAGE)
    knobs = {f"link.{name}": value for name, value in {"rtt_ms": 40, **link}.items()}
    return house.run(page=PAGE, client="graph", **knobs)


def one(ran: Ran) -> Record:
    (record,) = ran.records
    return record


@pytest.mark.nightly(but="^all$")
@pytest.mark.parametrize("name", IMPAIRMENTS)
def test_an_impairment_is_measured_proven_and_the_same_again(house: House, name: str) -> None:
    record = one(run(house, **IMPAIRMENTS[name]))
    assert_ok(record)
    assert record.lab is not None
    measured = {each.name for each in record.lab.measurements}
    assert {
        "delay up": {"up_delay"}, "loss up": {"up_loss"}, "bursts": {"down_loss", "down_bursts"},
        "uniform": {"down_jitter", "up_jitter"}, "reordering": {"down_late", "up_late"},
        "copies": {"down_copies", "up_copies"}, "damage": {"down_loss", "up_loss"},
    }.get(name, set()) <= measured  # fmt: skip
    again = one(run(house, **IMPAIRMENTS[name]))
    assert again.artefacts[CAPTURE_FILE] == record.artefacts[CAPTURE_FILE]
    assert again.lab == record.lab


def test_another_seed_draws_others_and_each_direction_its_own(house: House) -> None:
    house.take(PAGE)
    link = {"link.rtt_ms": 40, "link.delay_jitter_ms": 5}
    first, second = house.run(page=PAGE, client="graph", repetitions=2, **link).records
    assert first.lab is not None and second.lab is not None
    told = {lab.knobs[f"{way}.netem"] for lab in (first.lab, second.lab) for way in ("down", "up")}
    assert len({text.rpartition(" ")[2] for text in told}) == 4
    assert first.artefacts[CAPTURE_FILE] != second.artefacts[CAPTURE_FILE]


@pytest.mark.parametrize("version", ["6.12", "6.1"])
@pytest.mark.nightly
def test_older_kernels(house: House, version: str) -> None:
    """One without a seed of its own draws from the guest's; none of them counts copies."""
    house.take(PAGE)
    link = {"link.rtt_ms": 40, "kernel.version": version, "page": PAGE, "client": "graph"}
    drawn = {"link.loss_bursts": BURSTS, "link.delay_jitter_ms": 3, "link.reorder_pct": 3}
    first, second = (house.run(**link, **drawn).records[0] for _ in range(2))
    assert_ok(first)
    assert first.artefacts[CAPTURE_FILE] == second.artefacts[CAPTURE_FILE]
    ran = house.run(**link, **{"link.duplicate_pct": 1})
    assert (ran.code, ran.records[0].outcome) == (EXIT_MISSING, "unsupported")
    assert "does not count what it doubles" in str(ran.records[0].reason)


NETEM, TABLES = "lab/link/netem.py", "lab/link/tables.py"
CHANGING = "lab/link/changes.py"
FAULTS: dict[str, tuple[dict[str, Any], str, str, str, str]] = {
    "another loss": ({"loss_pct": 2}, NETEM, "overhead, way.loss_pct,",
                     "overhead, way.loss_pct * 2,", "was read back as"),
    "loss in one direction only": ({"loss_pct": 2}, NETEM, "overhead, way.loss_pct,",
                                   'overhead, way.loss_pct * (each.name == "up"),',
                                   "down_loss: measured 0"),
    "loss claimed, and none": ({"loss_pct": 2}, NETEM, "self._set(self._drawing())",
                               "self.draw_nothing()", "down_loss: measured 0"),
    "no jitter": ({"delay_jitter_ms": 5}, NETEM, '"jitter_ns": _to_ns(way.jitter_ms)',
                  '"jitter_ns": 0', "down_jitter: measured 0.4995"),
    "another distribution": ({"delay_jitter_ms": 5, "delay_distribution": "pareto"}, NETEM,
                             "make_delay_table(way.distribution)", 'make_delay_table("uniform")',
                             "down_jitter: measured 0."),
    "nothing late": ({"reorder_pct": 5}, TABLES, "[DISTRIBUTION_SCALE] * late", "[0] * late",
                     "down_late: measured 0"),
    "no copies": ({"duplicate_pct": 5}, NETEM, '"duplicate_pct": way.duplicate_pct',
                  '"duplicate_pct": 0', "down_copies: measured 0"),
    "no damage": ({"corrupt_pct": 5}, NETEM, '"corrupt_pct": way.corrupt_pct', '"corrupt_pct": 0',
                  "down_loss: measured 0"),
    "a seed of nobody": ({"loss_pct": 2}, NETEM, 'struct.pack("=Q", seed_of(seed, name)).hex()',
                         '""', "down.netem was read back as"),
    "the other way's delay": ({"delay_up_ms": 5}, "model/impairments.py",
                              "spec.rtt_ms - up_ms, spec.loss_down_pct",
                              "up_ms, spec.loss_down_pct", "rtt: measured"),
    "the ways' delays swapped": (
        {"delay_up_ms": 5}, "model/impairments.py",
        "spec.rtt_ms / 2 if spec.delay_up_ms is None else spec.delay_up_ms",
        "spec.rtt_ms / 2 if spec.delay_up_ms is None else spec.rtt_ms - spec.delay_up_ms",
        "up_delay: measured",
    ),
    "a change 1 ms late": ({"changes": CHANGES}, CHANGING,
                           "stop.wait(_left_s(load_ns + phase.at_ns))",
                           "stop.wait(_left_s(load_ns + phase.at_ns + 1_000_000))",
                           "began at 201.0"),
    "a change that is not made": ({"changes": CHANGES}, CHANGING,
                                  "    for control, body in orders:",
                                  "    for control, body in orders[1:]:", "was not set to"),
    "no change is made": ({"changes": CHANGES}, CHANGING,
                          "                for phase, orders in plan:",
                          "                for phase, orders in plan[:0]:",
                          "was not performed in a load of"),
    "another rate": ({"changes": CHANGES}, CHANGING, "heads[place] + _describe(one)",
                     "heads[place] + _describe(replace(one, settings=dict(one.settings) | "
                     '{"rate_bytes_s": 250_000.0}))',
                     "a discipline changed during the load"),
    "a line that is up again too soon": ({"changes": CHANGES}, CHANGING,
                                         "settings=kept | {\"loss_pct\": LOST}",
                                         "settings=kept | {\"loss_pct\": 0.0}",
                                         "packets came down while the line was down"),
}  # fmt: skip


@pytest.mark.nightly(but="^a change 1 ms late$")
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_prints_no_number(house: House, plant: Plant, name: str) -> None:
    link, module, old, new, says = FAULTS[name]
    plant(module, old, new)
    ran = run(house, **link)
    assert_refused(ran, one(ran).outcome, says)
    assert one(ran).outcome in ("lab_mismatch", "unproven")


def test_all_that_no_link_could_do_is_refused_at_once(house: House) -> None:
    house.take(PAGE)
    said = house.refused(
        f'page = "{PAGE}"\nclient = "graph"\ntimeout_s = 5\n[link]\nrtt_ms = 10\n'
        f"delay_up_ms = 3\nloss_pct = 1\nloss_bursts = {json.dumps(BURSTS)}\n"
        'changes = "at 4 s: down for 2 s"\n[sweep]\ndelay_jitter_ms = [2, 5]\n'
    )
    for words in (
        "wrong.toml:8: link.loss_bursts: takes the place of loss_pct",
        "wrong.toml:9: link.changes: the last is over after 6 s",
        "wrong.toml:11: sweep.delay_jitter_ms: a uniform jitter of 5 ms can take more than",
    ):
        assert words in said
    assert said.count("delay_jitter_ms:") == 1


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("loss_bursts", "p 1 r 30"), ("loss_bursts", "p 1 r 30 h 0 k 0"), ("changes", "down"),
        ("changes", "at -1 s: down for 1 s"), ("changes", "at 1 s: loss_pct 3"),
        ("changes", "at 1 s: down for 1 s;at 3 s: rtt_ms 3"), ("loss_up_pct", 100.1),
        ("duplicate_pct", -1), ("delay_distribution", "gauss"), ("delay_jitter_ms", -1),
    ],
)  # fmt: skip
def test_what_is_no_impairment_is_refused_before_a_run(house: House, knob: str, value: Any) -> None:
    wrong = f'page = "{PAGE}"\nclient = "graph"\n[link]\n{knob} = {json.dumps(value)}\n'
    assert f"wrong.toml:4: link.{knob}: " in house.refused(wrong)
