"""A cold fetch takes what the closed form of its packets says, and sends exactly these packets."""

from __future__ import annotations

import shutil
from pathlib import Path
from socket import inet_aton

import pytest

from bench.small_page import RESPONSE_BYTES, build_small_page
from testbed.capture.packets import read_capture
from testbed.client.walk.discovery import Node
from testbed.client.walk.fetch import request_head
from testbed.lab.topology import CLIENT_ADDRESS
from testbed.model import CAPTURE_FILE
from tests.acceptance.house import House, assert_ok
from tests.capture.conversation import Sent, write_capture
from tests.capture.packets import ACK, FIN, SYN
from tests.closed_form import ColdFetch, Packets, fetch_ms, packets
from tests.measured import load_of

# The fields of a recorded request that the graph client gets.
NODE = ("url", "method", "host", "port", "mime", "body_size", "request_body_size", "parent")


def read_exchange(pcap: Path) -> tuple[float, Packets]:
    """The time from the first SYN to the server's last data in ms, and IP bytes of all packets.

    The server's packets end with its last data.
    """
    sent = [packet for packet in read_capture(pcap).packets if packet.protocol == "TCP"]
    client = inet_aton(CLIENT_ADDRESS)
    up, down = ([p for p in sent if (p.source == client) is way] for way in (True, False))
    while not down[-1].payload_bytes:
        down.pop()
    sizes = (tuple(packet.ip_bytes for packet in way) for way in (up, down))
    return (down[-1].at_ns - up[0].at_ns) / 1e6, Packets(*sizes)


def test_an_exchange_ends_with_the_servers_last_data(tmp_path: Path) -> None:
    path = tmp_path / "client.pcap"
    write_capture(path,
                  [Sent(0, "client", SYN), Sent(1_000_000, "server", SYN | ACK),
                   Sent(1_000_001, "client", ACK, data=b"GET"), Sent(2_000_000, "server", ACK),
                   Sent(3_000_007, "server", ACK, data=b"answer"),
                   Sent(9_000_000, "server", ACK | FIN)])  # fmt: skip
    took_ms, sizes = read_exchange(path)
    assert took_ms == 3.000007
    assert sizes.up == (40, 43)
    assert sizes.down == (40, 40, 46)


@pytest.mark.guest
def test_a_cold_fetch_takes_what_its_packets_come_to(house: House, tmp_path: Path) -> None:
    build_small_page(tmp_path)
    shutil.copytree(tmp_path / "small", house.pages / "small")
    (root,) = house.archive("small").entries
    assert root.transfer_bytes == RESPONSE_BYTES
    asked_for = {"tls": False, "target": root.path, "revalidates": False}
    request = len(request_head(Node(asked_for | {name: getattr(root, name) for name in NODE})))
    ran = house.run(page="small", client="graph", dns="hosts", rtt_ms=[20, 100, 200],
                    tfo=[False, True])  # fmt: skip
    assert len(ran.records) == 6
    for record in ran.records:
        assert_ok(record)
        asked = record.trial.linked
        fetch = ColdFetch(asked.link, request, RESPONSE_BYTES, asked.tcp.tfo)
        wire_ms, sizes = read_exchange(ran.folder / "trials" / record.trial_id / CAPTURE_FILE)
        assert load_of(record).plt_ms == pytest.approx(fetch_ms(fetch), abs=0.010)
        assert wire_ms == pytest.approx(fetch_ms(fetch), abs=0.010)
        expected = packets(fetch)
        # The client's last acknowledgements are not in the theory.
        assert sizes.up[: len(expected.up)] == expected.up
        assert sizes.down == expected.down
