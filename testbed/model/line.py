"""Line of the emulated link as arithmetic: serialisation, and the token bucket before it.

Theory and every backend share it (dummynet's pipe; tc-tbf(8)).
"""

from __future__ import annotations

from testbed.model.asked import LinkSpec


def serialisation_ms(ip_bytes: int, rate_kbit: float, framing_bytes: int) -> float:
    """Return how long one packet of ``ip_bytes`` occupies the line, in ms."""
    return (ip_bytes + framing_bytes) * 8 / rate_kbit


def burst_bytes(spec: LinkSpec) -> int:
    """Return the size of the bucket: one packet's worth, the smallest that tbf can work with.

    It is a little more than the packet, which it never holds back by itself.
    """
    return spec.mtu_bytes + 40
