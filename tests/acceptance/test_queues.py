"""Queues in tc's words, in a real lab: set, told, kept through a load, or refused by name."""

from __future__ import annotations

import json

import pytest

from testbed.base.errors import EXIT_CONFIGURATION, EXIT_MISSING, EXIT_OK, EXIT_OUT_OF_TOLERANCE
from testbed.model import CAPTURE_FILE, FIFO
from tests.acceptance.house import House, Plant, Ran, assert_ok

pytestmark = pytest.mark.guest

# Fifty pictures at once, 1.5 MB over a line of 4 Mbit/s: the buffer of 128 KB is full.
TABLE = "\n".join((
    "id,parent,host,mime,status,transfer_bytes,body_bytes,how,gap_ms,start_ms,dur_ms,protocol",
    "0,,www.full.test,text/html,200,9000,9000,root,,0,40,http",
    *(f"{n},0,www.full.test,image/png,200,30000,29500,url-in-main-html,5,45,30,http"
      for n in range(1, 51)),
))  # fmt: skip
PAGE = "full"
PFIFO, FQ_CODEL = "pfifo limit 100", "fq_codel limit 1000 target 60ms"


@pytest.fixture(scope="module")
def page(house: House, tmp_path_factory: pytest.TempPathFactory) -> str:
    table = tmp_path_factory.mktemp("table") / "resources.csv"
    table.write_text(TABLE)
    house.import_page(table, PAGE, "--title", "Full", "--url", "http://www.full.test/")
    return PAGE


@pytest.fixture(scope="module")
def ran(house: House, page: str) -> Ran:
    return house.run(page=page, client="graph", **{"link.qdisc": [FIFO, PFIFO, FQ_CODEL, "fq"]})


def test_a_queue_is_set_told_and_the_same_after_the_load(ran: Ran) -> None:
    assert ran.code == EXIT_OK
    told = {}
    for record in ran.records:
        assert_ok(record)
        assert record.lab is not None
        text = record.trial.linked.link.qdisc
        told[text] = [record.lab.knobs.get(f"{way}.qdisc") for way in ("down", "up")]
        # The line is measured with the buffer that was asked for, whatever comes after it.
        measured = {one.name: one for one in record.lab.measurements}
        assert measured["down_buffer"].measured == measured["down_buffer"].theory == 88
    assert told[FIFO] == [None, None]
    assert told[PFIFO] == ["pfifo limit 100p"] * 2
    for said in told[FQ_CODEL]:
        assert said is not None and said.startswith("fq_codel limit 1000p flows 1024")
        assert " target 60ms " in said
    for said in told["fq"]:
        assert said is not None and said.startswith("fq limit 10000p")


def test_each_queue_is_another_load(ran: Ran) -> None:
    captures = {record.artefacts[CAPTURE_FILE] for record in ran.records}
    assert len(captures) == len(ran.records) == 4
    traffic = {r.trial.linked.link.qdisc: r.lab.traffic for r in ran.records if r.lab}
    assert traffic[FIFO]["down.dropped"] > 0
    assert traffic["fq"]["down.dropped"] < traffic[FIFO]["down.dropped"]


def test_a_seed_gives_the_same_bits_with_a_queue(house: House, page: str, ran: Ran) -> None:
    again = house.run(page=page, client="graph", **{"link.qdisc": FQ_CODEL}).records[0]
    first = next(r for r in ran.records if r.trial_id == again.trial_id)
    assert again.artefacts[CAPTURE_FILE] == first.artefacts[CAPTURE_FILE]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fq_codel nonsense 5", 'What is "nonsense"?'),  # tc's own words
        ("no_such_queue", "kind is unknown"),  # the kernel's
        ("pfifo limit -1", "limit"),
    ],
)
def test_what_tc_or_the_kernel_refuses_is_unsupported(
    house: House, page: str, text: str, said: str
) -> None:
    ran = house.run(page=page, client="graph", **{"link.qdisc": text})
    (record,) = ran.records
    assert (ran.code, record.outcome, record.measured) == (EXIT_MISSING, "unsupported", None)
    assert record.reason is not None
    assert record.reason.startswith(f"link.qdisc = {text}: this queue cannot be set; write it as ")
    assert said in record.reason


@pytest.mark.parametrize("text", ["", " fq", "fq  limit 10", "fq; reboot", "Fq", "-batch file"])
def test_what_cannot_be_a_queue_is_refused_before_a_run(
    house: House, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = house.folder / "wrong.toml"
    config.write_text(
        f'page = "tum-website"\nclient = "graph"\n[link]\nqdisc = {json.dumps(text)}\n'
    )
    code, _ = house.command("plan", str(config))
    assert code == EXIT_CONFIGURATION
    assert (
        f'wrong.toml:4: link.qdisc: "{text}" is not "fifo", or what follows `tc'
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("fq_codel limit 7", "was 'fq_codel "),
        ("pfifo limit 7", "and is 'pfifo "),
        ("fq_codel limit 1000 target 61ms", "was 'fq_codel "),
    ],
)
def test_a_queue_that_changes_during_the_load(
    house: House, plant: Plant, page: str, change: str, told: str
) -> None:
    """Just before it is read again: the load itself has ended well."""
    words = ("tc", "qdisc", "replace", "dev", "f0", "parent", "1:1", *change.split())
    old = "        state = _read_state(topology, condition)\n        asked = "
    planted = (
        "        from testbed.base import proc\n"
        "        with topology.far.entered():\n"
        f"            proc.run({words!r})\n"
    )
    plant("lab/laboratory.py", old, planted + old)
    ran = house.run(page=page, client="graph", **{"link.qdisc": FQ_CODEL})
    (record,) = ran.records
    assert (record.outcome, ran.code) == ("lab_mismatch", EXIT_OUT_OF_TOLERANCE)
    assert record.reason is not None
    assert "far: a discipline changed during the load" in record.reason
    assert "far: discipline of f0 10001 was " in record.reason
    assert told in record.reason


def test_a_queue_that_nobody_asked_for(house: House, plant: Plant, page: str) -> None:
    """A plain FIFO was asked for, and there is another queue when the lab is read."""
    old = "        link.complete()\n"
    planted = (
        "        from testbed.lab.link.queue import set_queue\n"
        "        set_queue(topology.far, 'f0', 'pfifo limit 100')\n"
    )
    plant("lab/laboratory.py", old, old + planted)
    (record,) = house.run(page=page, client="graph").records
    assert record.outcome == "lab_mismatch"
    assert "far: f0 10001 has a discipline that nobody asked for: pfifo" in str(record.reason)
