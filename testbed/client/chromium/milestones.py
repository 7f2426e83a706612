"""What a visitor sees of a load and when: first byte, paints, layout shift.

The browser keeps these for the page itself; it is asked once, when the load is over.

Source: W3C Navigation Timing 2, Paint Timing, Largest Contentful Paint, Layout Instability;
https://web.dev/articles/cls for the windows that shifts are added up in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict

# A picture that came last before the load event is painted some frames later: 100 ms are six.
SCRIPT = """
new Promise((resolve) => setTimeout(resolve, 100)).then(() => {
  const entries = (type) => {
    if (!PerformanceObserver.supportedEntryTypes.includes(type)) { return null; }
    const observer = new PerformanceObserver(() => undefined);
    observer.observe({ type, buffered: true });
    const found = observer.takeRecords();
    observer.disconnect();
    return found;
  };
  const paints = Object.fromEntries(
    performance.getEntriesByType('paint').map(({ name, startTime }) => [name, startTime]));
  // Of these a page that is given pinned ones (pinned.js) has one at least.
  const read = [Date.now, Math.random, Performance.prototype.now, Crypto.prototype.getRandomValues];
  const textOf = Function.prototype.toString;
  return {
    pinned: read.some((called) => /\\btime\\(now\\)|\\bvisit\\('/.test(textOf.call(called))),
    paints,
    largest: entries('largest-contentful-paint')?.map(({ startTime }) => startTime) ?? null,
    shifts: entries('layout-shift')?.filter(({ hadRecentInput }) => !hadRecentInput)
      .map(({ startTime, value }) => [startTime, value]) ?? null,
  };
})
"""

GAP_MS = 1000.0
WINDOW_MS = 5000.0


class Milestones(TypedDict):
    """Fields of a page load."""

    ttfb_ms: float | None
    fp_ms: float | None
    fcp_ms: float | None
    lcp_ms: float | None
    cls: float | None


def milestones_of(observed: dict[str, Any] | None, response_start_ms: float) -> Milestones:
    """Return what a visitor saw, as a page load has it.

    Args:
        observed: the script's answer; ``None``: the page no longer answered.
        response_start_ms: of the navigation; 0 where the page may not know it.
    """
    observed = observed or {"paints": {}, "largest": None, "shifts": None}
    largest, shifts = observed["largest"], observed["shifts"]
    return {
        "ttfb_ms": response_start_ms or None,
        "fp_ms": observed["paints"].get("first-paint"),
        "fcp_ms": observed["paints"].get("first-contentful-paint"),
        # Each is larger than the one before.
        "lcp_ms": largest[-1] if largest else None,
        "cls": None if shifts is None else add_up_shifts(shifts),
    }


def add_up_shifts(shifts: Iterable[tuple[float, float]]) -> float:
    """Return the cumulative layout shift: the largest sum of a window of shifts.

    Args:
        shifts: moment in ms and value of each.  A window ends when none came for a second, or five
            seconds after it began.
    """
    most = total = 0.0
    began = last = float("-inf")
    for moment, value in sorted(shifts):
        if moment - last > GAP_MS or moment - began > WINDOW_MS:
            began, total = moment, 0.0
        last, total = moment, total + value
        most = max(most, total)
    return most
