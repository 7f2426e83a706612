"""A second stack of QUIC: knobs of its own, and faults in them, of which none passes as proven."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.base.errors import EXIT_OK
from tests.acceptance.house import House, Plant, assert_bad, assert_ok

pytestmark = [pytest.mark.guest, pytest.mark.browser]

PAGE = "wikipedia-h2"
KNOBS = {
    "page": PAGE, "client": "chromium", "rtt_ms": 100, "protocol": "h3", "web_server": "aioquic",
    "initcwnd_packets": 10,
}  # fmt: skip
RESUMING = {"tls_resumption": True, "visits": 2}
SET = 'cubic.K_INITIAL_WINDOW = order["initcwnd_packets"]', "cubic.K_INITIAL_WINDOW = 64"
SAY = '"initcwnd_packets": control.congestion_window // packet', '"initcwnd_packets": 10'
NAMED = 'name = order["congestion_control"]', 'name = "cubic"'
TICKETS = 'session_ticket_handler=keep if order["tickets"] else None', "session_ticket_handler=keep"
FETCHED = 'fetcher=tickets.get if order["tickets"] else None', "fetcher=tickets.get"
EVERYWHERE = 'MOST_EARLY_DATA if listener["early_data"] else None', "MOST_EARLY_DATA"
EARLY_AT_FIRST = RESUMING | {"early_data": True, "early_data_at": "first"}
ALL_EARLY = '"early": "1" if request.early else ""', '"early": "1"'


@pytest.fixture(scope="module", autouse=True)
def page(house: House) -> None:
    house.take("wikipedia", PAGE)


def test_its_window_and_its_early_data_are_proven(house: House) -> None:
    more = {"initcwnd_packets": 32, "early_data": True, "quic_control": "cubic"}
    ran = house.run(**KNOBS | RESUMING | more)
    assert ran.code == EXIT_OK, ran.said
    (record,) = ran.records
    assert_ok(record)
    assert record.replay is not None and record.proof is not None
    assert record.replay.quic.startswith("aioquic ")
    assert record.replay.quic.endswith(": 32 packets of 1200 bytes, cubic")
    first, second = record.proof.visits
    assert (first.resumed, first.early) == (0, 0)
    assert second.resumed and second.early and second.tcp == 0 < second.quic


def test_early_data_is_taken_where_it_is_asked_for_and_chains_are_as_long(house: House) -> None:
    record = house.run(**KNOBS | EARLY_AT_FIRST | {"certificates": 5}).one()
    assert_ok(record)
    assert record.proof is not None
    _, second = record.proof.visits
    assert second.resumed == second.quic > 1 == second.early
    assert sorted(each.early_bytes > 0 for each in second.opened) == [False] * 3 + [True]
    for each in second.opened:
        assert each.quic and each.syn_bytes == 0 < each.hello_bytes
        assert each.hello_ms is not None and each.asked_ms is not None
        late = each.asked_ms - each.hello_ms
        assert late < 1 if each.early_bytes else late > 100


def test_connections_are_described_one_by_one(house: House) -> None:
    over_tcp = {"web_server": "nginx-quic", "tfo": True, "cookies": "cached", "early_data": True}
    record = house.run(page=PAGE, client="chromium", rtt_ms=100, **RESUMING | over_tcp).one()
    assert_ok(record)
    assert record.proof is not None
    _, visit = record.proof.visits
    assert len(visit.opened) == visit.tcp == visit.hellos
    assert sum(each.hello_bytes for each in visit.opened) == visit.hello_bytes
    assert sum(each.early_bytes for each in visit.opened) == visit.early_bytes
    first, *_ = visit.opened
    assert first.host == "en.wikipedia.org.p.test"
    assert 100 < first.began_ms < 110  # its name was looked up
    assert {each.syn_bytes for each in visit.opened} == {1420}  # RFC 7413, section 4.1.1
    asked = [each for each in visit.opened if each.early_bytes]
    assert len(asked) == visit.early and len(asked) < len(visit.opened)
    for each in asked:
        assert each.hello_ms is not None and each.asked_ms is not None
        assert each.asked_ms - each.began_ms >= 100  # a SYN holds no more


def test_a_page_without_tls_has_no_secrets_to_keep(house: House) -> None:
    assert_ok(house.run(page="wikipedia", client="graph", web_server="nginx-quic").one())


@pytest.mark.nightly(but="^window, unsaid$")
@pytest.mark.parametrize(
    ("more", "changes", "says"),
    [pytest.param({}, [SET], "initcwnd_packets = 64 instead of 10", id="window"),
     pytest.param({}, [SET, SAY], "more than acknowledgements allow", id="window, unsaid"),
     pytest.param({}, [NAMED], "congestion_control = cubic instead of reno", id="algorithm"),
     pytest.param({"visits": 2}, [TICKETS, FETCHED], "tls_resumption = false",
                  id="tickets unasked"),
     pytest.param(EARLY_AT_FIRST, [EVERYWHERE], "not asked for there", id="early everywhere"),
     pytest.param({}, [ALL_EARLY], "early", id="early, by its word alone")],
)  # fmt: skip
def test_a_fault_in_the_server(
    house: House, plant: Plant, more: dict[str, Any], changes: list[tuple[str, str]], says: str
) -> None:
    for old, new in changes:
        plant("server/quic_program.py", old, new)
    (record,) = house.run(**KNOBS | {"quic_control": "reno"} | more).records
    assert_bad(record, says, "unproven")
