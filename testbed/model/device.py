"""Device of a browser: its screen, what it calls itself, and what its user prefers.

Sources of those that have a name, ``DEVICES``: Lighthouse, core/config/constants.js and
core/lib/emulation.js (phone, desktop); WebPageTest, www/settings/mobile_devices.ini (tablet).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

DeviceName = Literal["recorded", "phone", "tablet", "laptop", "desktop"]
LEAST_PIXELS, MOST_PIXELS = 100, 10_000
_LEAST_SCALE, _MOST_SCALE = 0.1, 10.0
_TEXT = r"[\x20-\x7e]{0,500}"
_LANGUAGES = r"[A-Za-z0-9-]{1,35}(,[A-Za-z0-9-]{1,35}){0,9}|"
_SCHEMES = ("", "light", "dark")


class BrowserDevice(NamedTuple):  # a dataclass is made at run time, in each guest
    """What a page sees of the device that it is on; what is left out is the browser's own.

    Attributes:
        width, height: of screen and viewport, in CSS pixels; both or none.
        scale: pixels of the screen for a CSS pixel.
        mobile: whether the browser is a phone's, which heeds a page's `viewport`.
        touch: whether it has a touch screen.
        user_agent: what the browser calls itself.
        brands, platform, platform_version, model: the same as client hints, each brand with its
            version; without them a browser that was given a ``user_agent`` sends none.
        language: tags of languages, with commas, the best first.
        color_scheme: ``light`` or ``dark``.
        reduced_motion, reduced_data: whether the user asked for less of it.
    """

    width: int = 0
    height: int = 0
    scale: float = 1.0
    mobile: bool = False
    touch: bool = False
    user_agent: str = ""
    brands: tuple[str, ...] = ()
    platform: str = ""
    platform_version: str = ""
    model: str = ""
    language: str = ""
    color_scheme: str = ""
    reduced_motion: bool = False
    reduced_data: bool = False

    def plain(self) -> dict[str, Any]:
        """Return what is not the browser's own, as ``[device]`` of a page has it."""
        usual = self._field_defaults
        values = {name: value for name, value in self._asdict().items() if value != usual[name]}
        return values | ({"brands": list(self.brands)} if self.brands else {})

    @property
    def problems(self) -> tuple[str, ...]:
        """One clause for each thing that no device has."""
        sizes, texts = (self.width, self.height), (self.user_agent, self.platform, self.model,
                                                   self.platform_version, *self.brands)  # fmt: skip
        pixels = f"{LEAST_PIXELS} to {MOST_PIXELS} pixels each way"
        is_sized = all(LEAST_PIXELS <= each <= MOST_PIXELS for each in sizes)
        wrong = {
            f"{self.width}x{self.height} must be {pixels}": any(sizes) and not is_sized,
            f"scale must be {_LEAST_SCALE:g} to {_MOST_SCALE:g}":
                not _LEAST_SCALE <= self.scale <= _MOST_SCALE,
            "mobile and scale need width and height":
                (self.mobile or self.scale != 1) and not all(sizes),
            "texts must be printable ASCII, of 500 letters at the most":
                not all(re.fullmatch(_TEXT, each) for each in texts),
            'each of the brands needs its version, as "Chromium 156"':
                not all(" " in brand.strip() for brand in self.brands),
            "client hints need a user_agent": any(texts[1:]) and not self.user_agent,
            'language must be tags such as "de-DE,de"': not re.fullmatch(_LANGUAGES, self.language),
            'color_scheme must be "light" or "dark"': self.color_scheme not in _SCHEMES,
        }  # fmt: skip
        return tuple(clause for clause, is_so in wrong.items() if is_so)


def read_device(values: Mapping[str, Any]) -> BrowserDevice:
    """Return the inverse of ``BrowserDevice.plain``.

    Raises:
        ValueError: it is none; the message says all that is wrong.
    """
    kinds = BrowserDevice._field_defaults
    wrong = [f"{key} is not one of {', '.join(kinds)}" for key in values if key not in kinds]
    given: dict[str, Any] = {}
    for name, value in values.items():
        usual = kinds.get(name)
        is_list = isinstance(value, list) and all(isinstance(each, str) for each in value)
        value = tuple(value) if is_list else value
        value = float(value) if type(usual) is float and type(value) is int else value
        if name in kinds and type(value) is not type(usual):
            wrong.append(f"{name} is {value!r}")
        given[name] = value
    device = None if wrong else BrowserDevice(**given)
    wrong += () if device is None else device.problems
    if device is None or wrong:
        raise ValueError("; ".join(wrong))
    return device


_CHROME = "156"  # Lighthouse writes the running browser's here, and requests must not vary
_AGENT = "Mozilla/5.0 ({}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.0.0 {}Safari/537.36"
_BRANDS = (f"Chromium {_CHROME}", f"Google Chrome {_CHROME}")

DEVICES: Mapping[str, BrowserDevice] = MappingProxyType({
    "phone": BrowserDevice(
        412, 823, 1.75, mobile=True, touch=True, brands=_BRANDS,
        user_agent=_AGENT.format("Linux; Android 11; moto g power (2022)", _CHROME, "Mobile "),
        platform="Android", platform_version="11.0", model="moto g power (2022)",
    ),
    "tablet": BrowserDevice(
        768, 960, 2.0, mobile=True, touch=True,
        user_agent="Mozilla/5.0 (iPad; CPU OS 11_0 like Mac OS X) AppleWebKit/604.1.38 "
                   "(KHTML, like Gecko) Mobile/15A372",
    ),
    "laptop": BrowserDevice(1366, 768),
    "desktop": BrowserDevice(
        1350, 940, brands=_BRANDS,
        user_agent=_AGENT.format("Macintosh; Intel Mac OS X 10_15_7", _CHROME, ""),
        platform="macOS", platform_version="10.15.7",
    ),
})  # fmt: skip
"""Devices by the names that ``device`` and ``pages record --device`` take."""
