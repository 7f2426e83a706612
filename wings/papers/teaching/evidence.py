"""Evidence of the labs' checks: what a right answer comes to in the student's own run.

It is here and not in the notebooks so that a check does not show how its answer is found.  Frames
are those of ``wings.papers.teaching.wire`` (``sent`` has packets, ``measured`` moments), of
``wings.papers.notebooks.show.savings`` and of ``analysis.records.frame``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from analysis.records.results import Results

FULL_PACKET_BYTES = 1500
FILE_BYTES = 60 * 1024
"""Of the page file-60k, without the head of its response."""
CALL, UPLOAD = "call", "bulk up + call"
"""Neighbours of the lab of bufferbloat."""
OPENED = {"full handshake": ("h2", False, False, False), "resumption": ("h2", True, False, False),
          "early data": ("h2", True, True, False), "Fast Open": ("h2", False, False, True),
          "both": ("h2", True, True, True), "HTTP/3": ("h3", True, False, False),
          "0-RTT": ("h3", True, True, False)}  # fmt: skip
"""Ways to open a connection: protocol, tickets, early data, Fast Open."""


def handshake_shares(measured: pd.DataFrame, up_kbit: int) -> dict[float, float]:
    """Return by ``rtt_ms`` what share of a fetch over this uplink is its handshake, in percent."""
    chosen = measured[measured["up_kbit"] == up_kbit]
    shares = chosen["handshake_ms"] / chosen["fetch_ms"] * 100.0
    return dict(zip(chosen["rtt_ms"], shares, strict=True))


def openings(sent: pd.DataFrame) -> pd.Series[float]:
    """Return how long each connection waited from its first SYN to its SYN-ACK, in ms."""
    syn_ms = sent[sent["flag"] == "S"].groupby("connection")["at_ms"].min()
    syn_ack_ms = sent[sent["flag"] == "S."].groupby("connection")["at_ms"].min()
    return (syn_ack_ms - syn_ms).dropna()


def full_packet_ms(sent: pd.DataFrame) -> float:
    """Return the median time between full packets from the server: serialisation on the link."""
    data = sent[(sent["sender"] == "server") & (sent["payload_bytes"] > 0)]
    full = data[data["ip_bytes"] == data["ip_bytes"].max()]
    return float(full["at_ms"].diff().median())


def first_codel_drop_ms(waited: pd.DataFrame, target_ms: float, interval_ms: float) -> float:
    """Return when CoDel would first drop a packet of these ``waits`` (RFC 8289, section 5).

    It does so when waits have been ``target_ms`` or more for an ``interval_ms`` without a break;
    NaN where they never are.
    """
    since_ms = math.nan
    for at_ms, wait_ms in zip(waited["at_ms"], waited["wait_ms"], strict=True):
        if wait_ms < target_ms:
            since_ms = math.nan
        elif math.isnan(since_ms):
            since_ms = at_ms
        elif at_ms >= since_ms + interval_ms:
            return float(at_ms)
    return math.nan


def repeated_syns(sent: pd.DataFrame) -> dict[int, float]:
    """Return after how many seconds a SYN usually came for the second time, third time and so on.

    The keys count the repetitions, from 1; the values are medians over the connections.
    """
    syns = sent[sent["flag"] == "S"]
    after = syns["at_ms"] - syns.groupby("connection")["at_ms"].transform("min")
    turn = syns.groupby("connection").cumcount()
    medians = (after / 1000.0).groupby(turn).median()
    return {int(str(n)): float(value) for n, value in medians.items() if n != 0}


def requests_s(sent: pd.DataFrame, up_kbit: int) -> float:
    """Return how long the client's packets with data, each counted once, keep the uplink busy."""
    once = _asked(sent).drop_duplicates(["connection", "seq"])
    return float(once["ip_bytes"].sum() * 8 / (up_kbit * 1000))


def sent_again(sent: pd.DataFrame) -> int:
    """Return the number of packets with data that the client retransmitted."""
    return int(_asked(sent).duplicated(["connection", "seq"]).sum())


def stated_round_trips(savings: pd.DataFrame, from_ms: float, to_ms: float) -> dict[str, float]:
    """Return how many round trips in a row the published load times have, by page and arm."""
    trips = {}
    for page, rows in savings.groupby("page"):
        by_rtt = rows.set_index("rtt_ms")
        for arm, column in (("off", "paper_plt_off_s"), ("on", "paper_plt_on_s")):
            more_s = by_rtt[column][to_ms] - by_rtt[column][from_ms]
            trips[f"{page} {arm}"] = float(more_s / ((to_ms - from_ms) / 1000.0))
    return trips


def furthest_row(savings: pd.DataFrame) -> tuple[str, float]:
    """Return page and round-trip time of the gain that is furthest from the published one."""
    apart = (savings["improvement_pct"] - savings["paper_improvement_pct"]).abs()
    row = savings.iloc[int(apart.to_numpy().argmax())]
    return str(row["page"]), float(row["rtt_ms"])


