"""Traces in a real lab: to the microsecond, the same at each boot, and no other passes as one."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

from testbed.base.errors import EXIT_CONFIGURATION, EXIT_OK
from testbed.model import CAPTURE_FILE
from testbed.model.trace import WAYS, Trace
from testbed.results.folder import TRACES_FOLDER
from testbed.results.manifest import load_manifest
from testbed.traces.catalogue import read_all
from tests.acceptance.altered import PAGE, Alter, Done, given, without
from tests.acceptance.house import House, Plant, Ran, assert_bad, assert_ok, assert_refused

pytestmark = pytest.mark.guest

BOTH = {"link.trace_down": "down.trace", "link.trace_up": "up.trace"}


def irregular(seed: int, most_ms: int) -> str:
    """A minute of opportunities, one ms to ``most_ms`` apart."""
    draw, at, lines = Random(seed), 0, ""  # noqa: S311 - the same each time
    while at < 60_000:
        at += draw.randint(1, most_ms)
        lines += f"{at}\n"
    return lines


@pytest.fixture(scope="module", autouse=True)
def at_home(house: House) -> None:
    house.take(PAGE)
    (house.folder / "down.trace").write_text(irregular(1, 4))
    (house.folder / "up.trace").write_text(irregular(2, 9).replace("\n", "\r\n"))
    (house.folder / "short.trace").write_text("".join(f"{ms}\n" for ms in range(0, 90, 3)))


def run(house: House, **knobs: object) -> Ran:
    return house.run(**{"page": PAGE, "client": "graph", "link.rtt_ms": 20} | BOTH | knobs)


@pytest.fixture(scope="module")
def ran(house: House) -> Ran:
    drawn = run(house, **{"link.trace_phase": "seed", "sweep.framing_bytes": [0, 4]})
    assert drawn.code == EXIT_OK, drawn.said
    return drawn


def traces_of(house: House) -> dict[str, Trace]:
    return read_all([*BOTH.values()], house.folder, Path())


def test_the_lab_measures_itself_by_its_traces(ran: Ran, house: House) -> None:
    for record in ran.records:
        assert_ok(record)
        assert record.lab is not None
        measured = {each.name: each for each in record.lab.measurements}
        for way in WAYS:
            assert measured[f"{way}_trace"].measured < 1.0  # us
            crc = traces_of(house)[f"{way}.trace"].crc
            assert f" crc {crc} " in record.lab.knobs[f"{way}.trace"]
            assert record.lab.knobs[f"{way}.trace_end"] == "loop"


def test_the_content_is_part_of_the_environment_and_kept(ran: Ran, house: House) -> None:
    parts = load_manifest(ran.folder).environment.parts
    for name, trace in traces_of(house).items():
        assert parts[f"trace.{name}"] == sha256(trace.packed).hexdigest()
        kept = (ran.folder / TRACES_FOLDER / name).read_text()
        assert kept == (house.folder / name).read_text().replace("\r\n", "\n")


def test_a_pack_brings_its_traces_along(house: House, ran: Ran, tmp_path: Path) -> None:
    file, folder = tmp_path / "mine.zip", tmp_path / "unpacked"
    assert house.command("pack", str(ran.folder), "-o", str(file))[0] == EXIT_OK
    own = [house.folder / name for name in BOTH.values()]
    for path in own:
        path.rename(path.with_suffix(".gone"))
    try:
        code, said = house.command(
            *("unpack", str(file), str(folder), "--rerun", "-o", str(tmp_path / "again"))
        )
    finally:
        for path in own:
            path.with_suffix(".gone").rename(path)
    assert code == EXIT_OK, said
    assert "SAME: 2 cells, 2 same" in said


def test_equal_boots(ran: Ran, house: House) -> None:
    again = run(house, **{"link.trace_phase": "seed", "sweep.framing_bytes": [0, 4]})
    for record in ran.records:
        name = Path("trials", record.trial_id, CAPTURE_FILE)
        assert (ran.folder / name).read_bytes() == (again.folder / name).read_bytes()


def test_a_seed_draws_where_the_load_starts(house: House, ran: Ran) -> None:
    other = run(house, **{"link.trace_phase": "seed", "seed": 1})
    (record,) = other.records
    assert_ok(record)
    starts = {
        int(each.lab.knobs["down.trace_origin_ns"]) % 10**9
        for each in (record, *ran.records)
        if each.lab is not None
    }
    assert len(starts) == 2


@pytest.mark.nightly(but="^fq_codel$")
@pytest.mark.parametrize("qdisc", ["fq_codel", "pfifo limit 20"])
def test_queues_work_behind_a_trace(house: House, qdisc: str) -> None:
    assert_ok(run(house, **{"link.qdisc": qdisc}).one())


def test_traces_of_the_tree(house: House) -> None:
    knobs = {"link.trace_down": "wifi-contention-down", "link.trace_up": "lte-drive-up"}
    (record,) = run(house, **knobs).records
    assert_ok(record)


IMPAIRED: dict[str, dict[str, object]] = {
    "one way": {"link.delay_up_ms": 15}, "loss": {"link.loss_pct": 1},
    "loss, and a small buffer": {"link.loss_up_pct": 1, "link.buffer_bytes": 9000},
    "copies": {"link.duplicate_pct": 5}, "damage": {"link.corrupt_pct": 2},
    "changes": {
        "link.changes": "at 0.1 s: rtt_ms 60; at 0.3 s: down for 0.2 s; at 0.6 s: rtt_ms 9"
    },
    "all": {"link.delay_up_ms": 4, "link.loss_down_pct": 0.5, "link.duplicate_pct": 2,
            "link.corrupt_pct": 1, "link.changes": "at 0.1 s: rtt_ms 60; at 0.2 s: rtt_ms 9"},
}  # fmt: skip


@pytest.mark.nightly(but="^all$")
@pytest.mark.parametrize("name", IMPAIRED)
def test_impairments_work_behind_a_trace(house: House, name: str) -> None:
    knobs = {"link.trace_down": "wifi-contention-down", "link.trace_up": "5g-blockage-up"}
    for traces in ({}, knobs):
        (record,) = run(house, **traces, **IMPAIRED[name]).records
        assert_ok(record)


def test_once_and_then_nothing(house: House) -> None:
    once = {"link.trace_down": "short.trace", "link.trace_end": "once"}
    (record,) = run(house, **once, timeout_s=20).records
    assert_bad(record, "request failed: ", "failed", "timeout")


def test_a_trace_that_is_not_one(house: House) -> None:
    (house.folder / "bad.trace").write_text("3\nx\n1\n")
    code, said = house.command("run", *wrong(house, "bad.trace"))
    assert code == EXIT_CONFIGURATION
    code, said = house.command("run", *wrong(house, "none.trace"))
    assert code == EXIT_CONFIGURATION, said


def wrong(house: House, name: str) -> tuple[str, ...]:
    path = house.folder / "wrong.toml"
    path.write_text(f'page = "{PAGE}"\nclient = "graph"\n[link]\ntrace_down = "{name}"\n')
    return str(path), "-o", str(house.folder / "results" / "wrong")


SET = "file=str(TRACES / trace)"
BEGUN = "self.begun.update(origins_ns)"
PACKED = "_TRACE.pack(wanted.origin_ns, limit, room, flags, 0, 0, 0)"
READ = "found = replace(found, origin_ns=origin_ns, once=bool(flags & _TRACE_ONCE))"
LATE = (
    ("lab/link/discipline.py", PACKED,
     PACKED.replace("wanted.origin_ns", "wanted.origin_ns and wanted.origin_ns + 10**6")),
    ("lab/link/discipline.py", READ,
     READ.replace("origin_ns=origin_ns", "origin_ns=origin_ns and origin_ns - 10**6")),
)  # fmt: skip
"""A trace that begins 1 ms later, and says that it does not."""
SHIFTED = """file=_shifted(trace)"""
SHIFT = '''
def _shifted(name: str) -> str:
    """A file with the same trace, a ms later."""
    from pathlib import Path
    from testbed.model.trace import Trace
    path = Path("/tmp") / name
    path.write_bytes(Trace(type(read_trace(name).times)("I", [
        ms + 1 for ms in read_trace(name).times])).packed)
    return str(path)


DEVICES = ('''
SLOWER = (
    "wanted = wanted_disciplines(replace(phase.spec, "
    "rtt_ms=phase.spec.rtt_ms + 2 * bool(phase.at_ns))"
)
FAULTS: dict[str, tuple[tuple[tuple[str, str, str], ...], dict[str, object], str]] = {
    "shifted by 1 ms": ((("lab/link/netem.py", SET, SHIFTED),
                         ("lab/link/netem.py", "\nDEVICES = (", SHIFT)),
                        {}, "down_trace: measured "),
    "another trace": ((("lab/link/netem.py", SET, "file=str(TRACES / self.spec.trace_up)"),), {},
                      "down_trace: measured "),
    "begun 1 ms later": (
        (("lab/link/netem.py", BEGUN,
          "self.begun.update({way: ns + 10**6 for way, ns in origins_ns.items()})"),),
        {}, "down.trace_origin_ns: down.trace began 1 ms after the moment",
    ),
    "delays of another time": (
        (("lab/link/changes.py", "(load_ns + phase.at_ns)", "(load_ns + phase.at_ns + 10**7)"),),
        {"link.changes": "at 0.05 s: rtt_ms 60"},
        "changes: 'rtt_ms 60, down_kbit 4000, up_kbit 256' was asked for at 50 ms, began at 60.",
    ),
    "another delay behind a trace": (
        (("lab/link/changes.py", "wanted = wanted_disciplines(phase.spec", SLOWER),),
        {"link.changes": "at 0.05 s: rtt_ms 60"},
        "packets came down at no opportunity of the trace down.trace, the first at",
    ),
    "begun 1 ms later, and not told": (
        LATE, {}, "packets came down at no opportunity of the trace down.trace, the first at",
    ),
    "of another seed": ((("lab/laboratory.py", "traces, seed, load_ns",
                          "traces, seed + 1, load_ns"),),
                        {"link.trace_phase": "seed"},
                        "ms after the moment that the trial's seed says"),
    "looped instead of once": ((("lab/link/netem.py", 'once=self.spec.trace_end == "once"',
                                 "once=False"),),
                               {"link.trace_down": "short.trace", "link.trace_end": "once"},
                               "down.trace_end was read back as 'loop', asked was 'once'"),
    "looped instead of once, and not told": (
        (("lab/link/discipline.py", "flags = _TRACE_ONCE if wanted.once else 0", "flags = 0"),
         ("lab/link/discipline.py", READ,
          READ.replace("once=bool(flags & _TRACE_ONCE)", "once=origin_ns > 0"))),
        {"link.trace_down": "short.trace", "link.trace_end": "once"},
        "packets came down at no opportunity of the trace short.trace, the first at",
    ),
    "up without": ((("lab/link/netem.py", "    if trace_of(spec, each.name):\n",
                     '    if spec.trace_down and each.name == "down":\n'),
                    ("lab/link/netem.py", "0 if trace_of(spec, each.name) else each.rate_kbit",
                     '0 if spec.trace_down and each.name == "down" else each.rate_kbit'),
                    ("lab/link/netem.py", "if trace := trace_of(self.spec, each.name):",
                     'if trace := self.spec.trace_down * (each.name == "down"):')),
                   {}, "up_trace: measured "),
    "up without, and measured so": (
        (("kinds/workspace.py", "condition, tag = trial.linked, site.tag",
          "from dataclasses import replace; condition, tag = replace(trial.linked, "
          'link=replace(trial.linked.link, trace_up="")), site.tag'),),
        {}, "up_trace of the link was not measured",
    ),
    "another way up": ((("lab/link/netem.py", "_to_ns(way.delay_ms)", "_to_ns(spec.rtt_ms / 2)"),),
                       {"link.delay_up_ms": 15}, "up_delay: measured "),
    "losses that nobody asked for": (
        (("lab/link/netem.py", "NETEM_LIMIT_PACKETS, overhead, way.loss_pct, **chances",
          "NETEM_LIMIT_PACKETS, overhead, 5 * way.loss_pct, **chances"),),
        {"link.loss_up_pct": 2}, "up_loss: measured ",
    ),
    "two packets an opportunity": ((("lab/link/discipline.py", PACKED,
                                     PACKED.replace("room", "2 * room")),),
                                   {}, "down_trace: measured "),
}  # fmt: skip


@pytest.mark.nightly(but="^begun 1 ms later, and not told$")
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_prints_no_number(house: House, plant: Plant, name: str) -> None:
    changes, knobs, says = FAULTS[name]
    for change in changes:
        plant(*change)
    outcome = "unproven" if says.startswith("packets") else "lab_mismatch"
    assert_refused(run(house, **knobs), outcome, says)


ALTERED: dict[str, tuple[Alter, str]] = {
    "another trace told": (
        given("lab", "knobs", "down.trace", to="trace crc 1"),
        "down.trace was read back as 'trace crc 1', down.trace is 'trace limit_bytes",
    ),
    "no trace told": (without("lab", "knobs", "up.trace"), "up.trace was read back as 'none'"),
    "no end told": (without("lab", "knobs", "up.trace_end"), "up.trace_end was read back as None"),
    "no beginning told": (
        without("lab", "knobs", "up.trace_origin_ns"),
        "up.trace_origin_ns: up.trace began ",
    ),
    "a second later": (
        lambda seen: seen["lab"]["knobs"].update({
            f"{way}.trace_origin_ns": str(
                int(seen["lab"]["knobs"][f"{way}.trace_origin_ns"]) + 10**9
            ) for way in WAYS
        }),
        "at no opportunity of the trace down.trace",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ALTERED)
def test_an_altered_observation_prints_no_number(
    ran: Ran, house: House, name: str, tmp_path: Path
) -> None:
    record, (alter, says) = ran.records[0], ALTERED[name]
    done = Done(record, ran.folder, house.archive(PAGE).digest, traces_of(house))
    assert_ok(done.judge(lambda _: None, tmp_path / "as it was"))
    altered = done.judge(alter, tmp_path / "altered")
    assert_bad(altered, says, "lab_mismatch", "unproven", "failed")
