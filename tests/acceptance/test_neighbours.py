"""Neighbours on the access line, in a real lab: as asked and proven, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.base.errors import EXIT_OK
from testbed.kinds.command.measurement import Executed
from testbed.model import CAPTURE_FILE, NEIGHBOUR_FILE, OBSERVATION_FILE, NeighbourFlow, Record
from testbed.model.traffic import NO_TRAFFIC
from testbed.results.folder import read_records
from tests.acceptance.altered import Done, given
from tests.acceptance.house import House, Plant, Ran, assert_bad, assert_ok, assert_refused
from tests.measured import load_of

pytestmark = pytest.mark.guest

PAGE = "tum-website"
LINE = {"rtt_ms": 30, "down_kbit": 8000, "up_kbit": 1000, "page": PAGE, "client": "graph"}
UP, CALL, DOWN = "bulk up", "call", "bulk down 2x reno from -2s to 0.2s"
STREAM = "cbr down 400kbit 500B from 0.1s"
VIDEO, WEB = "video down 1600kbit 1s reno from -2.5s", "web 6x"
CALL_UP = f"{UP} + {CALL}"
FETCHES = f"{VIDEO} + {WEB}"
SECOND = "page"
TEXTS = [NO_TRAFFIC, UP, CALL, DOWN, STREAM, CALL_UP, VIDEO, WEB, FETCHES, SECOND]


@pytest.fixture(scope="module", autouse=True)
def page(house: House) -> None:
    house.take(PAGE)


@pytest.fixture(scope="module")
def ran(house: House, page: None) -> Ran:
    return house.run(**LINE, traffic=TEXTS)


def of(ran: Ran, text: str) -> Record:
    return next(r for r in ran.records if r.trial.condition.traffic == text)  # type: ignore[attr-defined]


def flows(ran: Ran, text: str) -> tuple[NeighbourFlow, ...]:
    proof = of(ran, text).proof
    assert proof is not None
    return proof.neighbours


def plt(ran: Ran, text: str) -> float:
    load = load_of(of(ran, text))
    assert load is not None
    return load.plt_ms


def test_neighbours_share_the_line(ran: Ran) -> None:
    assert ran.code == EXIT_OK
    for record in ran.records:
        assert_ok(record)
    assert flows(ran, NO_TRAFFIC) == ()
    (up,) = flows(ran, UP)
    assert up.began_s == pytest.approx(-5, abs=0.001)
    assert 900 < up.goodput_kbit < 1000  # of 1000 kbit/s, with headers
    # A buffer of 128 KB before 1 Mbit/s holds a second.
    assert plt(ran, UP) > plt(ran, NO_TRAFFIC) + 500
    first, second = flows(ran, DOWN)
    assert (first.number, second.number) == (1, 2)
    assert first.began_s == pytest.approx(-2, abs=0.001)
    assert first.goodput_kbit + second.goodput_kbit < 8000


def test_a_call_alone_and_beside_an_upload(ran: Ran) -> None:
    """Half the round trip and what 200 bytes occupy; behind the upload, its queue."""
    alone, beside = ({f.way: f for f in flows(ran, text) if f.sent} for text in (CALL, CALL_UP))
    for calls in (alone, beside):
        assert calls["up"].sent == calls["down"].sent
    assert alone["up"].delay_p50_ms == pytest.approx(15 + 1.6, abs=0.01)
    assert alone["up"].lost == 0
    median = beside["up"].delay_p50_ms
    assert median is not None and median > 300
    worst = beside["up"].delay_max_ms
    # The buffer, one packet in service, and the call's own: no packet can wait for longer.
    assert worst is not None and worst < 15 + (131072 + 1500 + 200) * 8 / 1000 + 1


def test_an_even_stream(ran: Ran) -> None:
    (stream,) = flows(ran, STREAM)
    assert stream.began_s == pytest.approx(0.1, abs=0.001)
    assert stream.sent == pytest.approx((plt(ran, STREAM) - 100) / 10, abs=1)  # one in 10 ms


def test_a_call_behind_an_upload_is_a_bad_one(ran: Ran) -> None:
    alone, beside = ({f.way: f.r_factor for f in flows(ran, text) if f.sent}
                     for text in (CALL, CALL_UP))  # fmt: skip
    assert alone == {"up": pytest.approx(93.2, abs=0.01), "down": pytest.approx(93.2, abs=0.01)}
    assert beside["up"] is not None and beside["up"] < 60
    assert beside["down"] == pytest.approx(93.2, abs=1)


def test_a_video_is_fetched_by_the_segment(ran: Ran) -> None:
    (video,) = flows(ran, VIDEO)
    assert video.began_s == pytest.approx(-2.5, abs=0.001)
    # 200 kB at 8 Mbit/s, from 0.5 s after the load's start on, and each second.
    assert video.fetches == pytest.approx(plt(ran, VIDEO) / 1000 - 0.7, abs=1)
    assert video.fetch_p50_ms is None or video.fetch_p50_ms > 200


def test_the_web_is_drawn_by_the_seed(house: House, ran: Ran) -> None:
    (web,) = flows(ran, WEB)
    assert web.began_s == pytest.approx(-5, abs=0.001)
    again = house.run(**LINE, traffic=WEB, repetitions=2)
    found = [record.proof.neighbours[0] for record in again.records if record.proof]
    assert [record.outcome for record in again.records] == ["ok", "ok"]
    assert web == next(flow for flow in found if flow.goodput_kbit == web.goodput_kbit)
    assert len({flow.goodput_kbit for flow in found}) == 2


def test_two_clients_behind_one_line(ran: Ran) -> None:
    """Each is later than alone, the whole line is theirs, and neither starves."""
    alone = load_of(of(ran, NO_TRAFFIC))
    (second,) = flows(ran, SECOND)
    assert alone is not None and second.plt_ms is not None
    assert second.began_s == pytest.approx(0, abs=0.001)
    assert second.fetches == len(alone.requests)
    assert alone.plt_ms * 1.02 < second.plt_ms < alone.plt_ms * 3
    assert alone.plt_ms * 1.02 < plt(ran, SECOND) < alone.plt_ms * 3


def test_hosts_of_neighbours_are_read_back(ran: Ran) -> None:
    lab = of(ran, UP).lab
    assert lab is not None
    assert lab.knobs["neighbour.offloads"] == lab.knobs["remote.offloads"] == "none"
    assert lab.knobs["remote.sysctls"] == lab.knobs["neighbour.sysctls"]
    alone = of(ran, NO_TRAFFIC).lab
    assert alone is not None
    assert not [name for name in alone.knobs if name.startswith(("neighbour.", "remote."))]


@pytest.mark.nightly(but="^bulk")
@pytest.mark.parametrize("text", [CALL_UP, FETCHES, SECOND])
def test_a_seed_gives_the_same_bits_with_neighbours(house: House, ran: Ran, text: str) -> None:
    again = house.run(**LINE, traffic=text).records[0]
    first = of(ran, text)
    for name in (CAPTURE_FILE, NEIGHBOUR_FILE, "remote.pcap"):
        assert again.artefacts[name] == first.artefacts[name]


@pytest.mark.nightly(but="^False-wget2$")
@pytest.mark.parametrize("client", ["wget2", "chromium"])
@pytest.mark.parametrize("tfo", [False, True])
def test_neighbours_of_other_clients(house: House, client: str, tfo: bool) -> None:
    assert_ok(house.run(**LINE | {"client": client}, tfo=tfo, traffic=CALL_UP).one())


@pytest.mark.nightly(but="corrupt")
@pytest.mark.parametrize("knob", ["link.corrupt_pct", "link.duplicate_pct"])
def test_neighbours_on_a_line_that_damages_or_doubles(house: House, knob: str) -> None:
    """What is counted of such packets is all of them, whoever sent them."""
    ran = house.run(**LINE, **{knob: 1}, traffic=[f"{CALL_UP} + {FETCHES}", f"{DOWN} + {SECOND}"])
    for record in ran.records:
        assert_ok(record)
        assert record.lab is not None and record.proof is not None
        counted = record.lab.traffic
        what = knob.partition(".")[2].partition("_")[0]
        assert any(counted.get(f"{way}.{what}ed" if what == "corrupt" else f"{way}.{what}d")
                   for way in ("up", "down"))  # fmt: skip


SENDS = "                sender.send(CHUNK)\n"
DUE = "max(began_ns + fetch.due_ns, ended_ns + fetch.pause_ns)"
SENDING = "mechanisms/neighbours/sending.py"
BEGINS = "    if not _sleep_until(load_ns + round(neighbour.from_s * 1e9), each.stop):"
FAULTS: dict[str, tuple[str, str, str, str]] = {
    "late": (UP, BEGINS, BEGINS.replace("load_ns +", "load_ns + 20_000_000 +"),
             "neighbour bulk up: it began at -4.98"),
    "another algorithm": (UP, "algorithm.encode()", 'b"reno"',
                          "neighbour bulk up: its congestion control is reno, asked was cubic"),
    "ends early": (UP, "return ENDLESS_S", "return (load_ns - time.time_ns()) / 1e9 + 0.05",
                   "neighbour bulk up: it ended at 0.05"),
    "ends before its end": (
        DOWN, "+ neighbour.to_s", "+ neighbour.to_s - 0.05",
        "neighbour bulk down 2x reno from -2s to 0.2s (flow 1 down): it ended at 0.15"),
    "ends late": (
        DOWN, "+ neighbour.to_s", "+ neighbour.to_s + 0.05",
        "neighbour bulk down 2x reno from -2s to 0.2s (flow 1 down): it ended at 0.25"),
    "pauses": (UP, SENDS, SENDS.replace("CHUNK", "CHUNK[:20000]") + " " * 16 + "time.sleep(0.7)\n",
               "neighbour bulk up: it had nothing to send for "),
    "one connection for two": (
        DOWN, "in list_flows(neighbours)]", "in [*list_flows(neighbours)][:1]]",
        "(flow 2 down): it never began"),
    "another rate": (STREAM, "number * neighbour.gap_ns", "number * neighbour.gap_ns * 11 // 10",
                     "packets were not sent at their times, one each 10 ms"),
    "another size": (STREAM, "neighbour.packet_bytes - IP_UDP_BYTES",
                     "neighbour.packet_bytes + 8 - IP_UDP_BYTES",
                     "it sent packets of 508 bytes, asked was 500"),
    "one way only": (CALL, "thread in threads:\n            thread.start",
                     "thread in threads[:1]:\n            thread.start",
                     "neighbour call (flow 1 down): it never began"),
    "numbers left out": (CALL, "        number += 1\n", "        number += 2\n",
                         "packets were not sent at their times, one each 20 ms"),
    "a late video": (VIDEO, DUE, f"{DUE} + 20_000_000", "it began at -2.48"),
    "a late segment": (VIDEO, DUE, f"{DUE} + (20_000_000 if number > 1 else 0)",
                       f"neighbour {VIDEO}: fetch 3 began at -0.48"),
    "a video of another algorithm": (VIDEO, "algorithm.encode()", 'b"cubic"',
                                     "its congestion control is cubic, asked was reno"),
    "a larger segment": (VIDEO, 'int.from_bytes(request, "big")',
                         'int.from_bytes(request, "big") + 100',
                         "fetch 1 brought 100 bytes more than 200000"),
    "a smaller segment": (VIDEO, 'int.from_bytes(request, "big")',
                          'int.from_bytes(request, "big") - 100',
                          "fetch 1 had nothing under way for 2."),
    "a smaller one asked for": (
        VIDEO, "enumerate(plan_fetches(each.flow, seed))",
        "enumerate(type(f)(f.size_bytes // 2, f.port, f.pause_ns, f.due_ns, f.opens)"
        " for f in plan_fetches(each.flow, seed))",
        "fetch 1 brought -100000 bytes more than 200000"),
    "no video": (VIDEO, "def _fetch(", "def _fetch(*_: object) -> None:\n    pass\n\n\ndef _not(",
                 f"neighbour {VIDEO}: it never began"),
    "no web": (WEB, "def _fetch(", "def _fetch(*_: object) -> None:\n    pass\n\n\ndef _not(",
               "neighbour web 6x: flow 2: it never began"),
    "a late web": (WEB, DUE, f"{DUE} + 20_000_000", "neighbour web 6x: flow 2: it began at -4.98"),
    "a web without pauses": (WEB, DUE, f"{DUE} - (fetch.pause_ns if number else 0)",
                             ": fetch 2 began at"),
    "a web of another algorithm": (WEB, "algorithm.encode()", 'b"reno"',
                                   "neighbour web 6x: its congestion control is reno"),
    "a web of another seed": (WEB, "plan_fetches(each.flow, seed)",
                              "plan_fetches(each.flow, seed + 1)", "neighbour web 6x: flow 2: "),
    "a web of other sizes": (WEB, 'int.from_bytes(request, "big")',
                             'int.from_bytes(request, "big") + 1', " brought 1 bytes more than "),
    "fewer on the web": (WEB, "in list_flows(neighbours)]", "in [*list_flows(neighbours)][:5]]",
                         "flow 6: it never began"),
}  # fmt: skip


@pytest.mark.nightly(but="^(late|another rate|a late web)$")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_neighbour_that_does_otherwise(house: House, plant: Plant, fault: str) -> None:
    text, old, new, told = FAULTS[fault]
    plant(SENDING, old, new)
    if fault == "one way only":
        plant(SENDING, "for thread in threads:\n                thread.join",
              "for thread in threads[:1]:\n                thread.join")  # fmt: skip
    assert_refused(house.run(**LINE, traffic=text), "unproven", told)


SECOND_FAULTS: dict[str, tuple[str, str, str]] = {
    "late": ("order.load_ns + round(", "order.load_ns + 20_000_000 + round(",
             "neighbour page: it began at 0.02"),
    "none": ("if neighbour is None or", "if neighbour is not None or",
             "neighbour page: it has not loaded the page"),
    "another time": ("Graph().load(order)",
                     "replace((load := Graph().load(order)), plt_ms=load.plt_ms * 0.99)",
                     "neighbour page: the load ended after"),
    "fewer requests": ("Graph().load(order)",
                       "replace((load := Graph().load(order)), requests=load.requests[1:])",
                       "neighbour page: the server answered"),
}  # fmt: skip


@pytest.mark.nightly(but="^late$")
@pytest.mark.parametrize("fault", SECOND_FAULTS)
def test_a_second_page_that_is_otherwise(house: House, plant: Plant, fault: str) -> None:
    old, new, told = SECOND_FAULTS[fault]
    plant("kinds/page_load/second_load.py", old, new)
    assert_refused(house.run(**LINE, traffic=SECOND), "unproven", told)


def test_a_neighbour_of_whom_nobody_knows(house: House, plant: Plant) -> None:
    old = "        try:\n            yield account\n"
    planted = (
        "        with topology.role('remote').entered():\n"
        "            other = undo.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))\n"
        "        other.sendto(b'', (NEIGHBOUR_ADDRESS, FIRST_PORT + 7))\n"
    )
    name = "import (\n    CALL_STAMPS,"
    plant(SENDING, name, name.replace("CALL", "FIRST_PORT, CALL"))
    plant(SENDING, old, planted + old)
    ran = house.run(**LINE, traffic=UP)
    assert_refused(ran, "unproven", "packets at the neighbours are of none of them")


@pytest.mark.nightly(but="^tc")
@pytest.mark.parametrize(
    ("words", "told"),
    [("tc qdisc add dev h0 root netem delay 5ms", "neighbour: a discipline changed"),
     ("sysctl -qw net.ipv4.tcp_sack=0", "neighbour: net.ipv4.tcp_sack was written"),
     ("ip route replace default via 10.0.3.1 initcwnd 40", "neighbour: a route changed")],
)  # fmt: skip
def test_a_host_of_neighbours_that_changes(
    house: House, plant: Plant, words: str, told: str
) -> None:
    old = "        try:\n            yield account\n"
    planted = (
        "        from testbed.base import proc\n"
        "        with topology.role('neighbour').entered():\n"
        f"            proc.run({tuple(words.split())!r})\n"
    )
    plant(SENDING, old, planted + old)
    assert_refused(house.run(**LINE, traffic=UP), "lab_mismatch", told)


def test_a_way_around_the_line(house: House, plant: Plant) -> None:
    """The neighbour's packets reach their end, and no packet of the line is missing."""
    plant("lab/neighbour_hosts.py", "        yield topology\n",
          "        from testbed.base import proc\n"
          "        with topology.role('neighbour').entered():\n"
          "            proc.run(('ip', 'link', 'add', 'x0', 'type', 'veth', 'peer', 'name', 'x1',\n"
          "                      'netns', topology.role('remote').name))\n"
          "            proc.run(('ip', 'link', 'set', 'x0', 'up'))\n"
          "        yield topology\n")  # fmt: skip
    ran = house.run(**LINE, traffic=UP)
    assert_refused(ran, "lab_mismatch", "neighbour: there is another device, x0")


