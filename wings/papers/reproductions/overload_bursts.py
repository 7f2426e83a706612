"""Short bursts above a server's capacity: section VI-B of Shukla and Brecht, 2006."""

from __future__ import annotations

from wings.papers.reproductions.overload_curves import ArmPair
from wings.papers.reproductions.overload_sweep import OverloadSweep

REFUSING = ("abort rst-syn", "reserv rst-syn", "no-syn-drop")
SWEEP = OverloadSweep("A server under short bursts", "burst_s", "Burst (s)",
                      tuple(ArmPair(arm, "default") for arm in REFUSING))  # fmt: skip
rebuild = SWEEP.rebuild
