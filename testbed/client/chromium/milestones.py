"""What a visitor sees of a load and when: first byte, paints, shifts; and what a page timed itself.

The browser keeps these for the page itself; it is asked once, when the load is over.

Source: W3C Navigation Timing 2, Paint Timing, Largest Contentful Paint, Layout Instability, Long
Tasks, User Timing, Element Timing, Server Timing; https://web.dev/articles/cls for the windows that
shifts are added up in, and https://web.dev/articles/tbt for what blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict

from testbed.model import PageTiming

EVENTS = ("domInteractive", "domContentLoadedEventStart", "domContentLoadedEventEnd",
          "loadEventStart", "loadEventEnd")  # fmt: skip
"""Of navigation timing."""

# A picture that came last before the load event is painted some frames later: 100 ms are six.
SCRIPT = """
new Promise((resolve) => setTimeout(resolve, 100)).then(() => {
  // Of what a page may have replaced by its own.
  const unless_broken = (read) => { try { return read(); } catch { return null; } };
  const text = (value) => String(value ?? '').slice(0, 500).toWellFormed();
  const ms = (value) => (Number.isFinite(value) ? value : 0);
  const address = (url) => text(String(url ?? '').replace(/^(data:[^,]*),.*/s, '$1'));
  const place = (node) => {
    const parts = [];
    for (; node?.localName && !parts[0]?.includes('#'); node = node.parentNode) {
      const classes = [...node.classList].map((name) => '.' + name).join('');
      parts.unshift(node.localName + (node.id ? '#' + node.id : classes));
    }
    return text(parts.slice(-4).join(' > '));
  };
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
  const largest = entries('largest-contentful-paint');
  const timings = () => {
    const told = ['mark', 'measure'].flatMap((kind) => performance.getEntriesByType(kind)
      .map(({ name, startTime, duration }) => [kind, text(name), ms(startTime), ms(duration), '']));
    told.push(...(entries('element') ?? []).map(({ identifier, startTime, url }) =>
      ['element', text(identifier), startTime, 0, address(url)]));
    const loaded = ['navigation', 'resource'].flatMap((kind) => performance.getEntriesByType(kind));
    return told.concat(loaded.flatMap(({ name, responseStart, serverTiming }) =>
      serverTiming.map((own) =>
        ['server', text(own.name), ms(responseStart), ms(own.duration), address(name)])
    )).slice(0, 200);
  };
  return {
    pinned: read.some((called) => /\\btime\\(now\\)|\\bvisit\\('/.test(textOf.call(called))),
    paints,
    largest: largest?.map(({ startTime }) => startTime) ?? null,
    lcp: unless_broken(() => largest.slice(-1).map(({ url, element }) =>
      [address(url), place(element)])[0]),
    navigation: unless_broken(() => Object.fromEntries(EVENTS.map((name) =>
      [name, performance.getEntriesByType('navigation')[0][name]]))),
    tasks: entries('longtask')?.map(({ startTime, duration }) => [startTime, duration]) ?? null,
    timings: unless_broken(timings),
    shifts: entries('layout-shift')?.filter(({ hadRecentInput }) => !hadRecentInput)
      .map(({ startTime, value }) => [startTime, value]) ?? null,
  };
})
""".replace("EVENTS", str(list(EVENTS)))

LONG_MS = 50.0
GAP_MS = 1000.0
WINDOW_MS = 5000.0


class Milestones(TypedDict):
    """Fields of a page load."""

    ttfb_ms: float | None
    fp_ms: float | None
    fcp_ms: float | None
    lcp_ms: float | None
    cls: float | None
    dcl_ms: float | None
    lcp_url: str | None
    lcp_element: str | None
    long_tasks: int | None
    tbt_ms: float | None
    timings: tuple[PageTiming, ...]


def milestones_of(
    observed: dict[str, Any] | None, response_start_ms: float, *, real_time: bool = False
) -> Milestones:
    """Return what a visitor saw, as a page load has it.

    Args:
        observed: the script's answer; ``None``: the page no longer answered.
        response_start_ms: of the navigation; 0 where the page may not know it.
        real_time: whether computing takes time, so that a task can be long.
    """
    observed = observed or {"paints": {}, "largest": None, "shifts": None}
    largest, shifts = observed["largest"], observed["shifts"]
    url, element = observed.get("lcp") or ("", "")
    tasks = observed.get("tasks") if real_time else None
    contents_ms = observed["paints"].get("first-contentful-paint", 0.0)
    return {
        "ttfb_ms": response_start_ms or None,
        "fp_ms": observed["paints"].get("first-paint"),
        "fcp_ms": observed["paints"].get("first-contentful-paint"),
        # Each is larger than the one before.
        "lcp_ms": largest[-1] if largest else None,
        "cls": None if shifts is None else add_up_shifts(shifts),
        "dcl_ms": (observed.get("navigation") or {}).get("domContentLoadedEventEnd") or None,
        "lcp_url": url or None,
        "lcp_element": element or None,
        "long_tasks": None if tasks is None else len(tasks),
        "tbt_ms": None if tasks is None else add_up_blocking(tasks, contents_ms),
        "timings": tuple(PageTiming(*each) for each in observed.get("timings") or ()),
    }


def add_up_blocking(tasks: Iterable[tuple[float, float]], contents_ms: float) -> float:
    """Return the total blocking time, in ms.

    Args:
        tasks: moment and duration of the long ones, in ms.  What one lasts beyond 50 ms blocks.
        contents_ms: first contentful paint; what was before counts nothing.
    """
    return sum(
        max(0.0, began_ms + lasted_ms - max(began_ms, contents_ms) - LONG_MS)
        for began_ms, lasted_ms in tasks
    )


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