@pytest.fixture(scope="module")
def done(house: House, ran: Ran) -> Done:
    return Done(of(ran, UP), ran.folder, house.archive(PAGE).digest)


@pytest.mark.parametrize(
    ("path", "to", "told"),
    [(("neighbours",), [], "its congestion control is no connection at its end, asked was cubic"),
     (("trial", "condition", "traffic"), "none", "traffic: performed was 'none'"),
     (("lab", "knobs", "remote.offloads"), "gso", "remote.offloads was read back as 'gso'"),
     (("lab", "knobs", "neighbour.net.ipv4.tcp_wmem"), "4096", "tcp_wmem was read back as")],
)  # fmt: skip
def test_what_is_altered_afterwards(
    done: Done, tmp_path: Path, path: tuple[str, ...], to: object, told: str
) -> None:
    record = done.judge(given(*path, to=to), tmp_path)
    assert record.outcome != "ok"
    assert told in str(record.reason)


def test_a_neighbour_without_its_capture(done: Done, tmp_path: Path) -> None:
    def lose(_seen: object) -> None:
        (tmp_path / "out" / NEIGHBOUR_FILE).unlink()

    assert (tmp_path / "out" / OBSERVATION_FILE).exists() is False
    assert_bad(done.judge(lose, tmp_path), NEIGHBOUR_FILE, "failed")


