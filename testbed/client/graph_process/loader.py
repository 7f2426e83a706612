"""Event loop of a page load: it fetches what is known, and what arrives makes more known."""

from __future__ import annotations

import time
from heapq import heappop, heappush

from testbed.client.graph_process.fetch import Fetch
from testbed.client.graph_process.transfers import Transfers

TYPE_CHECKING = False  # not from typing, whose import costs every start
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from testbed.client.graph_process.discovery import Node
    from testbed.client.graph_process.tls import Trust


class Loader:
    """Load of one page.  Times are in s of the monotonic clock."""

    def __init__(self, fast_open: bool, timeout_s: float, trust: Trust | None = None) -> None:
        self.fetches: list[Fetch] = []
        self.timed_out = False
        self.start = 0.0
        self._timeout_s = timeout_s
        self._unfinished = 0
        self._timers = Timers()
        self._transfers = Transfers(self._timers.after, self._discover, self._end, fast_open, trust)

    def load(self, roots: Sequence[Node], guesses: Sequence[Mapping[str, Any]] = ()) -> None:
        """Fetch ``roots`` and all that becomes known, until nothing is left or time is up.

        A connection is opened for each of ``guesses`` at the start.
        """
        self.start = time.monotonic()
        deadline = self.start + self._timeout_s
        for node in roots:
            self._fetch(node)
        for guess in guesses:
            self._transfers.preconnect(**guess)
        while self._unfinished:
            now = time.monotonic()
            if now >= deadline:
                self.timed_out = True
                self._give_up()
                break
            if not self._timers.run_due(now):
                self._transfers.run(min(deadline, self._timers.next_moment) - now)
        self._transfers.close()

    def _fetch(self, node: Node) -> None:
        fetch = Fetch(node, time.monotonic())
        self.fetches.append(fetch)
        self._unfinished += 1
        self._transfers.add(fetch)

    def _discover(self, fetch: Fetch) -> None:
        """Fetch the children that the response so far makes known."""
        for think_s, node in fetch.take_known():
            self._think(think_s, node)

    def _think(self, think_s: float, node: Node) -> None:
        if think_s <= 0:
            self._fetch(node)
            return

        def become_known() -> None:
            self._unfinished -= 1
            self._fetch(node)

        self._unfinished += 1
        self._timers.after(think_s, become_known)

    def _end(self, _: Fetch) -> None:
        self._unfinished -= 1

    def _give_up(self) -> None:
        for fetch in self.fetches:
            if fetch.ended is None:
                self._transfers.fail(fetch, "not complete in time")


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
        """Call the next action if it is due, and return whether it was."""
        if self.next_moment > now:
            return False
        heappop(self._heap)[2]()
        return True
