"""Recording sessions: a fresh browser in a folder of its own, and what it leaves."""

from __future__ import annotations

import json
import os
import secrets
import select
import shutil
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from testbed.base import log as messages
from testbed.base import places, proc
from testbed.base.errors import ConfigurationError, MissingError
from testbed.base.units import format_bytes
from testbed.client.chromium import PINNED
from testbed.client.chromium.browser import filters_calls, find_browser, sandbox_obstacle
from testbed.client.chromium.device import device_commands
from testbed.client.chromium.flags import FIRST_PAGE, browser_arguments
from testbed.client.process import read_tail
from testbed.kernel.build.native import ensure_native
from wings.pages.exchange import Recording
from wings.pages.fidelity import COVERAGE, SCALE
from wings.pages.recorder import confinement
from wings.pages.recorder.assembly import assemble
from wings.pages.recorder.confinement import Account, choose_account, choose_scratch
from wings.pages.recorder.devtools import parse_report
from wings.pages.recorder.driver import set_up_recording
from wings.pages.recorder.netlog import read_netlog
from wings.pages.recorder.order import RecordError, RecordOrder
from wings.pages.recorder.trust import read_authorities, write_store

_log = messages.logger(__name__)
Tell = Callable[[str], None]

DRIVER = Path("dist") / "record.cjs"
GUARD_LOG = "guard.log"
TIMED_OUT, NOT_LOADED = 3, 4  # the driver's exit statuses
GRACE_S = 60.0  # for starting and closing the browser and asking for bodies
LOOK_S = 0.5
REMOVE_S = 10.0
REMOVE_AGAIN_S = 0.1
MOST_LOG_BYTES = 4 << 30  # of the network log, which has every byte of the page in Base64
_REMEDIES = {
    "ERR_NAME_NOT_RESOLVED": "no such host; check its name, or your network",
    "ERR_INTERNET_DISCONNECTED": "there is no network",
    "ERR_ADDRESS_UNREACHABLE": "the host cannot be reached; check your network",
    "ERR_CONNECTION_REFUSED": "nothing listens there; check host and port",
    "ERR_CONNECTION_TIMED_OUT": "the host does not answer; check host and port",
    "ERR_EMPTY_RESPONSE": "the server closed the connection without an answer",
    "ERR_CONNECTION_RESET": "the server closed the connection",
    "ERR_SSL_PROTOCOL_ERROR": "the server does not speak TLS there; try http://",
    "ERR_INVALID_RESPONSE": "the server does not speak HTTP there",
    "ERR_INVALID_HTTP_RESPONSE": "the server does not speak plain HTTP there; try https://",
    "ERR_TOO_MANY_REDIRECTS": "it redirects without an end: record the address behind it, or try "
    "--user-agent",
    "ERR_UNSAFE_PORT": "browsers refuse this port; use another",
    "ERR_ABORTED": "it is no page but a download, or has no content",
    "ERR_NETWORK_ACCESS_DENIED": "it is, or leads to, an address of this machine or its network; "
    "--allow-private HOST lets it",
    "the browser ended": "something else stopped it, or it ran out of memory",
    "the page crashed": "it may need more memory than there is",
}
_DISTRUSTED = "its certificate is not trusted; --ca FILE trusts an authority of your own"


def record(order: RecordOrder, scratch: Path, tell: Tell) -> Recording:
    """Load the page once and return all of it.

    Args:
        order: what to record.
        scratch: an existing folder; what is made below it is removed again.  If an ordinary user
            cannot reach it, a temporary folder is used in its stead.
        tell: is given a line about the progress now and then.

    Raises:
        ConfigurationError: the order makes no sense.
        MissingError: there is no browser, or neither node nor the browser driver can be had.
        TestbedError: the browser driver could not be built.
        RecordError: the page did not load.
    """
    if order.problems:
        raise ConfigurationError(list(order.problems))
    driver = set_up_recording() / DRIVER
    library = ensure_native(places.cache(), _log.info) / confinement.LIBRARY
    reach = confinement.find_reach(order)
    browser, node = find_browser(), shutil.which("node")
    if node is None:
        raise MissingError("no node on PATH, which recording takes: install nodejs (18 or later)")
    scratch = choose_scratch(scratch)
    account = choose_account(scratch / "any", browser, Path(node))
    if account.remark:
        _log.warning("%s", account.remark)
    folder = Path(mkdtemp(prefix="record-", dir=scratch))
    try:
        shutil.copyfile(driver, folder / "record.cjs")
        (folder / "profile").mkdir()
        if order.authority is not None:
            write_store(folder, read_authorities(order.authority))
        mark = secrets.token_hex(16)
        shutil.copyfile(library, folder / confinement.LIBRARY)
        _write_order(order, reach, folder, browser, account, mark)
        account.own(folder)
        _drive((*account.prefix, node, str(folder / "record.cjs")), order, folder, tell)
        tell("reading the browser's network log")
        report = parse_report(json.loads((folder / "report.json").read_bytes()))
        log = read_netlog(folder / "net.json", mark)
        refused = confinement.read_refused(folder / GUARD_LOG)
    finally:
        _remove(folder)
    return assemble(order, report, log, refused, datetime.now(UTC).date())


def _remove(folder: Path) -> None:
    """Remove ``folder``, though processes of the browser that are ending may still write there."""
    deadline = time.monotonic() + REMOVE_S
    shutil.rmtree(folder, ignore_errors=True)
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(REMOVE_AGAIN_S)
        shutil.rmtree(folder, ignore_errors=True)


