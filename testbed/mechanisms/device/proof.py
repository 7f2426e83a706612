"""Device of the browser, as the page tells of it and its request does, and what it may not ask."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from testbed.base.addresses import format_address
from testbed.model.device import BrowserDevice
from testbed.proof.check import check, say_unshown
from testbed.proof.evidence import Evidence

_AGENT = "\r\nUser-Agent: "


@check("device", "load", "condition")
def check_device(seen: Evidence) -> Iterator[str]:
    """The page finds itself on the device asked for, or recorded, and was asked for by its name.

    That is the user agent's, in the capture where it is in clear; the browser's log has it for all
    requests ("requests sent").
    """
    asked = seen.condition.device
    if not seen.browsed or not seen.has("logs"):
        yield from () if asked == "recorded" else (say_unshown("device", asked),)
        return
    if not seen.has("device"):
        return
    device = seen.device
    for log in seen.logs:
        found = (log.page.get("_seen") or {}).get("device")
        if device is None:
            yield from () if found is None else (log.say("the page was on a device of its own"),)
        elif found is None:
            yield log.say(say_unshown("device", asked))
        else:
            yield from map(log.say, _compare(found, device))
    if device is not None and device.user_agent and seen.has("archive"):
        name = f"User-Agent: {device.user_agent}\r\n"
        for other in sorted(set(_others_on_wire(seen, name))):
            yield f"the page was asked for with {other}, due was {name.strip()}"


def _compare(found: dict[str, object], device: BrowserDevice) -> Iterator[str]:
    """Yield what the page finds of its device that is not so."""
    due = device.plain()
    due |= {"language": device.language.partition(",")[0]} if device.language else {}
    due |= {"scale": device.scale} if device.width else {}
    for name, value in due.items():
        if name in found and found[name] != value:
            yield f"the page finds {name} = {found[name]}, the device has {value}"


def _others_on_wire(seen: Evidence, name: str) -> Iterator[str]:
    """Yield other names than ``name`` in requests for the page that a packet in clear begins.

    What was captured of it may end within the name.
    """
    parts = urlsplit(seen.archive.root_url)
    line = f"GET {parts.path or '/'}{'?' if parts.query else ''}{parts.query} HTTP/1.1\r\n"
    host = f"\r\nHost: {parts.netloc}\r\n"
    for packet in seen.capture.packets:
        head = packet.payload.decode("latin-1")
        if head.startswith(line) and host in head and _AGENT in head:
            own = head[head.index(_AGENT) + 2 :]
            if not own.startswith(name) and not name.startswith(own):
                yield own.partition("\r\n")[0]


@check("blocked hosts", "load", "condition", "capture", "hosts")
def check_blocked(seen: Evidence) -> Iterator[str]:
    """Hosts that were to be blocked got no packet, and the page has some."""
    words = seen.condition.block
    if not words:
        return
    blocked = set(seen.archive.list_blocked(words)) if seen.has("archive") else set()
    if not (blocked and seen.browsed):
        yield say_unshown("block", words)
    met = {seen.hosts.get(format_address(packet.target)) for packet in seen.capture.packets}
    for host in sorted(blocked & met):
        yield f"{host} is blocked and was sent packets"
