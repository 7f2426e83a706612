"""The Chromium client: headless Chromium, driven over its DevTools pipe by this very process.

Only the browser is started below the order's prefix, for one load and with a fresh profile.
headless-shell reads no managed policies and has no loading predictor, so nothing preconnects for
it but what a page itself asks for.  For the same reason nothing lowers its TLS version: its
ClientHello offers TLS 1.3 with a post-quantum key (1.7 to 1.9 KB) whatever ``tls_version`` says,
and a server that has TLS 1.2 only gets that.  Nor is there a switch for that key: its policy
PostQuantumKeyAgreementEnabled ended with Chromium 146, so ``key_share = "x25519"`` has the browser
modified in memory (native/keyshare.c), and its version says so wherever it is printed.
"""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from testbed.base.errors import MissingError
from testbed.client.alpn import require_protocols
from testbed.client.chromium.browser import (
    KNOWN_PATHS,
    filters_calls,
    find_browser,
    sandbox_obstacle,
)
from testbed.client.chromium.cost import Stopwatch
from testbed.client.chromium.devtools_har import write_har
from testbed.client.chromium.flags import FIRST_PAGE, LAB_AUTHORITY, browser_arguments
from testbed.client.chromium.launch import PIPE, Browser, running
from testbed.client.chromium.traffic import BrowserRequest
from testbed.client.chromium.visit import (
    Visit,
    VisitOrder,
    attach,
    patterns_of,
    read_version,
    visit,
)
from testbed.client.interface import (
    SPKI_NAME,
    ClientPlace,
    LoadError,
    LoadOrder,
    client_environment,
)
from testbed.client.page_coverage import compare, list_blocked, list_due, list_silent
from testbed.client.program import Program
from testbed.model import HAR_FILE, MODIFIED, VISIT_HARS, PageLoad, RequestTiming

SHIM = Path("native") / "tfo.so"
KEY_SHARE_SHIM = Path("native") / "keyshare.so"
PINNED = Path(__file__).with_name("pinned.js")
HEADLESS_SHELL = "headless-shell"
FONTS = "/usr/share/fonts/truetype/dejavu"  # as the bundle's fonts.conf says
LOG = "client.log"
NO_KEY_SHARE = f"{MODIFIED}sends no post-quantum key share)"


class Chromium:
    """PLT is loadEventEnd - navigationStart, as the page's own navigation timing has it."""

    name = "chromium"
    tcp_alone = False
    honours = frozenset(("visits", "tls_resumption", "early_data", "x25519", "x25519mlkem768", "h3",
                         "device", "block", "film"))  # fmt: skip
    programs = (
        Program(
            "chromium-headless-shell",
            # One known font, so that text is laid out alike everywhere.
            packages="chromium-headless-shell, fonts-dejavu-core",
            places=KNOWN_PATHS,
        ),
    )

    def __init__(self, executable: Path | None = None, sandbox: bool | None = None) -> None:
        """Use ``executable``, or the browser that is found.

        Args:
            executable: a headless-shell or chrome binary.
            sandbox: whether the browser keeps its own sandbox; ``None``: when it can.
        """
        self._executable = executable
        self._sandbox = sandbox

    def load(self, order: LoadOrder) -> PageLoad:
        """Load the page; see ``Client.load``."""
        with self.started(order.seat) as browser:
            return browser.load(order)

    @contextmanager
    def started(self, seat: ClientPlace) -> Iterator[StartedChromium]:
        """Start a browser and attach to its empty page; see ``EarlyClient.started``."""
        executable = find_browser() if self._executable is None else self._executable
        argv = (*seat.prefix, str(executable), *self._arguments(seat))
        stopwatch = Stopwatch(real_time=seat.real_time)
        with running(argv, _environment(seat), seat.out / LOG, real_time=seat.real_time) as browser:
            with browser.explained():
                version = read_version(browser.devtools, seat.timeout_s)
                version += NO_KEY_SHARE if _is_modified(seat) else ""
                stopwatch.split("launch_s")
                session = attach(browser.devtools, seat.timeout_s)
            full = HEADLESS_SHELL not in executable.name
            yield StartedChromium(browser, session, version, full, stopwatch)

    def _arguments(self, seat: ClientPlace) -> list[str]:
        profile = seat.scratch / "profile"
        profile.mkdir()
        profile.chmod(0o777)  # the browser may be another user than this one
        user = os.geteuid() if seat.user is None else seat.user
        return [
            *browser_arguments(
                profile,
                sandbox=sandbox_obstacle(user) is None if self._sandbox is None else self._sandbox,
                filter_calls=filters_calls(),
                authority=LAB_AUTHORITY if seat.trusting else None,
                in_memory=True,
                opening=seat.opening,
            ),
            PIPE,
            FIRST_PAGE,
        ]


