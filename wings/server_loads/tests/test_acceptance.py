"""Loads on a server on the virtual kernel: capacity in closed form, exact, and found by compare."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from socket import inet_aton

import pytest

from testbed.base.errors import EXIT_OK
from testbed.base.places import CONFIGS
from testbed.capture.flows import read_flows
from testbed.capture.packets import read_capture
from testbed.lab.topology import CLIENT_ADDRESS
from testbed.model import CAPTURE_FILE, OBSERVATION_FILE, Record
from testbed.results.folder import read_records
from tests.acceptance.house import House
from wings.server_loads.measurement import HISTOGRAMS_FILE, ServedLoad
from wings.server_loads.tests.served import served_of

pytestmark = pytest.mark.guest

PRICE = 80
LOAD = f"""\
kind = "server_load"
[link]
rtt_ms = 2
down_kbit = 100000
up_kbit = 100000
[server]
price = {PRICE}
listen_backlog = 16
[arrivals]
warm_up_s = 1
duration_s = 2
patience_s = 3
"""
# A SYN and nine other segments, accept, request and close (price_list.py).
CONNECTION_NS = PRICE * (5_000 + 9 * 2_500 + 5_000 + 10_000 + 5_000)
CAPACITY = 1e9 / CONNECTION_NS


def run(house: House, name: str, *sets: str) -> tuple[Path, tuple[Record, ...]]:
    config = house.folder / "load.toml"
    config.write_text(LOAD)
    folder = house.folder / "results" / name
    words = [word for given in sets for word in ("--set", given)]
    code, said = house.command("run", str(config), *words, "-o", str(folder))
    assert code == EXIT_OK, said
    return folder, read_records(folder)


def one(house: House, name: str, *sets: str) -> ServedLoad:
    _, (record,) = run(house, name, *sets)
    return served_of(record)


def test_below_its_capacity_a_server_answers_all_at_once(house: House) -> None:
    found = one(house, "below", f"rate_per_s={round(CAPACITY * 0.8)}")
    assert (found.answered, found.failed_pct) == (found.started, 0.0)
    assert found.started == 2 * round(CAPACITY * 0.8)
    assert found.server["queue_most"] == 1
    # Two round trips, and its own work.
    assert found.response_p99_ms == pytest.approx(found.response_p50_ms, rel=0.01)


def test_above_it_does_not_and_twice_alike(house: House) -> None:
    rate = f"rate_per_s={round(CAPACITY * 1.6)}"
    (first_folder, (first,)), (again_folder, (again,)) = (
        run(house, name, rate) for name in ("above", "again")
    )
    found = served_of(first)
    assert found is not None
    assert found.failed_pct > 0
    assert found.replies_per_s < CAPACITY
    assert found.server["queue_most"] == 17
    assert first.artefacts == again.artefacts
    assert replace(first, cost=None) == replace(again, cost=None)
    code, said = house.command("compare", str(first_folder), str(again_folder))
    assert (code, said.splitlines()[-1]) == (EXIT_OK, "SAME: 1 cell, 1 same.")


def test_clients_that_wait_for_each_other_get_its_capacity_to_the_connection(house: House) -> None:
    sets = ("loop=closed", "clients=40", "listen_backlog=128", "duration_s=8")
    found = one(house, "closed", *sets)
    assert found.failed_pct == 0.0
    assert found.replies_per_s == pytest.approx(CAPACITY, abs=0.25)


def test_kernel_work_alone_can_take_all_of_the_time(house: House) -> None:
    """Receive livelock: segments come first, and nothing is left for the program."""
    found = one(house, "livelock", "rate_per_s=3000", "price=100", "duration_s=1")
    assert found.answered == 0


@pytest.mark.nightly
def test_work_is_free_without_a_price(house: House) -> None:
    found = one(house, "free", "price=0", "rate_per_s=2000")
    assert (found.failed_pct, found.server["owed_ns"]) == (0.0, 0)


def openings(folder: Path, record: Record) -> list[list[float]]:
    """When the SYNs of each connection left, in s."""
    pcap = folder / "trials" / record.trial_id / CAPTURE_FILE
    flows = read_flows(read_capture(pcap), [inet_aton(CLIENT_ADDRESS)]).flows
    return [[p.at_ns / 1e9 for c, p in flow.packets if c and p.opens] for flow in flows]


@pytest.mark.nightly(but="^abort-")
@pytest.mark.parametrize(
    ("mechanism", "refused", "reset"),
    [("abort", False, True), ("reserv rst-syn", True, False), ("no-syn-drop", False, True)],
)
def test_who_finds_no_room_hears_of_it_as_the_mechanism_says(
    house: House, mechanism: str, refused: bool, reset: bool
) -> None:
    rate = f"rate_per_s={round(CAPACITY * 1.3)}"
    found = one(house, mechanism.replace(" ", "-"), rate, f"mechanism={mechanism}")
    assert (found.refused > 0, found.reset > 0) == (refused, reset)
    assert found.failed_pct > 0


def test_a_halved_backlog_is_found(house: House) -> None:
    rate = f"rate_per_s={round(CAPACITY * 1.3)}"
    base, _ = run(house, "backlog", rate)
    new, _ = run(house, "halved", rate, "listen_backlog=8")
    words = ("--across", "listen_backlog", "--metric", "response_p50_ms")
    code, said = house.command("compare", str(base), str(new), *words)
    assert code == 1, said
    assert "faster" in said


def test_two_workers_take_twice_as_many_on_a_processor_each(house: House) -> None:
    """Each pays for the segments of its own clients: shares by port are not equal, but near."""
    rate = round(CAPACITY * 1.3)
    found = one(house, "workers", f"rate_per_s={rate}", "workers=2")
    assert (found.answered, found.failed_pct) == (found.started, 0.0)
    assert found.server["owed_ns"] == found.server["accepted"] * CONNECTION_NS
    assert found.server_cpu_pct == pytest.approx(100 * 1.3 / 2, abs=1.0)


def test_the_ledger_says_how_busy_the_processor_was(house: House) -> None:
    found = one(house, "busy", f"rate_per_s={round(CAPACITY * 0.5)}")
    assert found.server_cpu_pct == pytest.approx(50.0, abs=0.2)
    free = one(house, "idle", "price=0", "rate_per_s=100")
    assert free.server_cpu_pct is None


def test_nginx_serves_there_where_its_work_is_free(house: House) -> None:
    found = one(house, "nginx", "program=nginx", "price=0", "rate_per_s=200")
    assert found.answered == found.started == found.server["responses"] - 200
    assert (found.failed_pct, found.prices_ns) == (0.0, {})


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "only"),
    [("overload-termination", "mechanism=default,ending=rst"),
     ("overload-establishment", "mechanism=default"),
     ("overload-windows-clients", "mechanism=no-syn-drop"),
     ("overload-segments", "mechanism=default")],
)  # fmt: skip
def test_a_halved_backlog_is_found_in_every_overload_experiment(
    house: House, name: str, only: str
) -> None:
    short = (
        "warm_up_s=1",
        "duration_s=1",
        "patience_s=2",
        "rate_of_saturation=1.5",
        "cool_down_s=0",
    )
    words = [word for given in short for word in ("--set", given)]
    base, new = (house.folder / "results" / f"{name}-{end}" for end in ("base", "halved"))
    for folder, backlog in ((base, 16), (new, 8)):
        code, said = house.command(
            "run", str(CONFIGS / f"{name}.toml"), *words, "--only", only, "-n", "1",
            "--set", f"listen_backlog={backlog}", "-o", str(folder),
        )  # fmt: skip
        assert code == EXIT_OK, said
    across = ("--across", "listen_backlog", "--metric", "response_p50_ms")
    code, said = house.command("compare", str(base), str(new), *across)
    assert code == 1, said
    assert "faster" in said


@pytest.mark.nightly
def test_clients_send_as_many_syns_as_they_are_asked_to(house: House) -> None:
    """Kernels since 6.5 send four more, which is another knob."""
    rate = f"rate_per_s={round(CAPACITY * 1.5)}"
    sets = (rate, "syn_retries=1", "syn_linear_timeouts=0", "duration_s=4")
    folder, (record,) = run(house, "syns", *sets)
    assert max(map(len, openings(folder, record))) == 2


def test_a_syn_is_sent_again_when_the_asked_time_is_over(house: House) -> None:
    """As by the source's clients, after 3 and 9 s; RFC 6298's second is the default."""
    sets = ("syn_retries=2", "syn_linear_timeouts=0", "syn_timeout_s=3", "patience_s=10")
    folder, (record,) = run(house, "timer", "rate_per_s=800", *sets)
    sent = openings(folder, record)
    gaps = [[after - before for before, after in pairwise(times)] for times in sent]
    assert max(map(len, gaps)) == 2
    assert {round(first) for first, *_ in filter(None, gaps)} == {3}
    assert {round(both[1]) for both in gaps if len(both) == 2} == {6}


def test_clients_have_the_listed_timers_and_the_load_goes_on_until_they_ended(
    house: House,
) -> None:
    """FreeBSD's: other systems would send the third SYN after 6, 7 or 9 s."""
    list_ = 'syn_timeouts_s="3 3.2 3.2 3.2 3.2 6.2 12.2 24.2"'
    sets = (list_, "rate_per_s=700", "patience_s=8", "cool_down_s=8")
    folder, (record,) = run(house, "listed", *sets)
    gaps = [[b - a for a, b in pairwise(times)] for times in openings(folder, record)]
    assert max(map(len, gaps)) == 2
    assert {round(each[0], 1) for each in gaps if each} <= {3.0, 3.1}
    assert {round(each[1], 1) for each in gaps if len(each) == 2} == {3.3}
    found = served_of(record)
    assert found.started < found.all_started == 11 * 700
    assert found.syn_timers_s == pytest.approx((3.03, 3.264), abs=0.04)