def test_a_neighbour_that_the_load_does_not_meet(house: House) -> None:
    ran = house.run(**LINE, traffic="bulk up from 900s")
    assert_refused(ran, "unproven", "neighbour bulk up from 900s: it never began")


@pytest.mark.parametrize(
    ("text", "said"),
    [("bulk", 'is not "none", or neighbours joined by'),
     ("bulk up from 3s to 2s", "ends before it, or the load, has begun"),
     ("call from -9s to -2s", "ends before it, or the load, has begun"),
     ("cbr up 500kbit 9000B", "has packets of 9000 bytes, and link.mtu_bytes is 1500"),
     ("cbr up 99999999kbit", "more than 100000 packets a second"),
     ("bulk up 33x + bulk down 33x", "has more than 64 flows"),
     ("web 65x", "has more than 64 flows"),
     ("page + page from 1s", "has more than one second page"),
     ("video down 99999999kbit 90s", "has segments of more than 1073741824 bytes"),
     ("video up 500kbit", 'is not "none", or neighbours joined by'),
     ("web bbbr", "has no 'bbbr' (did you mean 'bbr'?)"),
     ("bulk up cubik", "has no 'cubik' (did you mean 'cubic'?)")],
)  # fmt: skip
def test_what_cannot_be_a_neighbour_is_refused_before_a_run(
    house: House, text: str, said: str
) -> None:
    wrong = f'page = "{PAGE}"\nclient = "graph"\ntraffic = {json.dumps(text)}\n'
    assert said in house.refused(wrong)


