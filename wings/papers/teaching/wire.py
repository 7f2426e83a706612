"""Packets of a lab's captures as rows, and the moments of each load that arithmetic can predict.

All times are the client's, where the captures are taken, in ms since the first packet.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from analysis.records.cells import flatten
from analysis.records.frame import kind_of_results, varying_columns
from analysis.records.results import Results
from testbed.base import places
from testbed.base.errors import ConfigurationError
from testbed.capture.packets import (
    ACK,
    FAST_OPEN,
    FIN,
    PSH,
    RST,
    SYN,
    TIMESTAMPS,
    Packet,
    behind,
    find_option,
    read_capture,
)
from testbed.model import CAPTURE_FILE, Record

FLAGS = ((SYN, "S"), (FIN, "F"), (RST, "R"), (PSH, "P"), (ACK, "."))
"""As tcpdump writes them."""


def packets(results: Results, **knobs: Any) -> pd.DataFrame:
    """Return the TCP packets of the load that has these ``knobs``; print where to open them.

    Columns: ``at_ms``, ``connection`` (from 1, in the order of SYNs), ``sender``, ``flag`` as
    tcpdump has them, ``seq`` and ``ack`` from the connection's start, ``payload_bytes`` above TCP,
    ``ip_bytes`` of the whole packet, ``cookie`` of Fast Open (in hex; ``asked`` where it is empty),
    and ``tsval_ms``, the sender's clock (RFC 7323), NA without that option.

    Raises:
        ConfigurationError: no load has these knobs, or several have.
        OSError: there is no capture.
    """
    record = _the_one(results, knobs)
    pcap = results.folder / "trials" / record.trial_id / CAPTURE_FILE
    shown = pcap.relative_to(places.ROOT) if pcap.is_relative_to(places.ROOT) else pcap
    print(f"wireshark {shown}")
    return _rows(pcap)


def moments(results: Results) -> pd.DataFrame:
    """Return a row for each page load: its knobs, and the times of events in its capture.

    Columns: the knobs; of the first connection ``handshake_ms`` (from the SYN to the SYN-ACK),
    ``first_byte_ms`` (to the first packet with data from the server), ``request_bytes`` of the
    first packet with data from the client; ``fetch_ms`` (to the last data from the server) and
    ``response_bytes`` of all connections; ``connections``; ``retransmits`` of the server.
    """
    rows = []
    for record in results.records:
        sent = _rows(results.folder / "trials" / record.trial_id / CAPTURE_FILE)
        data = sent[sent["payload_bytes"] > 0]
        first = sent[sent["connection"] == 1]
        downlink = data[data["sender"] == "server"]
        uplink = data[data["sender"] == "client"]
        known = {"handshake_ms": first.loc[first["flag"] == "S.", "at_ms"].iloc[0],
                 "first_byte_ms": downlink.loc[downlink["connection"] == 1, "at_ms"].iloc[0],
                 "fetch_ms": downlink["at_ms"].iloc[-1],
                 "request_bytes": uplink["payload_bytes"].iloc[0],
                 "response_bytes": downlink["payload_bytes"].sum(),
                 "connections": sent["connection"].nunique(),
                 "retransmits": record.proof.server_retransmits if record.proof else 0}  # fmt: skip
        rows.append({**flatten(record.trial.condition), **known})
    frame = pd.DataFrame(rows)
    return frame.sort_values(
        list(varying_columns(frame, kind_of_results(results).knobs)), ignore_index=True
    )


def waits(sent: pd.DataFrame) -> pd.DataFrame:
    """Return how long each packet with data from the server waited on its way.

    The sender writes its clock into each packet, the capture says when it came: the difference is
    the way and a constant, and the least of all differences is a packet that waited for nobody.
    The clock ticks once a millisecond, so ``wait_ms`` is exact to that.  Columns: ``at_ms``,
    ``wait_ms``.
    """
    data = sent[(sent["payload_bytes"] > 0) & (sent["sender"] == "server")]
    way = data["at_ms"] - data["tsval_ms"].astype("float64")
    return pd.DataFrame({"at_ms": data["at_ms"], "wait_ms": way - way.min()}).reset_index(drop=True)


def _the_one(results: Results, knobs: dict[str, Any]) -> Record:
    loads = [record for record in results.records
             if knobs.items() <= flatten(record.trial.condition).items()]  # fmt: skip
    if len(loads) != 1:
        named = ", ".join(f"{name}={value}" for name, value in knobs.items()) or "any knobs"
        raise ConfigurationError(
            [f"{len(loads)} of {len(results.records)} loads have {named}: name the knobs of one"]
        )
    return loads[0]


def _rows(pcap: Path) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    numbers: dict[frozenset[str], int] = {}
    clients: dict[frozenset[str], str] = {}
    starts: dict[str, int] = {}
    begin_ns, count = None, 0
    for packet in read_capture(pcap).packets:
        if packet.protocol != "TCP":
            continue
        begin_ns = packet.at_ns if begin_ns is None else begin_ns
        ends = frozenset((packet.sender, packet.receiver))
        way = f"{packet.sender} {packet.receiver}"
        # A SYN that is sent again has the same number; another one is a new connection's.
        if packet.opens and starts.get(way) != packet.seq:
            count += 1
            numbers[ends], clients[ends] = count, packet.sender
        if ends not in numbers:
            continue
        if packet.flags & SYN:
            starts[way] = packet.seq
        rows.append({"at_ms": (packet.at_ns - begin_ns) / 1e6, "connection": numbers[ends],
                     "sender": "client" if clients[ends] == packet.sender else "server",
                     "flag": "".join(mark for bit, mark in FLAGS if packet.flags & bit),
                     **_numbers(packet, starts), "payload_bytes": packet.payload_bytes,
                     "ip_bytes": packet.ip_bytes, "cookie": _cookie(packet),
                     "tsval_ms": _clock(packet)})  # fmt: skip
    return pd.DataFrame(rows).astype({"tsval_ms": "Int64"})


def _numbers(packet: Packet, starts: dict[str, int]) -> dict[str, int]:
    """Return sequence and acknowledgement numbers as tcpdump has them, from 0 at the SYN."""
    mine = starts.get(f"{packet.sender} {packet.receiver}", packet.seq)
    theirs = starts.get(f"{packet.receiver} {packet.sender}", packet.ack)
    acked = behind(packet.ack, theirs) if packet.flags & ACK else 0
    return {"seq": behind(packet.seq, mine), "ack": acked}


def _cookie(packet: Packet) -> str:
    cookie = find_option(packet, FAST_OPEN)
    return "" if cookie is None else cookie.hex() or "asked"


def _clock(packet: Packet) -> int | None:
    stamps = find_option(packet, TIMESTAMPS)
    return int.from_bytes(stamps[:4], "big") if stamps else None