@pytest.mark.nightly
def test_each_of_many_timers_is_the_listed_one(house: House) -> None:
    """A server that reserves drops SYNs in silence, and resets nothing that it forgot."""
    timers = "3 3.2 3.2 3.2 3.2 6.2 12.2 24.2"
    sets = (f'syn_timeouts_s="{timers}"', "mechanism=reserv", "rate_per_s=700", "patience_s=64")
    found = one(house, "all listed", *sets, "duration_s=40")
    assert len(found.syn_timers_s) == 8
    for listed, seen_s in zip(timers.split(), found.syn_timers_s, strict=True):
        assert float(listed) <= seen_s <= 1.125 * float(listed)


def test_bursts_come_when_they_are_due(house: House) -> None:
    sets = ("rate_per_s=400", "burst_s=0.25", "every_s=1", "base_rate_per_s=40", "spacing=poisson")
    folder, (record,) = run(house, "bursts", *sets)
    starts = [times[0] for times in openings(folder, record)]
    within = [(at - starts[0]) % 1 for at in starts]
    assert 0.7 < sum(at < 0.25 for at in within) / len(within) < 0.85


@pytest.mark.nightly
def test_a_list_of_proportions_has_the_capacity_of_the_model(house: House) -> None:
    sets = ("loop=closed", "clients=40", "listen_backlog=128", "duration_s=8")
    found = one(house, "calibrated", *sets, "prices=shukla-2006")
    assert found.replies_per_s == pytest.approx(CAPACITY, abs=0.25)


def test_response_times_are_kept_as_a_histogram_s_log(house: House) -> None:
    folder, (record,) = run(house, "histograms", "rate_per_s=500")
    assert set(record.artefacts) == {CAPTURE_FILE, HISTOGRAMS_FILE, OBSERVATION_FILE}
    log = (folder / "trials" / record.trial_id / HISTOGRAMS_FILE).read_text()
    assert log.startswith("#[") and "Tag=response," in log


@pytest.mark.nightly
def test_a_saturation_is_found_where_the_prices_put_it(house: House) -> None:
    config = house.folder / "load.toml"
    config.write_text(LOAD)
    folder = house.folder / "results" / "saturation"
    sets = ("--set", f"saturation_per_s={round(CAPACITY * 1.06)}", "--json", "-o", str(folder))
    code, said = house.command("saturation", str(config), *sets)
    assert code == EXIT_OK, said
    # 98 % answered as they come is kept up with.
    assert json.loads(said)["kept"] == pytest.approx(CAPACITY, rel=0.03)
