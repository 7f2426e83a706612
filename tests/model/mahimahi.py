"""What link_queue.cc of mahimahi does with packets, opportunity by opportunity, for tests."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

MS_NS = 1_000_000
MOST = 100_000


def serve(
    times: Sequence[int], packets: Sequence[tuple[int, int]], room: int, *, once: bool = False
) -> list[int]:
    """Return when each of ``packets``, (came at ns, bytes), leaves, in ns from the trace's start.

    Each opportunity is used or burnt in its turn; a packet in transit keeps what it has had.
    """
    coming, waiting = deque(packets), deque[int]()
    left, in_transit, index, base = [], 0, 0, 0
    for _ in range(MOST):
        if index == len(times):
            if once:
                break
            base, index = base + times[-1], 0
        now, index = (base + times[index]) * MS_NS, index + 1
        while coming and coming[0][0] < now:
            waiting.append(coming.popleft()[1])
        unused = room
        while unused > 0 and (in_transit or waiting):
            in_transit = in_transit or waiting.popleft()
            sent = min(unused, in_transit)
            unused, in_transit = unused - sent, in_transit - sent
            if not in_transit:
                left.append(now)
        if len(left) == len(packets):
            break
    return left
