"""Queues in tc's words, in a real lab: set, told, kept through a load, or refused by name."""

from __future__ import annotations

import json

import pytest

from testbed.base.errors import EXIT_MISSING, EXIT_OK
from testbed.model import CAPTURE_FILE, FIFO
from tests.acceptance.house import House, Plant, Ran, assert_ok, assert_refused
from tests.measured import load_of

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
def page(house: House) -> str:
    return house.import_table(TABLE, PAGE, "http://www.full.test/")


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


QUEUES = {
    "codel limit 50 target 60ms interval 200ms ecn": "target 60ms interval 200ms ecn",
    "pie limit 100 target 30ms tupdate 20ms": "pie limit 100p target 30ms tupdate 20ms",
    "fq_pie limit 1000 target 30ms": "fq_pie limit 1000p flows 1024 target 30ms",
    "cake unlimited besteffort": "cake bandwidth unlimited besteffort",
    "cake bandwidth 200kbit rtt 50ms": "cake bandwidth 200Kbit diffserv3",
    "red limit 131072 min 5000 max 15000 avpkt 1000 burst 8 probability 0.1 adaptive":
        "red limit 128Kb min 5000b max 15000b adaptive",
    "choke limit 100 bandwidth 4mbit min 5 max 15 avpkt 1000 burst 8": "choke limit 100p min 5p",
    "sfq perturb 10": "perturb 10sec",
    "sfq limit 100 redflowlimit 40000 min 4000 max 12000 probability 0.1 headdrop": "min 4000b",
    "fq limit 100": "fq limit 100p",
    "dualpi2 target 20ms step_thresh 4p": "target 20ms tupdate 16ms",
    "prio bands 5": "prio bands 5",
    "bfifo limit 20000": "bfifo limit 20000b",
}  # fmt: skip


@pytest.mark.nightly(but="^codel")
@pytest.mark.parametrize("text", QUEUES)
def test_each_queue_of_the_kernel_holds_in_its_direction(
    house: House, page: str, text: str
) -> None:
    """And another in the other direction."""
    queues = {"link.qdisc_down": text, "link.qdisc_up": "fq_codel target 47ms"}
    record = house.run(page=page, client="graph", **queues).one()
    assert_ok(record)
    assert record.lab is not None
    told = record.lab.knobs["down.qdisc"]
    assert told.startswith(text.partition(" ")[0])
    assert QUEUES[text] in told
    assert " target 47ms " in record.lab.knobs["up.qdisc"]
    traffic = record.lab.traffic
    # A shaper of 200 kbit/s is what the page waits for, whatever the line could carry.
    if "bandwidth 200" in text:
        assert load_of(record).plt_ms > 1_500_000 * 8 / 200
    own = [name for name in traffic if name.startswith("down.queue.")]
    assert bool(own) == (not text.startswith("bfifo")), own
    if text.startswith("prio"):
        bands = [traffic[f"down.queue.band{band}.packets"] for band in range(5)]
        assert sum(bands) == traffic["down.delivered"]


@pytest.mark.parametrize("text", [FIFO, PFIFO, FQ_CODEL, "fq"])
def test_what_packets_waited_is_seen_at_both_ends(ran: Ran, text: str) -> None:
    (record,) = (r for r in ran.records if r.trial.linked.link.qdisc == text)
    assert record.proof is not None and record.lab is not None
    down, up = (record.proof.queueing[way] for way in ("down", "up"))
    assert down.dropped == record.lab.traffic["down.dropped"]
    assert down.packets == record.lab.traffic["down.delivered"]
    assert 0 < down.median_ms <= down.p95_ms <= down.peak_ms
    assert max(down.peaks_us) == round(down.peak_ms * 1000)
    if text == FIFO:  # A full buffer is what a packet waits at most: 131,072 bytes at 4 Mbit/s.
        assert down.peak_ms == pytest.approx(131_072 * 8 / 4000, abs=3.1)
        assert down.hit_bytes is not None and down.hit_bytes >= 131_072 - 1500
    assert up.packets == record.lab.traffic["up.delivered"]


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


