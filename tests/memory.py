"""Memory that a function takes, in bytes, as Python traces it."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable


def trace(act: Callable[[], object]) -> tuple[int, int]:
    """Return what is kept while the result of ``act`` is, and the most that was taken.

    The least of three: Python's table of interned strings is large after other tests, and may be
    moved to a larger one within any of them.
    """
    kept, peaks = [], []
    for _ in range(3):
        gc.collect()
        tracemalloc.start()
        result = act()
        now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        del result
        kept.append(now)
        peaks.append(peak)
    return min(kept), min(peaks)
