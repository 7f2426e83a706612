"""Ways to establish connections over longer round trips: section V of Shukla and Brecht, 2006."""

from __future__ import annotations

from wings.papers.reproductions.overload_establishment import PAIRS
from wings.papers.reproductions.overload_sweep import OverloadSweep

SWEEP = OverloadSweep("An overloaded server in a wide area network", "rtt_ms", "RTT (ms)", PAIRS)
rebuild = SWEEP.rebuild
