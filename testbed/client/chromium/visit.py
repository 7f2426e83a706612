"""One visit of a page in a running browser, from an empty page until all that it owes has come."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Container, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from testbed.base.proc import scheduled
from testbed.client.chromium.cost import Spent, cost_of, cpu_of, metrics_of, read_queues
from testbed.client.chromium.device import AGENT, device_commands
from testbed.client.chromium.device import SCRIPT as DEVICE_SCRIPT
from testbed.client.chromium.devtools import DevTools, Event, LateError, RefusedError
from testbed.client.chromium.flags import FIRST_PAGE, WINDOW
from testbed.client.chromium.milestones import SCRIPT, Milestones, milestones_of
from testbed.client.chromium.traffic import SOCKET, BrowserTraffic, urls_asked
from testbed.client.interface import LoadError, LoadTimeoutError
from testbed.client.process import sleep_until
from testbed.model.device import BrowserDevice

QUIET_S = 1.0
"""How long a page that owes something may be silent before it is taken as finished."""
SETTLED_S = 0.5
"""How long no request is open, and none begins, until a page counts as settled."""
WATCHED_S = 10.0
"""How long that is waited for."""
ANSWER_S = 10.0
"""How long a page that has been loaded may take to answer."""
ICON = "/favicon.ico"
TIMELINE = ["largest-contentful-paint", "layout-shift"]

# Navigation timing in ms since navigationStart.  The load event ends after it is told.
TIMING = """
new Promise((resolve) => {
  const poll = () => {
    const [entry] = performance.getEntriesByType('navigation');
    if (entry.loadEventEnd === 0) {
      setTimeout(poll, 0);
      return;
    }
    resolve({ plt_ms: entry.loadEventEnd, response_start_ms: entry.responseStart });
  };
  poll();
})
"""


class VisitOrder(NamedTuple):  # a dataclass is made at run time: 5 ms of each guest
    """What a visit is to do.

    Attributes:
        url: where to.
        due: URLs that the load is to ask for.
        timeout_s: how long the load event may take, and the rest of what is due.
        pinned: script that pins clocks and random numbers; ``None``: they are free.
        full_browser: whether it is one, rather than headless-shell.
        wait_until_ns: CLOCK_REALTIME of the navigation; ``None``: at once, in real time.
        restart: called at that moment; the navigation is when it returns.
        visits: how often to load the page.
        keep_cache: whether the cache is kept from one visit to the next.
        idle: called between two visits; the next navigation is when it returns.
        silent: URLs that are not answered, and not awaited.
        blocked: patterns of URLs that it is to ask for nothing.
        film: whether frames are drawn and kept.
        device: what the browser is to be; ``None``: as it is, and nothing is said to it.
    """

    url: str
    due: Sequence[str]
    timeout_s: float
    pinned: str | None = None
    full_browser: bool = False
    wait_until_ns: int | None = None
    restart: Callable[[], None] | None = None
    visits: int = 1
    keep_cache: bool = False
    idle: Callable[[], None] | None = None
    silent: Container[str] = ()
    blocked: Sequence[str] = ()
    film: bool = False
    device: BrowserDevice | None = None


class Visit(NamedTuple):
    """What was seen of a visit; moments in the browser's seconds, ``start_s`` is the navigation's.

    ``traffic`` has all that the page asked for until it was left, and ``milestones`` are fields of
    a page load, from what the page answered: ``seen``.  ``timeline`` are largest paints and shifts
    as DevTools tells them, and ``settled_ms`` is when the page had done what it does by itself,
    both of the last visit only.  ``began_ns`` is the CLOCK_REALTIME before the navigation, and
    ``frames`` have the ms since then and a PNG in Base64.
    """

    plt_ms: float
    began_ns: int
    start_s: float
    traffic: BrowserTraffic
    milestones: Milestones
    pinned: bool
    seen: dict[str, Any] | None
    timeline: list[dict[str, Any]]
    cost: dict[str, float]
    frames: Sequence[tuple[float, str]] = ()
    settled_ms: float | None = None


def visit(devtools: DevTools, session: str, errand: VisitOrder, proc: Path) -> tuple[Visit, ...]:
    """Load the page and see it through, as often as asked.

    Args:
        devtools: of a browser; it keeps the events of ``traffic``.
        session: that of its empty page, from ``attach``.
        errand: what to do.
        proc: the /proc of the browser's process namespace.

    Raises:
        LoadTimeoutError: there was no load event in time.
        LoadError: the browser could not go there, or the page crashed.
        ClosedError: the browser ended.
    """
    workers = _prepare(devtools, session, errand)
    if errand.wait_until_ns is not None:
        # It reads what the browser says at one instant all at once, when no other process can run,
        # not message by message; and no time passes meanwhile.
        with scheduled(os.SCHED_IDLE):
            sleep_until(errand.wait_until_ns)
            if errand.restart is not None:
                errand.restart()
            return _load_all(devtools, session, errand, workers)
    return _load_all(devtools, session, errand, workers, proc)


def _load_all(
    devtools: DevTools,
    session: str,
    errand: VisitOrder,
    workers: Collection[str],
    proc: Path | None = None,
) -> tuple[Visit, ...]:
    """Load the page as often as asked; ``proc`` is given in real time, where the cost is told.

    ``workers`` are the sessions of service workers: what one asked for it may have kept.
    """
    visits: list[Visit] = []
    while len(visits) < errand.visits:
        if visits:
            _leave(devtools, session, errand)
            visits[-1].traffic.add(devtools.take())
        before = None
        if proc is not None:
            cpu = cpu_of(_processes(devtools, time.monotonic() + ANSWER_S))
            before = Spent(cpu, read_queues(cpu, proc), proc)
        # A first visit finds nothing in the cache that it is to have.
        kept = None
        if errand.keep_cache and visits:
            kept = [url for each in visits for url in urls_asked(each.traffic.events, workers)]
        visits.append(_load(devtools, session, errand, before, kept=kept))
    # Not before: the browser would go on otherwise than if it had not been asked.
    last = visits[-1]._replace(timeline=_read_timeline(devtools, session))
    visits[-1] = last._replace(settled_ms=_watch(devtools, last))
    return tuple(visits)


def _leave(devtools: DevTools, session: str, errand: VisitOrder) -> None:
    """Go to an empty page, forget what is to be forgotten, and be idle."""
    deadline = time.monotonic() + ANSWER_S
    try:
        _navigate(devtools, session, FIRST_PAGE, deadline)
        if not errand.keep_cache:
            devtools.ask(deadline, ("Network.clearBrowserCache", None), session=session)
    except LateError:
        raise LoadError(f"chromium: {errand.url} could not be left after a visit") from None
    if errand.idle is not None:
        errand.idle()


def _load(
    devtools: DevTools,
    session: str,
    errand: VisitOrder,
    before: Spent | None = None,
    *,
    kept: Sequence[str] | None = None,
) -> Visit:
    """Load the page until it is settled; ``before`` is the cost until now, in real time.

    ``kept`` are URLs that are not owed again, like what the cache answers; ``None``: it is empty.
    """
    due = Counter(errand.due)
    due -= Counter(kept or ())
    devtools.take()  # those of the empty page
    began_ns = time.time_ns()
    deadline = time.monotonic() + errand.timeout_s
    frames = _film(devtools, session, began_ns, deadline) if errand.film else []
    traffic = BrowserTraffic(kept=kept, silent=errand.silent)
    try:
        _navigate(devtools, session, errand.url, deadline)
        # Read at once, so that the cost is little more than that until the load event.
        timing, metrics = _ask_page(devtools, session, deadline)
        after = cpu_of(_processes(devtools, deadline))
    except LateError:
        traffic.add(devtools.take())
        raise _explain(errand, traffic) from None
    cost = cost_of(metrics, after, before)
    start_s, plt_ms = metrics["NavigationStart"], float(timing["plt_ms"])
    traffic.add(devtools.take())
    _require_stay(errand, traffic)
    if _settle(devtools, traffic, start_s + plt_ms / 1000, [*due.elements()], deadline):
        traffic.end_unread()
    # Of a page that the cache answers no first byte comes.
    cached = traffic.keeps_cache and errand.url in traffic.cached()
    first_byte_ms = 0.0 if cached else float(timing["response_start_ms"])
    seen = _ask_after(devtools, session, SCRIPT)
    if seen and errand.device is not None:
        seen["device"] = _ask_after(devtools, session, DEVICE_SCRIPT)
    traffic.add(devtools.take())
    _require_stay(errand, traffic)
    return Visit(
        plt_ms=plt_ms,
        began_ns=began_ns,
        start_s=start_s,
        traffic=traffic,
        milestones=milestones_of(seen, first_byte_ms, real_time=before is not None),
        pinned=bool(seen and seen.get("pinned")),
        seen=seen,
        timeline=[],
        cost=cost,
        frames=frames,
    )


def _film(
    devtools: DevTools, session: str, began_ns: int, deadline: float
) -> list[tuple[float, str]]:
    """Have each frame that is drawn kept from now on, the present one first."""
    frames: list[tuple[float, str]] = []

    def keep(event: Event) -> None:
        number, drawn_s = event["params"]["sessionId"], event["params"]["metadata"]["timestamp"]
        devtools.send("Page.screencastFrameAck", {"sessionId": number}, session)
        frames.append((max(0.0, drawn_s * 1e3 - began_ns / 1e6), event["params"]["data"]))

    devtools.on("Page.screencastFrame", keep)
    devtools.ask(deadline, ("Page.startScreencast", SCREENCAST), session=session)
    return frames


def _require_stay(errand: VisitOrder, traffic: BrowserTraffic) -> None:
    """Raise a LoadError when the page went on to another, whose moments are not its own."""
    if traffic.went_on is not None:
        raise LoadError(f"chromium: {errand.url} went on to {traffic.went_on}: record that one")


def _explain(errand: VisitOrder, traffic: BrowserTraffic) -> LoadError:
    """Return what to say of a page that had no load event in time."""
    _require_stay(errand, traffic)
    late = f"chromium: {errand.url} had no load event in {errand.timeout_s:g} s"
    # The browser's clock is this one.
    if traffic.under_way() or time.monotonic() < traffic.quiet_since_s + WATCHED_S:
        waits = "".join(f", {each.url} is outstanding" for each in traffic.under_way()[:1])
        return LoadTimeoutError(f"{late}{waits}; see client.log")
    settled_s = traffic.quiet_since_s - traffic.first_s
    return LoadError(
        f"{late}, and nothing is outstanding: more time cannot help; it had settled after "
        f"{1000 * settled_s:.1f} ms"
    )


def read_version(devtools: DevTools, timeout_s: float) -> str:
    """Ask for the browser's name and version; the answer comes once it has started.

    Raises:
        LateError: it has not, after ``timeout_s``.
        ClosedError: it ended.
    """
    deadline = time.monotonic() + timeout_s
    product: str = devtools.ask(deadline, ("Browser.getVersion", None))[0]["product"]
    return product


def attach(devtools: DevTools, timeout_s: float) -> str:
    """Attach to the browser's empty page and have it tell what a load needs; returns the session.

    Raises:
        LateError: it did not answer within ``timeout_s``.
        ClosedError: it ended.
        RefusedError: it cannot.
    """
    deadline = time.monotonic() + timeout_s
    session = _attach(devtools, deadline)
    commands: tuple[tuple[str, dict[str, Any] | None], ...] = (
        ("Network.enable", NO_BODIES),
        ("Page.enable", None),
        ("Inspector.enable", None),
        ("Performance.enable", None),
    )
    devtools.ask(deadline, *commands, session=session)
    return session


def _prepare(devtools: DevTools, session: str, errand: VisitOrder) -> Collection[str]:
    """Have the page's workers, dialogs and end looked after, and set what the errand asks for.

    The answers come behind all that the browser had to say of its empty page.  What is returned
    will have the sessions of service workers.
    """
    service_workers = set()

    def join(event: Event) -> None:
        """Observe, and where asked pin, a worker that the page starts, before it does anything."""
        if event.get("sessionId") not in (session, None):
            return
        worker: str = event["params"]["sessionId"]
        if event["params"]["targetInfo"]["type"] == "service_worker":
            service_workers.add(worker)
        # All at once: a paused worker may leave a command without an answer until it runs.
        devtools.send("Network.enable", NO_BODIES, worker)
        if errand.pinned is not None:
            devtools.send("Runtime.evaluate", {"expression": errand.pinned}, worker)
        for command, params in emulation:
            if command == AGENT:
                devtools.send(command, params, worker)
        devtools.send("Runtime.runIfWaitingForDebugger", None, worker)

    def accept(event: Event) -> None:
        """A dialog that stays open stops the page's scripts, and no user is there to close it."""
        devtools.send("Page.handleJavaScriptDialog", {"accept": True}, event["sessionId"])

    def give_up(event: Event) -> None:
        if event.get("sessionId") == session:  # a shared worker says so when it ends
            raise LoadError(f"chromium: {errand.url}: the page crashed; see client.log")

    emulation = device_commands(errand.device)
    devtools.on("Target.attachedToTarget", join)
    devtools.on("Page.javascriptDialogOpening", accept)
    devtools.on("Inspector.targetCrashed", give_up)
    commands: list[tuple[str, dict[str, Any] | None]] = [("Target.setAutoAttach", AUTO_ATTACH)]
    if errand.pinned is not None:
        commands.append(("Page.addScriptToEvaluateOnNewDocument", {"source": errand.pinned}))
    icons = [f"*{ICON}"] if not any(url.endswith(ICON) for url in errand.due) else []
    blocked = [*(icons if errand.full_browser else []), *errand.blocked]
    if blocked:
        commands.append(("Network.setBlockedURLs", {"urls": blocked}))
    if errand.full_browser:
        commands.append(_sized())
    commands += emulation
    deadline = time.monotonic() + errand.timeout_s
    # Several pages may share one, so that it is a target of the browser's, and of no page.
    devtools.ask(deadline, ("Target.setAutoAttach", AUTO_ATTACH | SHARED_WORKERS))
    devtools.ask(deadline, *commands, session=session)
    return service_workers