def count_flights(measured: pd.DataFrame) -> pd.DataFrame:
    """Return ``measured`` with ``flights``: whole round trips of a fetch after its handshake."""
    return measured.assign(flights=measured["fetch_ms"] // measured["rtt_ms"] - 1)


def smallest_windows(measured: pd.DataFrame, most: int) -> dict[int, float]:
    """Return the smallest window that was measured for each number of flights up to ``most``."""
    least_window = count_flights(measured).groupby("flights")["initcwnd_segments"].min()
    return {flights: float(least_window[flights]) for flights in range(1, most + 1)}


def room_of_windows(sent: pd.DataFrame, segments: int) -> int:
    """Return the bytes of a file that ``segments`` carry, behind the head of its response."""
    data = sent[(sent["sender"] == "server") & (sent["payload_bytes"] > 0)]
    head_bytes = data["payload_bytes"].sum() - FILE_BYTES
    return int(segments * data["payload_bytes"].max() - head_bytes)


def shorter_pct(measured: pd.DataFrame, buffer_bytes: int, than_bytes: int) -> float:
    """Return by how many percent a fetch is shorter through one buffer than through another."""
    took = measured.set_index("buffer_bytes")["fetch_ms"]
    return float((1 - took[buffer_bytes] / took[than_bytes]) * 100.0)


def pipes(measured: pd.DataFrame, sent: pd.DataFrame, rtts_ms: Sequence[float]) -> pd.DataFrame:
    """Return for each of ``rtts_ms`` the ``pipe_bytes`` that come in it at the line's pace.

    Columns: ``rtt_ms``, ``down_kbit`` of the loads, and ``pipe_bytes``.
    """
    pace_ms = full_packet_ms(sent)
    rows = [{"rtt_ms": rtt_ms, "down_kbit": measured["down_kbit"].iloc[0],
             "pipe_bytes": rtt_ms / pace_ms * FULL_PACKET_BYTES} for rtt_ms in rtts_ms]  # fmt: skip
    return pd.DataFrame(rows)


def ways(measured: pd.DataFrame, sent: pd.DataFrame, packet_bytes: int) -> pd.DataFrame:
    """Return ``measured`` with ``way_ms``: what a packet takes down behind the longest wait."""
    own_ms = packet_bytes * full_packet_ms(sent) / FULL_PACKET_BYTES
    return measured.assign(way_ms=measured["rtt_ms"] / 2 + measured["full_ms"] + own_ms)


def uplink_packet_ms(results: Results) -> float:
    """Return how long a full packet takes onto the uplink of the first load."""
    link = results.records[0].trial.linked.link
    return FULL_PACKET_BYTES * 8 / link.up_kbit


def waits_in_a_row(measured: pd.DataFrame, buffer_bytes: int) -> float:
    """Return how many longest waits in a FIFO an upload adds to the load time of a page."""
    busy, quiet = (_behind(measured, buffer_bytes, "fifo", traffic) for traffic in (UPLOAD, CALL))
    return float((busy["plt_ms"] - quiet["plt_ms"]) / busy["up_peak_ms"])


def times_faster(measured: pd.DataFrame, buffer_bytes: int) -> float:
    """Return how many times as long a page takes by a FIFO as by fq_codel, beside an upload."""
    slow, fast = (_behind(measured, buffer_bytes, queue, UPLOAD) for queue in ("fifo", "fq_codel"))
    return float(slow["plt_ms"] / fast["plt_ms"])


def _behind(measured: pd.DataFrame, buffer_bytes: int, qdisc: str, traffic: str) -> Any:
    known = (measured["buffer_bytes"] == buffer_bytes) & (measured["traffic"] == traffic)
    (row,) = measured[known & (measured["qdisc"] == qdisc)].to_dict("records")
    return row


def ways_to_open(measured: pd.DataFrame) -> pd.DataFrame:
    """Return the loads of ``OPENED`` with ``arm``, and ``trips`` until their request left."""
    names = {knobs: name for name, knobs in OPENED.items()}
    knobs = zip(*(measured[name] for name in ("protocol", "tls_resumption", "early_data", "tfo")),
                strict=True)  # fmt: skip
    arms = measured.assign(arm=pd.Series(map(names.get, knobs), index=measured.index),
                           trips=measured["round_trips"].round())  # fmt: skip
    return arms[arms["arm"].notna()].sort_values(["key_share", "ttfb_ms"], ignore_index=True)


def trips(ways: pd.DataFrame, key_share: str, arms: Iterable[str]) -> dict[str, int]:
    """Return by arm how many round trips passed before the request left, with such a hello."""
    known = ways[ways["key_share"] == key_share].set_index("arm")["trips"]
    return {arm: int(known[arm]) for arm in arms}


def capacity_per_s(measured: pd.DataFrame) -> float:
    """Return replies a second by the busy share of a server that has time left."""
    idle = measured[measured["server_cpu_pct"] < 99].iloc[0]
    return float(idle["replies_per_s"] / idle["server_cpu_pct"] * 100.0)


def left_pct(measured: pd.DataFrame, mechanism: str) -> float:
    """Return what share of its capacity the server turns into replies at the highest rate."""
    loads = measured[measured["mechanism"] == mechanism].sort_values("rate_per_s")
    return float(loads["replies_per_s"].iloc[-1] / capacity_per_s(measured) * 100.0)


def _asked(sent: pd.DataFrame) -> pd.DataFrame:
    return sent[(sent["sender"] == "client") & (sent["payload_bytes"] > 0)]