@pytest.mark.nightly(but="^(fq_codel targt|no_such)")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fq_codel nonsense 5", 'What is "nonsense"?'),  # tc's own words
        ("fq_codel targt 5ms", "(did you mean 'target'?)"),
        ("no_such_queue", "kind is unknown"),  # the kernel's
        ("fq_coddel", "; this kernel has bfifo, cake, choke, codel, dualpi2, fq, "),
        ("fq_coddel limit 5", "tbf (did you mean 'fq_codel'?)"),
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
def test_what_cannot_be_a_queue_is_refused_before_a_run(house: House, text: str) -> None:
    wrong = f'page = "tum-website"\nclient = "graph"\n[link]\nqdisc = {json.dumps(text)}\n'
    said = house.refused(wrong)
    assert f'wrong.toml:4: link.qdisc: "{text}" is not "fifo", or what follows `tc' in said


@pytest.mark.nightly(but="^pfifo")
@pytest.mark.parametrize(
    ("change", "told"),
    [("fq_codel limit 7", "was 'fq_codel "), ("pfifo limit 7", "and is 'pfifo "),
     ("fq_codel limit 1000 target 61ms", "was 'fq_codel ")],
)  # fmt: skip
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
    assert_refused(ran, "lab_mismatch", "far: a discipline changed during the load",
                   "far: discipline of f0 10001 was ", told)  # fmt: skip


@pytest.mark.nightly(but="^link/queue")
@pytest.mark.parametrize(
    ("module", "change", "told"),
    [
        # The queue is set with another target than the one that was asked for.
        ("link/queue.py", ("    words = text.split()\n",
         '    words = text.replace("target 60ms", "target 5ms").split()\n'),
         "up.qdisc has target 5ms, asked was 60ms"),
        ("link/netem.py", ("            if text == FIFO:\n",
         '            if text == FIFO or each.name == "up":\n'), "up.qdisc was not read back"),
        # The queue is told of, and not there.
        ("link/netem.py", ("        return wanted | self.queues\n", "        return wanted\n"),
         "discipline that nobody asked for"),
    ],
)  # fmt: skip
def test_a_queue_that_is_set_otherwise(
    house: House, plant: Plant, page: str, module: str, change: tuple[str, str], told: str
) -> None:
    plant(f"lab/{module}", *change)
    ran = house.run(page=page, client="graph", **{"link.qdisc": FQ_CODEL})
    assert_refused(ran, "lab_mismatch", told)


@pytest.mark.parametrize(
    ("count", "told"),
    [("dropped", "packets did not come through, the link counts "),
     ("marked", "packets got a congestion mark, the queue counts 0")],
)  # fmt: skip
def test_statistics_of_the_other_direction(
    house: House, plant: Plant, page: str, count: str, told: str
) -> None:
    """What each queue dropped and marked is seen at both ends of the link."""
    old = "        dropped = down.dropped + up.dropped\n"
    planted = (
        f"        down, up = (replace(one, {count}=other.{count})\n"
        "                    for one, other in ((down, up), (up, down)))\n"
    )
    plant("lab/link/netem.py", old, planted + old)
    knobs = {"link.qdisc": "fq_codel", "tcp.sysctl.tcp_ecn": int(count == "marked")}
    assert_refused(house.run(page=page, client="graph", **knobs), "unproven", told)


@pytest.mark.nightly(but="lo")
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [("taken.bind((device, ", 'taken.bind(("lo", ', "the server's end recorded none of "),
     ("_PACKET_HEAD.pack(seconds, ns, ", "_PACKET_HEAD.pack(seconds, max(0, ns - 1_000_000), ",
      " us sooner than they can"),
     ("        if not status & _FILLED:\n", "        if not status & _FILLED or place == 500:\n",
      "packets did not come through, the link counts ")],
)  # fmt: skip
def test_a_recorder_of_something_else(
    house: House, plant: Plant, page: str, old: str, new: str, told: str
) -> None:
    plant("capture/recorder.py", old, new)
    assert_refused(house.run(page=page, client="graph"), "unproven", told)


def test_a_queue_that_nobody_asked_for(house: House, plant: Plant, page: str) -> None:
    """A plain FIFO was asked for, and there is another queue when the lab is read."""
    old = "        link.complete()\n"
    planted = (
        "        from testbed.lab.link.queue import set_queue\n"
        "        set_queue(topology.far, 'f0', 'pfifo limit 100')\n"
    )
    plant("lab/laboratory.py", old, old + planted)
    told = "far: f0 10001 has a discipline that nobody asked for: pfifo"
    assert_refused(house.run(page=page, client="graph"), "lab_mismatch", told)