# Bodies are in the archive: the browser need not keep them to be asked for.
NO_BODIES = {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0}
AUTO_ATTACH = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
SCREENCAST = {"format": "png", "maxWidth": WINDOW[0] // 4, "maxHeight": WINDOW[1] // 4}
SHARED_WORKERS = {"filter": [{"type": "shared_worker"}]}
PAGES = {"filter": [{"type": "page"}]}


def _attach(devtools: DevTools, deadline: float) -> str:
    """Wait for the browser's first page and attach to it."""
    created: list[Event] = []
    devtools.on("Target.targetCreated", created.append)
    devtools.ask(deadline, ("Target.setDiscoverTargets", {"discover": True, **PAGES}))
    while not created:
        if not devtools.receive(deadline):
            raise LateError("the browser has no page")
    target = created[0]["params"]["targetInfo"]["targetId"]
    _, attached = devtools.ask(
        deadline,
        # Otherwise the browser reports each change of the page's title.
        ("Target.setDiscoverTargets", {"discover": False}),
        ("Target.attachToTarget", {"targetId": target, "flatten": True}),
    )
    session: str = attached["sessionId"]
    return session


def patterns_of(host: str) -> tuple[str, str]:
    """Return patterns of all URLs of a host, as Network.setBlockedURLs has them."""
    return f"*://{host}/*", f"*://{host}:*/*"


def _sized() -> tuple[str, dict[str, Any]]:
    """Return the command against what only a full browser does: shrink the page."""
    width, height = WINDOW
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    return ("Emulation.setDeviceMetricsOverride", screen)


def _navigate(devtools: DevTools, session: str, url: str, deadline: float) -> None:
    """Go to ``url`` and wait for its load event."""
    loaded: list[Event] = []
    devtools.on("Page.loadEventFired", loaded.append)
    (answer,) = devtools.ask(deadline, ("Page.navigate", {"url": url}), session=session)
    if answer.get("errorText"):
        raise LoadError(f"chromium: {answer['errorText']} at {url}")
    while not loaded:
        if not devtools.receive(deadline):
            raise LateError("no load event")


def _ask_page(
    devtools: DevTools, session: str, deadline: float
) -> tuple[dict[str, Any], dict[str, float]]:
    """Ask for navigation timing and metrics of the page."""
    timing, metrics = devtools.ask(
        deadline,
        ("Runtime.evaluate", _evaluation(TIMING)),
        ("Performance.getMetrics", None),
        session=session,
    )
    values = metrics_of(metrics)
    if "NavigationStart" not in values:
        raise LoadError("chromium: the browser reports no NavigationStart")
    value: dict[str, Any] = _value_of(timing)
    return value, values


def _ask_after(devtools: DevTools, session: str, script: str) -> dict[str, Any] | None:
    """Ask what a script says after the load; a page may have become busy for ever."""
    try:
        (answer,) = devtools.ask(
            time.monotonic() + ANSWER_S, ("Runtime.evaluate", _evaluation(script)), session=session
        )
    except (LateError, RefusedError):  # it is gone, if it is refused
        return None
    value: dict[str, Any] = _value_of(answer)
    return value


def _read_timeline(devtools: DevTools, session: str) -> list[dict[str, Any]]:
    """Ask DevTools for the largest paints, each larger than the one before, and for shifts."""
    told: list[Event] = []
    devtools.on("PerformanceTimeline.timelineEventAdded", told.append)
    # What has been buffered comes before the answer.
    command = ("PerformanceTimeline.enable", {"eventTypes": TIMELINE})
    try:
        devtools.ask(time.monotonic() + ANSWER_S, command, session=session)
    except LateError:
        return []
    return [event["params"]["event"] for event in told]


def _evaluation(expression: str) -> dict[str, Any]:
    return {"expression": expression, "awaitPromise": True, "returnByValue": True}


def _value_of(answer: dict[str, Any]) -> Any:
    wrong = answer.get("exceptionDetails")
    if wrong:
        description = wrong.get("exception", {}).get("description", wrong["text"])
        raise LoadError(f"chromium: the page could not be asked: {description}")
    return answer["result"]["value"]


def _processes(devtools: DevTools, deadline: float) -> dict[str, Any]:
    return devtools.ask(deadline, ("SystemInfo.getProcessInfo", None))[0]


def _watch(devtools: DevTools, visited: Visit) -> float | None:
    """Listen until the page is settled; return when it was, ``None`` when it never is."""
    traffic = visited.traffic
    last = time.monotonic()
    deadline = last + WATCHED_S
    while (now := time.monotonic()) < deadline:
        quiet_s = QUIET_S if traffic.under_way() else SETTLED_S
        if traffic.is_answered and now >= last + quiet_s:
            traffic.end_unread()
            return max(visited.plt_ms, 1000 * (traffic.quiet_since_s - visited.start_s))
        until = min(deadline, last + quiet_s) if traffic.is_answered else deadline
        if devtools.receive(until) and (events := devtools.take()):
            traffic.add(events)
            last = time.monotonic()
    return None


def _settle(
    devtools: DevTools,
    traffic: BrowserTraffic,
    loaded_s: float,
    due: Sequence[str],
    deadline: float,
) -> bool:
    """Wait until the load owes nothing; return whether it fell silent instead."""
    last = time.monotonic()
    while not traffic.is_settled(loaded_s, due):
        now = time.monotonic()
        if now >= deadline:
            return False
        if traffic.is_answered and now >= last + QUIET_S:
            return True
        until = min(deadline, last + QUIET_S) if traffic.is_answered else deadline
        if devtools.receive(until):
            events = devtools.take()
            traffic.add(events)
            if any(event["method"] != SOCKET for event in events):  # a page may try for ever
                last = time.monotonic()
    return False