def recording_arguments(order: RecordOrder, rules: Sequence[str], netlog: Path) -> list[str]:
    """Return the arguments that replays do not have; ``rules`` are for the browser's resolver."""
    arguments = [f"--log-net-log={netlog}", "--net-log-capture-mode=Everything"]
    # A page's own datagrams would tell addresses of this machine (WebRTC).
    arguments.append("--force-webrtc-ip-handling-policy=disable_non_proxied_udp")
    if rules:
        arguments.append(f"--host-resolver-rules={','.join(rules)}")
    return arguments


def _write_order(order: RecordOrder, reach: confinement.Reach, folder: Path, browser: Path,
                 account: Account, mark: str) -> None:  # fmt: skip
    nowhere = f"unix:path={folder / 'no-bus'}"
    usual = browser_arguments(folder / "profile", sandbox=sandbox_obstacle(account.user) is None,
                              filter_calls=filters_calls(), authority=None)  # fmt: skip
    value: dict[str, Any] = {
        "url": order.url,
        "executable": str(browser),
        "environment": _environment(folder)
        | {"DBUS_SESSION_BUS_ADDRESS": nowhere, "DBUS_SYSTEM_BUS_ADDRESS": nowhere}
        | {"LD_PRELOAD": str(folder / confinement.LIBRARY), "GUARD_LOG": str(folder / GUARD_LOG)}
        | {"GUARD_ALLOW": ",".join(reach.ends)},
        "guard_log": str(folder / GUARD_LOG),
        "arguments": [
            *usual,
            *recording_arguments(order, (*order.resolver_rules, *reach.rules), folder / "net.json"),
            FIRST_PAGE,
        ],
        "timeout_ms": order.timeout_s * 1000,
        "wait_ms": order.wait_s * 1000,
        "scroll": order.scroll,
        "coverage": COVERAGE,
        "scale": SCALE,
        "pinned": PINNED.read_text("utf-8") if order.pinned else None,
        "device": device_commands(order.emulated),
        "netlog": str(folder / "net.json"),
        "mark": mark,
        "result": str(folder / "report.json"),
    }
    (folder / "order.json").write_text(json.dumps(value), "utf-8")


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment of a replaying client: no user's settings."""
    return {"HOME": str(folder), "LANG": "C.UTF-8", "PATH": os.environ.get("PATH", os.defpath),
            "TMPDIR": str(folder), "TZ": "UTC"}  # fmt: skip


def _drive(argv: tuple[str, ...], order: RecordOrder, folder: Path, tell: Tell) -> None:
    log = folder / "driver.log"
    reading, writing = os.pipe()
    try:
        with log.open("wb") as output:
            command = (*argv, str(folder / "order.json"), str(writing))
            with proc.started(command, env=_environment(folder), cwd=folder, stdout=output,
                              stderr=output, pass_fds=(writing,)) as child:  # fmt: skip
                os.close(writing)
                writing = -1
                look = partial(_bound, order, folder / "net.json")
                ended = _follow(child.pid, reading, order.timeout_s + GRACE_S, tell, look)
                status = child.wait(proc.TERM_GRACE_S) if ended else None
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)
    if status == TIMED_OUT:
        late = f"no load event in {order.timeout_s:g} s; give it more with --timeout"
        raise RecordError(f"{order.url}: {late}")
    if status == NOT_LOADED:
        failure = json.loads((folder / "report.json").read_bytes())["failed"]
        raise RecordError(f"{order.url}: {describe_failure(failure)}")
    if status != 0:
        end = f"ended with status {status}" if ended else "did not end"
        raise RecordError(f"{order.url}: the browser's driver {end}: {read_tail(log)}")


def _bound(order: RecordOrder, netlog: Path) -> None:
    """Refuse a page without an end, which must not fill the disk."""
    if netlog.exists() and netlog.stat().st_size > MOST_LOG_BYTES:
        raise RecordError(
            f"{order.url}: the browser's network log has more than "
            f"{format_bytes(MOST_LOG_BYTES)}; a smaller --timeout may end the page before that"
        )


def _follow(
    child: int, descriptor: int, timeout_s: float, tell: Tell, look: Callable[[], None]
) -> bool:
    """Pass progress on until the process ``child`` ends; whether that was in time.

    ``look`` is called now and then.
    """
    deadline, text = time.monotonic() + timeout_s, b""
    watched, ending = [descriptor], os.pidfd_open(child)
    try:
        while (left := deadline - time.monotonic()) > 0:
            ready = select.select([*watched, ending], [], [], min(left, LOOK_S))[0]
            look()
            if ending in ready:
                return True
            if descriptor in ready:
                piece = os.read(descriptor, 1 << 16)
                if not piece:
                    watched = []
                *lines, text = (text + piece).split(b"\n")
                for line in lines[-1:]:
                    progress = json.loads(line)
                    tell(f"{progress['requests']} requests, {format_bytes(progress['bytes'])}")
    finally:
        os.close(ending)
    return False


def describe_failure(failure: str) -> str:
    """Describe the browser's words ``failure``, such as ``net::ERR_FAILED at http://x.test/``."""
    reason = failure.partition(" at ")[0]
    name = reason.removeprefix("net::")
    remedy = _DISTRUSTED if name.startswith("ERR_CERT_") else _REMEDIES.get(name)
    return f"the browser could not load it: {reason}" + (f" ({remedy})" if remedy else "")
