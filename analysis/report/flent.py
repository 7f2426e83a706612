"""Export for flent (flent.org): what a line carried over a load, and how long its packets took.

A file of flent's data format, version 3 (flent/resultset.py of its source), under the name of its
test ``tcp_bidirectional``, whose plots then draw it: rates of all that arrived in either direction,
and as the ping the median one-way delays of packets up and down, added.  By captures at both ends.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from analysis.records.results import Results
from testbed.base.errors import StorageError
from testbed.base.whole_file import open_whole
from testbed.capture.packets import Capture, read_capture
from testbed.capture.transits import read_transits
from testbed.model import (
    CAPTURE_FILE,
    NEIGHBOUR_FILE,
    REMOTE_FILE,
    SERVER_CAPTURE_FILE,
    Condition,
    Record,
)
from testbed.model.traffic import list_flows, parse_traffic

STEP_NS = 100_000_000
SUFFIX = ".flent.gz"
PAIRS = ((CAPTURE_FILE, SERVER_CAPTURE_FILE), (NEIGHBOUR_FILE, REMOTE_FILE))
"""Captures at both ends of the line, of the page and of its neighbours."""
WAYS = {"down": "download", "up": "upload"}
"""Directions in flent's words."""


@dataclass(frozen=True, slots=True)
class _Arrival:
    """A packet that came through: when, how late, how large, which way, and whose."""

    at_ns: int
    delay_ns: int
    ip_bytes: int
    way: str
    owner: str


def write_flent(results: Results, folder: Path) -> int:
    """Write a file for each load of ``results`` that counts into ``folder``; return their number.

    Raises:
        StorageError: a file cannot be written.
        ValueError: a capture cannot be read.
    """
    remedy = f"make room or check the permissions of {folder}"
    written = 0
    for record in results.records:
        trial = results.folder / "trials" / record.trial_id
        loads = isinstance(record.trial.condition, Condition)
        if record.outcome != "ok" or not loads or not (trial / CAPTURE_FILE).exists():
            continue
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"cannot make {folder}: {error.strerror}; {remedy}") from None
        text = json.dumps(describe_load(record, trial), indent=1, sort_keys=True)
        with open_whole(folder / f"{record.trial_id}{SUFFIX}", remedy) as file:
            file.write(gzip.compress(text.encode(), mtime=0))
        written += 1
    return written


def describe_load(record: Record, trial: Path) -> dict[str, Any]:
    """Return the content of flent's file for a load whose captures are in ``trial``."""
    condition, link = record.trial.condition_as(Condition), record.trial.linked.link
    flows = list_flows(parse_traffic(condition.traffic))
    owners = {flow.port: flow.neighbour.text for flow in flows}
    title = f"{condition.page}, {link.rtt_ms:g} ms, {condition.traffic}, seed {record.trial.seed}"
    there = (trial / name for pair in PAIRS for name in pair)
    captures = {path.name: read_capture(path) for path in there if path.exists()}
    arrivals = sorted(_list_arrivals(captures, owners), key=lambda arrival: arrival.at_ns)
    load_ns = captures[CAPTURE_FILE].packets[0].at_ns
    first_ns = min(load_ns, arrivals[0].at_ns if arrivals else load_ns)
    steps = 1 + (arrivals[-1].at_ns - first_ns) // STEP_NS if arrivals else 1
    began = datetime.fromtimestamp(first_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    length_s = steps * STEP_NS / 1e9
    times_s = [(step + 1) * STEP_NS / 1e9 for step in range(steps)]
    series = dict(_list_series(arrivals, first_ns, steps))
    return {
        "version": 3,
        "metadata": {"NAME": "tcp_bidirectional", "TITLE": title,
                     "NOTE": f"the page begins at {(load_ns - first_ns) / 1e9:.3f} s",
                     "TIME": began, "T0": began, "LENGTH": length_s, "TOTAL_LENGTH": length_s,
                     "STEP_SIZE": STEP_NS / 1e9, "HOST": "server", "HOSTS": ["server"],
                     "LOCAL_HOST": "client", "IP_VERSION": 6 if link.ip == "6" else 4,
                     "TEST_PARAMETERS": {}, "DATA_FILENAME": f"{record.trial_id}{SUFFIX}"},
        "x_values": times_s, "results": series,
        "raw_values": {
            name: [
                {"t": first_ns / 1e9 + time_s, "val": value}
                for time_s, value in zip(times_s, values, strict=True)
                if value is not None
            ]
            for name, values in series.items()
        },
    }  # fmt: skip


def _list_arrivals(
    captures: Mapping[str, Capture], owners: Mapping[int, str]
) -> Iterator[_Arrival]:
    for near, far in PAIRS:
        if near not in captures or far not in captures:
            continue
        of_page = near == CAPTURE_FILE
        transits = read_transits(captures[near], captures[far], _addresses_of(captures[near]))
        for way, packets in transits.items():
            for each in packets:
                if each.came_ns is not None:
                    owner = "page" if of_page else owners.get(each.far_port, "second page")
                    delay_ns = each.came_ns - each.sent_ns
                    yield _Arrival(each.came_ns, delay_ns, each.ip_bytes, WAYS[way], owner)


def _addresses_of(capture: Capture) -> list[bytes]:
    """Return the addresses of the host where a capture was made: each packet has one of them."""
    both = Counter(address for p in capture.packets for address in (p.source, p.target) if address)
    found = {len(address): address for address, _ in reversed(both.most_common())}
    return list(found.values())


def _list_series(
    arrivals: Iterable[_Arrival], first_ns: int, steps: int
) -> Iterator[tuple[str, list[float | None]]]:
    """Yield flent's series: rates in Mbit/s, of all and of each; the ping in ms."""
    moved: dict[str, list[float | None]] = defaultdict(lambda: [0.0] * steps)
    delays: dict[str, list[list[int]]] = {way: [[] for _ in range(steps)] for way in WAYS.values()}
    for each in arrivals:
        step = (each.at_ns - first_ns) // STEP_NS
        for name in (f"TCP {each.way}", f"{each.owner} {each.way}"):
            moved[name][step] = (moved[name][step] or 0.0) + each.ip_bytes * 8e3 / STEP_NS
        delays[each.way][step].append(each.delay_ns)
    for way in WAYS.values():
        moved[f"TCP {way}"]  # there, even if nothing came
    yield from moved.items()
    ways = zip(delays["download"], delays["upload"], strict=True)
    pings = [(median(down) + median(up)) / 1e6 if down and up else None for down, up in ways]
    yield "Ping (ms) ICMP", pings
