"""A second stack of QUIC: knobs of its own, and faults in them, of which none passes as proven."""

from __future__ import annotations

import pytest

from testbed.base.errors import EXIT_OK
from tests.acceptance.house import House, Plant, assert_ok

pytestmark = [pytest.mark.guest, pytest.mark.browser]

PAGE = "wikipedia-h2"
KNOBS = {
    "page": PAGE,
    "client": "chromium",
    "rtt_ms": 100,
    "protocol": "h3",
    "web_server": "aioquic",
    "initcwnd_packets": 10,
}
RESUMING = {"tls_resumption": True, "visits": 2}
SET = 'cubic.K_INITIAL_WINDOW = order["initcwnd_packets"]', "cubic.K_INITIAL_WINDOW = 64"
SAY = '"initcwnd_packets": control.congestion_window // packet', '"initcwnd_packets": 10'
NAMED = 'name = order["congestion_control"]', 'name = "cubic"'
TICKETS = 'session_ticket_handler=keep if order["tickets"] else None', "session_ticket_handler=keep"
FETCHED = 'fetcher=tickets.get if order["tickets"] else None', "fetcher=tickets.get"
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


@pytest.mark.parametrize(
    ("visits", "changes", "says"),
    [
        pytest.param(1, [SET], "initcwnd_packets = 64 instead of 10", id="window"),
        pytest.param(1, [SET, SAY], "more than acknowledgements allow", id="window, unsaid"),
        pytest.param(1, [NAMED], "congestion_control = cubic instead of reno", id="algorithm"),
        pytest.param(2, [TICKETS, FETCHED], "tls_resumption = false", id="tickets unasked"),
        pytest.param(1, [ALL_EARLY], "early", id="early, by its word alone"),
    ],
)
def test_a_fault_in_the_server(
    house: House,
    plant: Plant,
    visits: int,
    changes: list[tuple[str, str]],
    says: str,
) -> None:
    for old, new in changes:
        plant("server/quic_program.py", old, new)
    ran = house.run(**KNOBS | {"quic_control": "reno", "visits": visits})
    (record,) = ran.records
    assert record.outcome == "unproven"
    assert record.reason is not None and says in record.reason, record.reason
