"""Statistics of queues by the kernel's names: what was marked, and by which rule or class.

Only what counts up is here; a gauge would say nothing of a whole load.  Sources:
include/uapi/linux/pkt_sched.h (``struct tc_*_xstats``), tc-cake(8).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from testbed.lab.rtnetlink import attributes, number_of

MARKS = ("ecn_mark", "ce_mark", "marked", "prob_mark", "forced_mark", "prob_mark_head",
         "forced_mark_head")  # fmt: skip
"""Packets that a queue gave a congestion mark (RFC 3168)."""
# Numbers of 4 bytes (8: two of them) by their place in the structure, as far as a kernel has it.
_PLACES = {
    "codel": {"drop_overlimit": 20, "ecn_mark": 24, "ce_mark": 32},
    "fq_codel": {"drop_overlimit": 8, "ecn_mark": 12, "new_flow_count": 16, "ce_mark": 28,
                 "drop_overmemory": 36},
    "pie": {"packets_in": 20, "dropped": 24, "overlimit": 28, "ecn_mark": 36},
    "fq_pie": {"packets_in": 0, "dropped": 4, "overlimit": 8, "overmemory": 12, "ecn_mark": 16,
               "new_flow_count": 20},
    "red": {"early": 0, "pdrop": 4, "other": 8, "marked": 12},
    "choke": {"early": 0, "pdrop": 4, "other": 8, "marked": 12, "matched": 16},
    "fq": {"throttled": 24, "flows_plimit": 32, "ce_mark": 80, "horizon_drops": 88},
    "dualpi2": {"packets_in_c": 12, "packets_in_l": 16, "ecn_mark": 24, "step_marks": 28},
    # Within its options.
    "sfq": {"prob_drop": 48, "forced_drop": 52, "prob_mark": 56, "forced_mark": 60,
            "prob_mark_head": 64, "forced_mark_head": 68},
}  # fmt: skip
_CAKE_TINS = 10
_CAKE_TIN = {"packets": 2, "dropped": 4, "acks_dropped": 6, "ecn_mark": 8}


def read_statistics(kind: str, told: bytes, options: bytes) -> dict[str, int]:
    """What a discipline counts of itself: ``told`` is its TCA_STATS_APP; those of tins by tin."""
    if kind == "cake":
        return dict(_read_tins(attributes(attributes(told).get(_CAKE_TINS, b""))))
    structure = options if kind == "sfq" else told
    return {
        name: struct.unpack_from("=I", structure, place)[0]
        for name, place in _PLACES.get(kind, {}).items()
        if place + 4 <= len(structure)
    }


def count_marks(statistics: Mapping[str, int]) -> int:
    """Packets that were marked, by all rules and in all tins."""
    return sum(count for name, count in statistics.items() if name.rpartition(".")[2] in MARKS)


def _read_tins(tins: dict[int, bytes]) -> Iterator[tuple[str, int]]:
    for place, tin in tins.items():
        of_tin = attributes(tin)
        for name, kind in _CAKE_TIN.items():
            yield f"tin{place - 1}.{name}", number_of(of_tin.get(kind, b""))
