"""A replay on loopback, to be held against the recording: a fresh browser, and no measurement."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.base import log
from testbed.base.scratch import scratch_folder
from testbed.client.chromium import PINNED
from testbed.client.chromium.browser import filters_calls, find_browser, sandbox_obstacle
from testbed.client.chromium.devtools import DevTools
from testbed.client.chromium.flags import FIRST_PAGE, WINDOW, browser_arguments
from testbed.client.chromium.launch import PIPE, Browser, running
from testbed.client.chromium.visit import VisitOrder, attach, visit
from testbed.client.interface import LoadError
from testbed.client.page_coverage import describe_load, list_due, measure_coverage
from testbed.model import PageCoverage, Replay, RequestTiming
from testbed.server.loopback import LoopbackSite, serve_loopback
from wings.pages.fidelity import COVERAGE, SCALE, Seen, make_seen
from wings.pages.likeness import Likeness, compare_seen
from wings.pages.recorder.confinement import choose_account

_log = log.logger(__name__)

TIMEOUT_S = 60.0
WAIT_S = 2.0


@dataclass(frozen=True, slots=True)
class Replayed:
    """How a replay is like its recording; ``likeness`` is ``None`` where only requests are known.

    ``failed`` says why it did not load.
    """

    coverage: PageCoverage | None = None
    replay: Replay | None = None
    likeness: Likeness | None = None
    failed: str = ""

    def lines(self) -> list[str]:
        """Return it in words."""
        if self.coverage is None or self.replay is None:
            return [f"replay: {self.failed}"]
        made = self.coverage
        share = 100 * made.made_bytes / made.due_bytes if made.due_bytes else 100.0
        asked = [
            f"requests: {made.made} of {made.due} asked for, with {share:.1f} % of their bytes; "
            f"{len(self.replay.inexact)} answered inexactly, {len(self.replay.missed)} not recorded"
        ]
        if self.likeness is None:
            return [*asked, "scripts and pixels: not recorded; `pages record` keeps them"]
        return asked + self.likeness.lines()


def replay_page(built: Path, recorded: Seen | None, nginx: tuple[str, ...]) -> Replayed:
    """Load the built page from loopback and compare; ``nginx`` are the words that start it.

    Raises:
        ConfigurationError, LabError, MissingError: it cannot be served, or there is no browser.
    """
    with serve_loopback(built, nginx=nginx) as site:
        window, wait_s = (recorded.window, recorded.wait_s) if recorded else (WINDOW, WAIT_S)
        try:
            with _browser(site, window) as browser, browser.explained():
                coverage, seen = _load(browser, site, window, wait_s)
        except LoadError as error:
            return Replayed(failed=str(error))
        likeness = compare_seen(recorded, seen) if recorded and seen else None
        return Replayed(coverage, site.replay(), likeness)


@contextmanager
def _browser(site: LoopbackSite, window: tuple[int, int]) -> Iterator[Browser]:
    executable = find_browser()
    with scratch_folder("record") as own:
        own.chmod(0o711)  # the browser may be another user than this one
        account = choose_account(own / "any", executable)
        if account.remark:
            _log.warning("%s", account.remark)
        profile = own / "profile"
        profile.mkdir()
        account.own(profile)
        trusted = None if site.authority is None else site.authority.read_text("ascii").strip()
        flags = browser_arguments(
            profile, sandbox=sandbox_obstacle(account.user) is None, filter_calls=filters_calls(),
            authority=trusted, in_memory=True,
        )  # fmt: skip
        flags += [f"--host-resolver-rules={','.join(site.resolver_rules)}",
                  "--window-size={},{}".format(*window)]  # fmt: skip
        home = str(profile)
        environment = {"HOME": home, "LANG": "C.UTF-8", "TMPDIR": home, "TZ": "UTC",
                       "PATH": os.environ.get("PATH", os.defpath)}  # fmt: skip
        argv = (*account.prefix, str(executable), *flags, PIPE, FIRST_PAGE)
        with running(argv, environment, own / "browser.log") as browser:
            yield browser


def _load(
    browser: Browser, site: LoopbackSite, window: tuple[int, int], wait_s: float
) -> tuple[PageCoverage, Seen | None]:
    devtools, archive = browser.devtools, site.archive
    session = attach(devtools, TIMEOUT_S)
    deadline = time.monotonic() + TIMEOUT_S
    devtools.ask(deadline, ("Profiler.enable", None),
                 ("Profiler.startPreciseCoverage", COVERAGE), session=session)  # fmt: skip
    errand = VisitOrder(
        archive.root_url, list_due(archive), TIMEOUT_S,
        pinned=PINNED.read_text("utf-8") if archive.pinned else None,
    )  # fmt: skip
    (loaded,) = visit(devtools, session, errand, browser.proc)
    requests = tuple(RequestTiming(e.url, e.status, 0.0, 0.0) for e in loaded.traffic.requests())
    seen = _read_seen(devtools, session, window, wait_s)
    load = describe_load("chromium", "", archive, requests, loaded.plt_ms, ())
    browser.close()
    return measure_coverage(archive, load, site.replay()), seen


def _read_seen(
    devtools: DevTools, session: str, window: tuple[int, int], wait_s: float
) -> Seen | None:
    """Wait until nothing has been told for as long as at the recording, and look."""
    deadline, last = time.monotonic() + TIMEOUT_S, time.monotonic()
    while (until := min(last + wait_s, deadline)) > time.monotonic():
        if devtools.receive(until) and devtools.take():
            last = time.monotonic()
    width, height = window
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": SCALE}
    coverage, picture = devtools.ask(
        time.monotonic() + TIMEOUT_S,
        ("Profiler.takePreciseCoverage", None),
        ("Page.captureScreenshot", {"format": "png", "clip": clip}),
        session=session,
    )
    return make_seen(coverage["result"], picture["data"], window, wait_s)