def test_the_host_has_no_neighbours(house: House) -> None:
    wrong = f'page = "{PAGE}"\nclient = "graph"\ntraffic = "call"\n'
    assert "neighbours are in virtual time alone" in house.refused(wrong, "--kernel", "host")


COMMAND = f"""\
kind = "command"
page = "{PAGE}"
client = "command"
command = "ping -c 40 -i 0.02 {{server}}"
link = {{ rtt_ms = 30, down_kbit = 8000, up_kbit = 1000 }}
traffic = "bulk up + call + {VIDEO} to 0.3s"
"""


def run_command(house: House) -> Ran:
    config = house.folder / "command.toml"
    config.write_text(COMMAND)
    folder = house.folder / "results" / f"command-{len(list(house.folder.glob('results/*')))}"
    code, said = house.command("run", str(config), "-o", str(folder))
    return Ran(code, said, folder, read_records(folder))


def test_a_command_beside_neighbours(house: House, page: None) -> None:
    ran, again = run_command(house), run_command(house)
    (record,) = ran.records
    assert_ok(record)
    executed = record.measured_as(Executed)
    assert record.proof is not None and executed is not None
    up, call, _, video = record.proof.neighbours
    assert [flow.began_s for flow in (up, call, video)] == [
        pytest.approx(began, abs=0.001) for began in (-5, -5, -2.5)
    ]
    assert call.sent == pytest.approx(executed.duration_ms / 20, abs=1)
    assert again.records[0].artefacts == record.artefacts
    printed = (ran.folder / "trials" / record.trial_id / "command.out").read_text()
    assert float(printed.rpartition(" = ")[2].split("/")[1]) > 500  # behind the upload
    assert "Neighbours" in (ran.folder / "report.html").read_text()


