"""What is to happen later, in the order of its moments."""

from __future__ import annotations

import time
from heapq import heappop, heappush

TYPE_CHECKING = False  # not from typing, whose import costs every start
if TYPE_CHECKING:
    from collections.abc import Callable


class Timers:
    """Actions by moment (s of the monotonic clock); equal moments keep their order."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = 0

    def after(self, delay_s: float, action: Callable[[], None]) -> None:
        """Call ``action`` when ``delay_s`` have passed."""
        self._sequence += 1
        heappush(self._heap, (time.monotonic() + delay_s, self._sequence, action))

    @property
    def next_moment(self) -> float:
        """When the next action is due; infinity when there is none."""
        return self._heap[0][0] if self._heap else float("inf")

    def run_due(self, now: float) -> bool:
        """Call the next action if it is due; whether it was."""
        if self.next_moment > now:
            return False
        heappop(self._heap)[2]()
        return True
