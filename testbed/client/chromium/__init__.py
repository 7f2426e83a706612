"""The Chromium client: headless Chromium driven by Puppeteer over a pipe, one load per process.

``driver/`` is the other half, in JavaScript; built, it is one file, ``bundle/js/load.cjs``.
headless-shell reads no managed policies and has no loading predictor, so nothing preconnects for
it but what a page itself asks for.  For the same reason nothing lowers its TLS version: its
ClientHello offers TLS 1.3 with a post-quantum key (1.7 to 1.9 KB) whatever ``tls_version`` says,
and a server that has TLS 1.2 only gets that.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from testbed.base.errors import MissingError
from testbed.client.alpn import require_protocols
from testbed.client.chromium.browser import (
    KNOWN_PATHS,
    filters_calls,
    find_browser,
    find_node,
    sandbox_obstacle,
)
from testbed.client.coverage import compare, list_due
from testbed.client.interface import (
    LoadError,
    LoadOrder,
    LoadTimeoutError,
    client_environment,
    read_authority,
)
from testbed.client.process import run_logged
from testbed.client.program import LIBRARIES, Program
from testbed.model import HAR_FILE, PageLoad, RequestTiming

DRIVER = Path("js") / "load.cjs"
SHIM = Path("native") / "tfo.so"
HEADLESS_SHELL = "headless-shell"
TIMED_OUT = 3  # the driver's exit status
FONTS = "/usr/share/fonts/truetype/dejavu"  # as the bundle's fonts.conf says
START_GRACE_S = 60.0  # for starting and closing the browser, beyond the load itself


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
        # It runs Puppeteer, which drives the browser, and npm installs that from its lock file.
        Program("node", packages="nodejs >= 18, npm"),
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
        request, result = order.scratch / "order.json", order.scratch / "load.json"
        request.write_text(json.dumps(self._describe(order, result)), "utf-8")
        log = order.out / "client.log"
        # In virtual time a clock read would move the result, and a start takes no time.
        started_ns = time.monotonic_ns() if order.wait_until_ns is None else None
        status = run_logged(
            (*order.prefix, str(find_node()), str(_part(order, DRIVER)), str(request)),
            log=log,
            env=client_environment(order),
            cwd=order.scratch,
            timeout_s=order.timeout_s + START_GRACE_S,
            good=(0, TIMED_OUT),
        )
        if status == TIMED_OUT:
            raise LoadTimeoutError(
                f"chromium: {order.archive.root_url} had no load event in {order.timeout_s:g} s; "
                f"see {log.name}"
            )
        seen = json.loads(result.read_text("utf-8"))
        if started_ns is not None:
            seen["cost"]["wall_s"] = (time.monotonic_ns() - started_ns) / 1e9
        return read_load(seen, order)

    def _describe(self, order: LoadOrder, result: Path) -> dict[str, Any]:
        profile = order.scratch / "profile"
        profile.mkdir()
        profile.chmod(0o777)  # the browser may be another user than this one
        user = os.geteuid() if order.user is None else order.user
        sandbox = sandbox_obstacle(user) is None if self._sandbox is None else self._sandbox
        nowhere = f"unix:path={order.scratch / 'no-bus'}"
        environment = client_environment(order) | {
            "LD_PRELOAD": str(_part(order, SHIM)),
            # The browser asks the desktop's services; what it finds must not depend on the machine.
            "DBUS_SESSION_BUS_ADDRESS": nowhere,
            "DBUS_SYSTEM_BUS_ADDRESS": nowhere,
        }
        executable = find_browser() if self._executable is None else self._executable
        wait_ms = None if order.wait_until_ns is None else order.wait_until_ns / 1e6
        return {
            "url": order.archive.root_url,
            "executable": str(executable),
            "full_browser": HEADLESS_SHELL not in executable.name,
            "profile": str(profile),
            "environment": environment,
            "sandbox": sandbox,
            "filter_calls": filters_calls(),
            "authority": read_authority(order),
            "pinned": order.pinned,
            "due": list_due(order.archive),
            "timeout_ms": order.timeout_s * 1000.0,
            "wait_until_ms": wait_ms,
            "result": str(result),
            "har": str(order.out / HAR_FILE),
        }


def read_load(seen: dict[str, Any], order: LoadOrder) -> PageLoad:
    """The driver's result as the model has it.

    Raises:
        LoadError: the load event came, but there is no request in the result, or an origin spoke
            another protocol than asked for.
    """
    plt_ms = float(seen["timing"]["plt_ms"])
    requests = tuple(_read_request(item, plt_ms) for item in seen["requests"])
    if not requests:
        raise LoadError("chromium: the browser reported no request at all")
    require_protocols(order, ((item["url"], item["protocol"]) for item in seen["requests"]))
    coverage = compare(order.archive, requests)
    return PageLoad(
        client=Chromium.name,
        client_version=seen["browser"],
        plt_ms=plt_ms,
        requests=requests,
        missing=coverage.missing,
        extra=coverage.extra,
        failed=coverage.failed,
        pinned=seen["pinned"],
        browser={name: float(value) for name, value in seen["cost"].items()},
    )


def _read_request(item: dict[str, Any], plt_ms: float) -> RequestTiming:
    # A request that had not ended when the load event had is counted as failed by its status 0.
    ended = item["end_ms"] is not None
    return RequestTiming(
        url=item["url"],
        status=item["status"] if ended else 0,
        start_ms=item["start_ms"],
        end_ms=item["end_ms"] if ended else plt_ms,
        transfer_bytes=item["transfer_bytes"],
        connection=item["connection"],
        initiator=item["initiator"],
        dns_ms=item["dns_ms"],
        connect_ms=item["connect_ms"],
    )


def _part(order: LoadOrder, part: Path) -> Path:
    path = order.bundle / part
    if not os.access(path, os.R_OK):
        raise MissingError(f"{path} is missing: the bundle has not been built; run ./run.sh doctor")
    return path