def test_a_late_neighbour_of_a_command(house: House, page: None, plant: Plant) -> None:
    plant(
        SENDING,
        BEGINS,
        BEGINS.replace("load_ns +", "load_ns + 20_000_000 +"),
    )
    ran = run_command(house)
    assert_refused(ran, "unproven", "neighbour bulk up (flow 1 up): it began at -4.98")


def test_a_command_that_is_the_client_begins_with_its_neighbours(house: House) -> None:
    command = "/usr/bin/curl -sS -o {out}/page {url}"
    words = f"sh -c 'sleep 0.2; {command}; echo plt_ms=1'"
    ran = house.run(**LINE | {"client": "command"}, command=words, allow_misses=True,
                    traffic="bulk down from -1s to 0.1s")  # fmt: skip
    assert "began at" not in str(ran.records[0].reason)
    assert "it ended" not in str(ran.records[0].reason)


def test_a_command_outside_of_all_hosts_has_no_neighbours(house: House) -> None:
    said = house.refused(COMMAND + 'at = "lab"\n')
    assert "neighbours begin with a command at an end of the link" in said


@pytest.mark.parametrize("version", ["6.12", "6.1"])
@pytest.mark.nightly
def test_older_kernels_have_neighbours(house: House, version: str) -> None:
    asked = LINE | {"kernel.version": version, "traffic": f"{CALL_UP} + {FETCHES}"}
    first, second = (house.run(**asked).records[0] for _ in range(2))
    assert_ok(first)
    assert first.artefacts == second.artefacts
