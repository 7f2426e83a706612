"""Offloads are as asked: no packet of the capture is larger than the MTU (ethtool(8))."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.proof.check import check
from testbed.proof.evidence import Evidence


@check("offload", "capture", "link")
def check_sizes(seen: Evidence) -> Iterator[str]:
    """No packet on the link is larger than its MTU."""
    largest = max((packet.ip_bytes for packet in seen.capture.packets), default=0)
    if largest > seen.link.mtu_bytes:
        yield f"a packet of {largest} bytes is larger than the MTU: an offload is on"
