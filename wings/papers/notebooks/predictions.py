"""Predictions for links, single fetches and servers under load, by arithmetic alone, as frames."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import product
from typing import Any

import pandas as pd

from analysis.shortflow import explain_fetch
from testbed.base.errors import ConfigurationError
from testbed.model import LinkSpec, TcpSpec

FULL_PACKET_BYTES = 1500
LINK = tuple(spec.name for spec in fields(LinkSpec))
TCP = tuple(spec.name for spec in fields(TcpSpec))
ENDINGS = {"FINs in both directions": 9, "rst-fin": 8, "close-rst": 7}
"""Segments of a connection beside its SYN, by how it ends: SYN-ACK, ACK, request and response with
an ACK of each; then FIN, FIN with ACK, and ACK, or FIN and RST, or the client's RST."""
REFUSAL = 1
"""Segments of a refused SYN beside it: the RST."""
TIMES = ("fetch_ms", "handshake_ms", "response_ms", "idle_ms")


def link_times(links: Iterable[LinkSpec]) -> pd.DataFrame:
    """Return what the numbers of a link mean in time: one row for each link.

    Columns: ``rtt_ms``; ``packet_down_ms`` and ``packet_up_ms``, how long a full packet is on the
    wire; ``queue_down_ms`` and ``queue_up_ms``, how long one waits behind a full buffer; and
    ``pipe_packets``, the full packets downstream that fill the link for one round trip.
    """
    rows = []
    for link in links:
        packet_bits = (FULL_PACKET_BYTES + link.framing_bytes) * 8
        buffer_bits = link.buffer_bytes * 8
        rows.append({"rtt_ms": link.rtt_ms, "packet_down_ms": packet_bits / link.down_kbit,
                     "packet_up_ms": packet_bits / link.up_kbit,
                     "queue_down_ms": buffer_bits / link.down_kbit,
                     "queue_up_ms": buffer_bits / link.up_kbit,
                     "pipe_packets": link.rtt_ms * link.down_kbit / packet_bits})  # fmt: skip
    return pd.DataFrame(rows)


def fetches(link: LinkSpec, tcp: TcpSpec, *, request_bytes: int, response_bytes: Sequence[int],
            **swept: Sequence[Any]) -> pd.DataFrame:  # fmt: skip
    """Return what ``analysis.shortflow`` predicts of one object on a new connection.

    Args:
        link: the link, as far as it is not swept.
        tcp: TCP's knobs, as far as they are not swept.
        request_bytes: the request above TCP.
        response_bytes: the responses above TCP.
        swept: values of further knobs of the link or of TCP, by name; all combinations.

    Columns: ``response_bytes`` and what else is swept; ``fetch_ms`` and its parts
    ``handshake_ms`` and ``response_ms``; ``idle_ms``, for how long of the response the line
    was idle; ``rounds``; and ``peak_buffer_bytes``.  Where the buffer would overflow the
    times are NaN: the model knows no loss.

    Raises:
        ConfigurationError: a name is no knob, or a value is none that the model knows.
    """
    unknown = [name for name in swept if name not in (*LINK, *TCP)]
    if unknown:
        raise ConfigurationError(
            [f"fetches: {name} is no knob of a link or of TCP" for name in unknown]
        )
    rows = []
    for size, *values in product(response_bytes, *swept.values()):
        known = dict(zip(swept, values, strict=True))
        parts = explain_fetch(replace(link,
                                      **{name: known[name] for name in LINK if name in known}),
                              replace(tcp, **{name: known[name] for name in TCP if name in known}),
                              request_bytes, size)  # fmt: skip
        times = {name: math.nan if parts.overflows else getattr(parts, name) for name in TIMES}
        peak = {"rounds": parts.rounds, "peak_buffer_bytes": parts.peak_buffer_bytes}
        rows.append({"response_bytes": size, **known, **times, **peak})
    return pd.DataFrame(rows)


def capacities(prices_ns: Mapping[str, int]) -> pd.DataFrame:
    """Return what a connection costs by a price list, by how it ends: one row for each way.

    Columns: ``ending``, ``segments`` beside the SYN, ``connection_us`` and ``capacity_per_s``,
    which is its inverse: a server that does nothing else is through with so many.
    """
    once = sum(prices_ns[name] for name in ("syn", "accept", "request", "close"))
    rows = [{"ending": ending, "segments": segments, "connection_us": cost_ns / 1000,
             "capacity_per_s": 1e9 / cost_ns} for ending, segments in ENDINGS.items()
            for cost_ns in (once + segments * prices_ns["segment"],)]  # fmt: skip
    return pd.DataFrame(rows)


def refusals(prices_ns: Mapping[str, int], rates: Iterable[int], backlog: int) -> pd.DataFrame:
    """Return what is left for connections where each that finds no room is refused at its SYN.

    A busy server has 1 s for each second: ``x`` connections that it serves and ``rate - x`` SYNs
    that it refuses.  What it serves has waited in a full queue of ``backlog`` + 1.  Columns:
    ``rate_per_s``, ``replies_per_s``, ``wait_ms``; below the capacity nobody waits.
    """
    served_s = float(capacities(prices_ns)["connection_us"].iloc[0]) / 1e6
    refused_s = (prices_ns["syn"] + REFUSAL * prices_ns["segment"]) / 1e9
    rows = []
    for rate in rates:
        replies = min(float(rate), max(0.0, (1 - rate * refused_s) / (served_s - refused_s)))
        full = replies < rate
        wait_ms = 0.0 if not full else 1000 * (backlog + 1) / replies if replies else math.inf
        rows.append({"rate_per_s": rate, "replies_per_s": replies, "wait_ms": wait_ms})
    return pd.DataFrame(rows)
