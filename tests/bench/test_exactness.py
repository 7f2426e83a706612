from __future__ import annotations

from pathlib import Path

import pytest

from bench.exactness import FetchComparison, read_exchange
from bench.small_page import RESPONSE_BYTES, build_small_page
from bench.theory import ColdFetch
from testbed.archive.reading import read_archive
from testbed.model import LinkSpec
from tests.capture.conversation import Sent, write_capture
from tests.capture.packets import ACK, FIN, SYN


def test_an_exchange_ends_with_the_servers_last_data(tmp_path: Path) -> None:
    path = tmp_path / "client.pcap"
    write_capture(
        path,
        [
            Sent(0, "client", SYN),
            Sent(1_000_000, "server", SYN | ACK),
            Sent(1_000_001, "client", ACK, data=b"GET"),
            Sent(2_000_000, "server", ACK),
            Sent(3_000_007, "server", ACK, data=b"answer"),
            Sent(9_000_000, "server", ACK | FIN),
        ],
    )
    took_ms, sizes = read_exchange(path)
    assert took_ms == 3.000007
    assert sizes.up == (40, 43)
    assert sizes.down == (40, 40, 46)


@pytest.mark.parametrize(
    ("client_ms", "sizes_agree", "within"),
    [(80.0099, True, True), (79.9901, True, True), (80.0101, True, False), (80.0, False, False)],
)
def test_within_means_time_and_sizes(client_ms: float, sizes_agree: bool, within: bool) -> None:
    fetch = ColdFetch(LinkSpec(), 490, RESPONSE_BYTES, fast_open=False)
    assert FetchComparison(fetch, 80.0, 80.0, client_ms, sizes_agree).within is within


def test_the_small_page_is_one_object_of_the_asked_size(tmp_path: Path) -> None:
    archive = read_archive(build_small_page(tmp_path))
    assert [entry.transfer_bytes for entry in archive.entries] == [RESPONSE_BYTES]