class StartedChromium(NamedTuple):
    """A browser that waits at its empty page, for one order.

    Attributes:
        browser: its process.
        session: that of the empty page.
        version: its name and version.
        full: whether it is a full browser, rather than headless-shell.
        stopwatch: what its start took in real time.
    """

    browser: Browser
    session: str
    version: str
    full: bool
    stopwatch: Stopwatch

    def load(self, order: LoadOrder) -> PageLoad:
        """Load the page and end the browser; see ``PageLoader.load``."""
        _require_authority(order)
        errand = VisitOrder(
            url=order.archive.root_url,
            due=list_due(order.archive),
            timeout_s=order.timeout_s,
            pinned=PINNED.read_text("utf-8") if order.pinned else None,
            full_browser=self.full,
            wait_until_ns=order.wait_until_ns,
            restart=order.restart,
            visits=order.visits,
            keep_cache=order.keep_cache,
            idle=order.idle,
            silent=list_silent(order.archive),
            blocked=(
                *(pattern for host in order.blocked for pattern in patterns_of(host)),
                *list_blocked(order.archive),
            ),
            film=order.film,
            device=order.device,
        )
        browser, stopwatch = self.browser, self.stopwatch
        stopwatch.split()
        with browser.explained():
            visits = visit(browser.devtools, self.session, errand, browser.proc)
            stopwatch.split()
            visits[-1].traffic.add(browser.close())
            stopwatch.split("close_s")
        for name, result in zip((*VISIT_HARS[: len(visits) - 1], HAR_FILE), visits, strict=True):
            write_har(
                order.out / name,
                result.traffic.events,
                result.traffic.requests(),
                browser=self.version,
                page_url=errand.url,
                plt_ms=result.plt_ms,
                start_s=result.start_s,
                seen=result.seen,
                timeline=result.timeline,
            )
        for at_ms, png in visits[-1].frames:
            (order.out / f"frame-{at_ms:09.2f}.png").write_bytes(b64decode(png))
        *earlier, load = (read_load(each, self.version, order) for each in visits)
        load.browser.update(stopwatch.read())
        if not earlier:
            return load
        return replace(load, earlier=tuple(earlier))


def _environment(seat: ClientPlace) -> dict[str, str]:
    nowhere = f"unix:path={seat.scratch / 'no-bus'}"
    shims = (SHIM, KEY_SHARE_SHIM) if _is_modified(seat) else (SHIM,)
    return client_environment(seat) | {
        "LD_PRELOAD": ":".join(str(_part(seat.bundle, shim)) for shim in shims),
        # The browser asks the desktop's services; what it finds must not depend on the machine.
        "DBUS_SESSION_BUS_ADDRESS": nowhere,
        "DBUS_SYSTEM_BUS_ADDRESS": nowhere,
    }


def _is_modified(seat: ClientPlace) -> bool:
    """Return whether the browser is modified as it runs: it has no switch for its key shares."""
    return seat.opening.key_share == "x25519"


def _require_authority(order: LoadOrder) -> None:
    """Raise a LoadError when the page's certificates are not of the authority that is trusted."""
    if order.tls is None:
        return
    path = order.tls / SPKI_NAME
    try:
        trusted = path.read_text("ascii").strip() == LAB_AUTHORITY
    except OSError as error:
        raise LoadError(f"{path}: {error.strerror}; run ./run.sh pages build") from None
    if not trusted:
        raise LoadError(f"{path} is not that of the lab's authority; run ./run.sh pages build")


def read_load(result: Visit, version: str, order: LoadOrder) -> PageLoad:
    """Return what was seen of a visit as the model has it.

    Raises:
        LoadError: the load event came, but nothing over the network, or an origin spoke another
            protocol than asked for.
    """
    traffic = result.traffic
    # Of a first visit nothing is in the cache that a server need not have sent.
    cached = (*traffic.cached(), *traffic.kept) if traffic.keeps_cache else ()
    requests = tuple(_read_request(item, result) for item in traffic.requests())
    if not requests:
        raise LoadError(
            "chromium: all of the page came from the cache, and a time that no packet shows is "
            'unproven; set between = "clear-cache"'
            if cached
            else "chromium: the browser reported no request at all"
        )
    require_protocols(order, ((item.url, item.protocol) for item in traffic.requests()))
    coverage = compare(order.archive, requests, cached, result.plt_ms)
    return PageLoad(
        client=Chromium.name,
        client_version=version,
        plt_ms=result.plt_ms,
        requests=requests,
        missing=coverage.missing,
        extra=coverage.extra,
        failed=coverage.failed,
        pinned=result.pinned,
        browser=result.cost,
        began_ns=result.began_ns if order.visits > 1 else None,
        sockets=tuple(traffic.sockets),
        settled_ms=result.settled_ms,
        **result.milestones,
    )


def _read_request(item: BrowserRequest, result: Visit) -> RequestTiming:
    # A request that has no end is counted as failed by its status 0, if the load is to have it.
    ended = item.end_s is not None
    start_ms = 1000 * (item.start_s - result.start_s)
    return RequestTiming(
        url=item.url,
        status=item.status if ended else 0,
        start_ms=start_ms,
        end_ms=max(result.plt_ms, start_ms)
        if item.end_s is None
        else 1000 * (item.end_s - result.start_s),
        transfer_bytes=item.transfer_bytes,
        connection=item.connection,
        initiator=item.initiator,
        dns_ms=item.dns_ms,
        connect_ms=item.connect_ms,
        queued_ms=item.queued_ms,
        blocked_ms=item.blocked_ms,
        tls_ms=item.tls_ms,
        failure=item.error,
    )


def _part(bundle: Path, part: Path) -> Path:
    path = bundle / part
    if not os.access(path, os.R_OK):
        raise MissingError(f"{path} is missing: the bundle has not been built; run ./run.sh doctor")
    return path
