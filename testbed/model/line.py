"""Line of the emulated link as arithmetic: serialisation, and the token bucket before it.

Theory and every backend share it (dummynet's pipe; tc-tbf(8)).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from testbed.model.asked import LinkSpec
from testbed.model.impairments import ways
from testbed.model.trace import RunningTrace, trace_of

TIMER_LATE_US = 1.0


def serialisation_ms(ip_bytes: int, rate_kbit: float, framing_bytes: int) -> float:
    """Return how long one packet of ``ip_bytes`` occupies the line, in ms."""
    return (ip_bytes + framing_bytes) * 8 / rate_kbit


def line_ms(spec: LinkSpec, way: str, ip_bytes: int) -> float:
    """Return how long a packet occupies the line in direction ``way``; 0 with a trace.

    A packet comes whole at its opportunity.
    """
    if trace_of(spec, way):
        return 0.0
    rate_kbit = spec.down_kbit if way == "down" else spec.up_kbit
    return serialisation_ms(ip_bytes, rate_kbit, spec.framing_bytes)


def answered_ns(
    spec: LinkSpec,
    at_ns: int,
    up_bytes: int,
    down_bytes: int,
    traces: Mapping[str, RunningTrace] = MappingProxyType({}),
) -> int | None:
    """Return when the answer to a packet of ``at_ns`` is back, over an idle link; ``None``: never.

    ``traces`` are those of the link by direction.
    """
    for way, ip_bytes in (("up", up_bytes), ("down", down_bytes)):
        if way in traces:
            left_ns = traces[way].next_ns(at_ns)
            if left_ns is None:
                return None
            at_ns = left_ns
        at_ns += round(line_ms(spec, way, ip_bytes) * 1e6) + delay_ns(spec, way)
    return at_ns


def delay_ns(spec: LinkSpec, way: str) -> int:
    """Return the delay in direction ``way``, in whole microseconds as it is set."""
    return round(ways(spec)[way].delay_ms * 1000) * 1000


def burst_bytes(spec: LinkSpec) -> int:
    """Return the size of the bucket: one packet's worth, the smallest that tbf can work with.

    It is a little more than the packet, which it never holds back by itself.  What comes in while a
    timer is late must find room as well: on a fast link that is more.
    """
    late_bytes = math.ceil(max(spec.down_kbit, spec.up_kbit) / 8000 * TIMER_LATE_US)
    return spec.line_mtu_bytes + max(40, spec.framing_bytes + late_bytes)
