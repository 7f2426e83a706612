"""Settings of TCP by the kernel's names: swept, read back and on the wire, or refused and named."""

from __future__ import annotations

import pytest

from testbed.base.errors import EXIT_MISSING, EXIT_OK, EXIT_OUT_OF_TOLERANCE
from testbed.capture.packets import SACK_PERMITTED, find_option, read_capture
from testbed.model import CAPTURE_FILE, Record
from tests.acceptance.house import House, Ran, assert_ok

pytestmark = pytest.mark.guest

# One picture after the other, each of an odd number of segments, whose last ACK is delayed.
TABLE = "\n".join((
    "id,parent,host,mime,status,transfer_bytes,body_bytes,how,gap_ms,start_ms,dur_ms,protocol",
    "0,,www.small.test,text/html,200,4000,9000,root,,0,40,http",
    *(f"{n},{n - 1},www.small.test,image/png,200,4200,3720,url-in-css,5,{45 * n},30,http"
      for n in range(1, 9)),
))  # fmt: skip
PAGE = "small"
SACK, RTO_MIN = "client.tcp_sack", "tcp_rto_min_us"
RTOS_US = (200_000, 1000)


@pytest.fixture(scope="module")
def page(house: House) -> str:
    return house.import_table(TABLE, PAGE, "http://www.small.test/")


@pytest.fixture(scope="module")
def ran(house: House, page: str) -> Ran:
    swept = {f"tcp.sysctl.{SACK}": [1, 0], f"tcp.sysctl.{RTO_MIN}": list(RTOS_US)}
    return house.run(page=page, client="graph", **swept, **{"route.server.congctl": "reno"})


def by_settings(ran: Ran) -> dict[tuple[int | str, int | str], Record]:
    found = {(r.trial.linked.tcp.sysctl[SACK], r.trial.linked.tcp.sysctl[RTO_MIN]): r
             for r in ran.records}  # fmt: skip
    assert len(found) == len(ran.records) == 4
    return found


def test_each_value_is_a_cell_and_read_back(ran: Ran) -> None:
    assert ran.code == EXIT_OK
    for (sack, rto_us), record in by_settings(ran).items():
        assert_ok(record)
        assert record.lab is not None
        knobs = record.lab.knobs
        assert knobs["client.net.ipv4.tcp_sack"] == str(sack)
        assert "server.net.ipv4.tcp_sack" not in knobs  # as the kernel has it
        for end in ("client", "server"):
            assert knobs[f"{end}.net.ipv4.tcp_rto_min_us"] == str(rto_us)
        assert knobs["server.route"].endswith("initcwnd 10 congctl reno")
        assert knobs["client.net.ipv4.tcp_congestion_control"] == "cubic"
        assert knobs["server.net.ipv4.tcp_congestion_control"] == "reno"
    header, *rows = (ran.folder / "table.csv").read_text().splitlines()
    assert header.startswith(f"page,rtt_ms,sysctl.{SACK},sysctl.{RTO_MIN},plt_ms,")
    assert [row.split(",")[2:4] for row in rows] == [
        [str(sack), str(rto_us)] for sack in (1, 0) for rto_us in RTOS_US
    ]


def test_it_is_on_the_wire(ran: Ran) -> None:
    found = by_settings(ran)
    for (sack, _), record in found.items():
        capture = read_capture(ran.folder / "trials" / record.trial_id / CAPTURE_FILE)
        syns = [packet for packet in capture.packets if packet.opens]
        assert syns
        assert {find_option(syn, SACK_PERMITTED) is not None for syn in syns} == {sack == 1}
    for sack in (1, 0):
        slow, quick = (found[sack, rto_us] for rto_us in RTOS_US)
        assert slow.artefacts[CAPTURE_FILE] != quick.artefacts[CAPTURE_FILE]


def test_what_the_kernel_does_not_do_gives_no_number(house: House, page: str) -> None:
    refused = house.run(page=page, client="graph", **{
        "sysctl.server.tcp_nonsense": 1, "sysctl.client.core.rmem_max": 4096,
        "sysctl.client.tcp_min_snd_mss": 3,
    })  # fmt: skip
    (record,) = refused.records
    assert (refused.code, record.outcome) == (EXIT_MISSING, "unsupported")
    assert record.reason is not None
    for part in (
        "client: this kernel (7.3.",
        "lets no namespace set net.core.rmem_max; asked was '4096'",
        "refuses '3' for net.ipv4.tcp_min_snd_mss: Invalid argument",
        "has no net.ipv4.tcp_nonsense in a namespace; asked was '1'",
    ):
        assert part in record.reason

    changed = house.run(page=page, client="graph", **{"sysctl.server.tcp_rmem": "4096 8192"})
    (record,) = changed.records
    assert (changed.code, record.outcome) == (EXIT_OUT_OF_TOLERANCE, "lab_mismatch")
    assert record.reason == (
        "server: net.ipv4.tcp_rmem is '4096 8192 6291456', asked was '4096 8192'"
    )
