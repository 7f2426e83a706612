"""Orders to the recorder: what is to be recorded, and how long it may take."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from testbed.archive.reading import split_url
from testbed.base.errors import ConfigurationError, TestbedError
from testbed.model.device import DEVICES, BrowserDevice
from wings.pages.recorder.trust import read_authorities

LAST_PORT = 65535
_END = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]\s,]+)(?::([0-9]{1,5}))?")
_URL = re.compile(r"[\x21-\x7e]+")


def parse_end(text: str) -> tuple[str, int | None]:
    """Return host and port of ``HOST``, ``HOST:PORT`` or ``[ADDRESS]:PORT``.

    Raises:
        ValueError: it is none of these.
    """
    end = _END.fullmatch(text)
    if end is None or int(end[2] or 0) > LAST_PORT:
        raise ValueError(f"{text!r} is no host and no host with a port; write it like nas.home:80")
    return end[1].strip("[]"), None if end[2] is None else int(end[2])


class RecordError(TestbedError):
    """The page could not be recorded; nothing was written."""


@dataclass(frozen=True, slots=True)
class RecordOrder:
    """One recording.

    Attributes:
        url: absolute http or https URL.
        wait_s: the page is done when, after its load event, no request was in flight for so long.
        device: a name of ``DEVICES``; ``None``: the lab's own browser as it is.
        viewport: width and height in CSS pixels; ``None``: the device's.
        user_agent: what the browser calls itself; ``None``: the device's name.
        scroll: scroll to the end, step by step, after the load event.
        pinned: give scripts the pinned clocks and random numbers that replays can give them.
        timeout_s: bound of the load and, again from its start, of the waiting after it.
        resolver_rules: the browser's ``--host-resolver-rules``, as "MAP * 127.0.0.1:8080".
        allowed: private hosts beside its own that the page may reach, as "HOST" or "HOST:PORT".
        authority: a PEM file with the certificates of authorities to trust beside the usual ones.
    """

    url: str
    wait_s: float = 2.0
    viewport: tuple[int, int] | None = None
    user_agent: str | None = None
    scroll: bool = False
    pinned: bool = False
    timeout_s: float = 60.0
    resolver_rules: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    authority: Path | None = None
    device: str | None = None

    @property
    def emulated(self) -> BrowserDevice | None:
        """The device that the browser is to be; ``None``: as it is."""
        device = DEVICES.get(self.device or "", BrowserDevice())
        if self.viewport is not None:
            device = device._replace(width=self.viewport[0], height=self.viewport[1])
        if self.user_agent:
            # Client hints of another browser would contradict it.
            device = device._replace(user_agent=self.user_agent, brands=(), platform="",
                                     platform_version="", model="")  # fmt: skip
        return device if device.plain() else None

    @property
    def problems(self) -> tuple[str, ...]:
        """One sentence for each thing that cannot be."""
        problems = []
        try:
            split_url(self.url)
            if not _URL.fullmatch(self.url):
                raise ValueError(f"{self.url!r}: write all but printable ASCII in %XX")
        except ValueError as error:
            hint = "" if "://" in self.url else f"; write http://{self.url} or https://{self.url}"
            problems.append(f"cannot record {error}{hint}")
        if not 0 < self.wait_s < self.timeout_s:
            wait = f"a wait of {self.wait_s:g} s must be more than 0 and less than the time-out"
            problems.append(f"{wait} of {self.timeout_s:g} s")
        device = self.emulated or BrowserDevice()
        problems += [f"cannot record on this device: {clause}" for clause in device.problems]
        wrong = [rule for rule in self.resolver_rules if "," in rule or not rule.isprintable()]
        problems += [f"the resolver rule {r!r} must be one rule, without a comma" for r in wrong]
        for text in self.allowed:
            try:
                parse_end(text)
            except ValueError as error:
                problems.append(f"--allow-private {error}")
        if self.authority is not None:
            try:
                read_authorities(self.authority)
            except ConfigurationError as error:
                problems += error.problems
        return tuple(problems)
