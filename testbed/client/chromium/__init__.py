"""The Chromium client: headless Chromium, driven over its DevTools pipe by this very process.

Only the browser is started below the order's prefix, for one load and with a fresh profile.
headless-shell reads no managed policies and has no loading predictor, so nothing preconnects for
it but what a page itself asks for.  For the same reason nothing lowers its TLS version: its
ClientHello offers TLS 1.3 with a post-quantum key (1.7 to 1.9 KB) whatever ``tls_version`` says,
and a server that has TLS 1.2 only gets that.
"""

from __future__ import annotations

import os
from pathlib import Path

from testbed.base.errors import MissingError
from testbed.client.alpn import require_protocols
from testbed.client.chromium.browser import (
    KNOWN_PATHS,
    filters_calls,
    find_browser,
    sandbox_obstacle,
)
from testbed.client.chromium.cost import Stopwatch
from testbed.client.chromium.flags import FIRST_PAGE, browser_arguments
from testbed.client.chromium.har import write_har
from testbed.client.chromium.launch import PIPE, running
from testbed.client.chromium.traffic import BrowserRequest
from testbed.client.chromium.visit import Errand, Visit, read_version, visit
from testbed.client.coverage import compare, list_due
from testbed.client.interface import (
    LoadError,
    LoadOrder,
    client_environment,
    read_authority,
)
from testbed.client.program import LIBRARIES, Program
from testbed.model import HAR_FILE, PageLoad, RequestTiming

SHIM = Path("native") / "tfo.so"
PINNED = Path(__file__).with_name("pinned.js")
HEADLESS_SHELL = "headless-shell"
FONTS = "/usr/share/fonts/truetype/dejavu"  # as the bundle's fonts.conf says
LOG = "client.log"


class Chromium:
    """PLT is loadEventEnd - navigationStart, as the page's own navigation timing has it."""

    name = "chromium"
    programs = (
        Program(
            "chromium-headless-shell",
            # One known font, so that text is laid out alike everywhere.
            packages="chromium-headless-shell, fonts-dejavu-core",
            places=KNOWN_PATHS,
            opens=(
                *("{folder}/*.pak", "{folder}/*.dat", "{folder}/*.bin"),
                *(f"{LIBRARIES}/{name}.so" for name in ("libsoftokn3", "libfreeblpriv3")),
                *(f"{LIBRARIES}/nss/{name}.so" for name in ("libsoftokn3", "libfreeblpriv3")),
                f"{FONTS}/*",
            ),
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
        executable = find_browser() if self._executable is None else self._executable
        argv = (*order.prefix, str(executable), *self._arguments(order))
        errand = Errand(
            url=order.archive.root_url,
            due=list_due(order.archive),
            timeout_s=order.timeout_s,
            pinned=PINNED.read_text("utf-8") if order.pinned else None,
            full_browser=HEADLESS_SHELL not in executable.name,
            wait_until_ns=order.wait_until_ns,
        )
        real_time = order.wait_until_ns is None
        stopwatch = Stopwatch(real_time=real_time)
        environment, log = self._environment(order), order.out / LOG
        with running(argv, environment, log, real_time=real_time) as browser:
            version = read_version(browser.devtools, errand)
            stopwatch.split("launch_s")
            seen = visit(browser.devtools, errand, browser.proc)
            stopwatch.split()
            browser.close()
            stopwatch.split("close_s")
        write_har(
            order.out / HAR_FILE,
            seen.events,
            seen.requests,
            browser=version,
            page_url=errand.url,
            plt_ms=seen.plt_ms,
            start_s=seen.start_s,
        )
        load = read_load(seen, version, order)
        load.browser.update(stopwatch.read())
        return load

    def _arguments(self, order: LoadOrder) -> list[str]:
        profile = order.scratch / "profile"
        profile.mkdir()
        profile.chmod(0o777)  # the browser may be another user than this one
        user = os.geteuid() if order.user is None else order.user
        return [
            *browser_arguments(
                profile,
                sandbox=sandbox_obstacle(user) is None if self._sandbox is None else self._sandbox,
                filter_calls=filters_calls(),
                authority=read_authority(order),
                in_memory=True,
            ),
            PIPE,
            FIRST_PAGE,
        ]

    def _environment(self, order: LoadOrder) -> dict[str, str]:
        nowhere = f"unix:path={order.scratch / 'no-bus'}"
        return client_environment(order) | {
            "LD_PRELOAD": str(_part(order, SHIM)),
            # The browser asks the desktop's services; what it finds must not depend on the machine.
            "DBUS_SESSION_BUS_ADDRESS": nowhere,
            "DBUS_SYSTEM_BUS_ADDRESS": nowhere,
        }


def read_load(seen: Visit, version: str, order: LoadOrder) -> PageLoad:
    """Return what was seen of a visit as the model has it.

    Raises:
        LoadError: the load event came, but there is no request in the result, or an origin spoke
            another protocol than asked for.
    """
    requests = tuple(_read_request(item, seen) for item in seen.requests)
    if not requests:
        raise LoadError("chromium: the browser reported no request at all")
    require_protocols(order, ((item.url, item.protocol) for item in seen.requests))
    coverage = compare(order.archive, requests)
    return PageLoad(
        client=Chromium.name,
        client_version=version,
        plt_ms=seen.plt_ms,
        requests=requests,
        missing=coverage.missing,
        extra=coverage.extra,
        failed=coverage.failed,
        pinned=order.pinned,
        browser=seen.cost,
        **seen.milestones,
    )


def _read_request(item: BrowserRequest, seen: Visit) -> RequestTiming:
    # A request that had not ended when the load event had is counted as failed by its status 0.
    ended = item.end_s is not None
    return RequestTiming(
        url=item.url,
        status=item.status if ended else 0,
        start_ms=1000 * (item.start_s - seen.start_s),
        end_ms=seen.plt_ms if item.end_s is None else 1000 * (item.end_s - seen.start_s),
        transfer_bytes=item.transfer_bytes,
        connection=item.connection,
        initiator=item.initiator,
        dns_ms=item.dns_ms,
        connect_ms=item.connect_ms,
    )


def _part(order: LoadOrder, part: Path) -> Path:
    path = order.bundle / part
    if not os.access(path, os.R_OK):
        raise MissingError(f"{path} is missing: the bundle has not been built; run ./run.sh doctor")
    return path
