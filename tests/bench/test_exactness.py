from __future__ import annotations

import io
import struct
from pathlib import Path

import dpkt
import pytest

from bench.exactness import Comparison, read_exchange
from bench.small_page import RESPONSE_BYTES, build_small_page
from bench.theory import Fetch
from testbed.archive.reading import read_archive
from testbed.model import LinkSpec

CLIENT, SERVER = bytes((10, 0, 0, 2)), bytes((10, 10, 0, 1))
START_NS = 1_700_000_000_123_456_789


def frame(source: bytes, flags: int, payload: bytes) -> bytes:
    target = SERVER if source == CLIENT else CLIENT
    segment = dpkt.tcp.TCP(sport=1, dport=2, flags=flags, data=payload)
    packet = dpkt.ip.IP(src=source, dst=target, p=dpkt.ip.IP_PROTO_TCP, data=segment)
    packet.len = len(packet)
    return bytes(dpkt.ethernet.Ethernet(data=packet))


def capture(path: Path, packets: list[tuple[int, bytes]]) -> Path:
    file = io.BytesIO()
    file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 256, 1))
    for offset_ns, data in packets:
        seconds, rest = divmod(START_NS + offset_ns, 1_000_000_000)
        file.write(struct.pack("<IIII", seconds, rest, len(data), len(data)) + data)
    path.write_bytes(file.getvalue())
    return path


def test_an_exchange_ends_with_the_servers_last_data(tmp_path: Path) -> None:
    syn, ack = dpkt.tcp.TH_SYN, dpkt.tcp.TH_ACK
    pcap = capture(
        tmp_path / "client.pcap",
        [
            (0, frame(CLIENT, syn, b"")),
            (1_000_000, frame(SERVER, syn | ack, b"")),
            (1_000_001, frame(CLIENT, ack, b"GET")),
            (2_000_000, frame(SERVER, ack, b"")),
            (3_000_007, frame(SERVER, ack, b"answer")),
            (9_000_000, frame(SERVER, ack | dpkt.tcp.TH_FIN, b"")),
        ],
    )
    took_ms, sizes = read_exchange(pcap)
    assert took_ms == 3.000007
    assert sizes.up == (40, 43)
    assert sizes.down == (40, 40, 46)


@pytest.mark.parametrize(
    ("client_ms", "sizes_agree", "within"),
    [(80.0099, True, True), (79.9901, True, True), (80.0101, True, False), (80.0, False, False)],
)
def test_within_means_time_and_sizes(client_ms: float, sizes_agree: bool, within: bool) -> None:
    fetch = Fetch(LinkSpec(), 490, RESPONSE_BYTES, fast_open=False)
    assert Comparison(fetch, 80.0, 80.0, client_ms, sizes_agree).within is within


def test_the_small_page_is_one_object_of_the_asked_size(tmp_path: Path) -> None:
    archive = read_archive(build_small_page(tmp_path))
    assert [entry.transfer_bytes for entry in archive.entries] == [RESPONSE_BYTES]
