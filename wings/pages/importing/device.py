"""Device that an imported page was recorded on, as far as its archive tells.

A browser of which no size is told, but that it is a phone's, has the size of the lab's phone.
Sources: https://wicg.github.io/ua-client-hints/ (Sec-CH-UA and its sisters); WebPageTest's HAR
(``_viewport``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from testbed.model.device import DEVICES, BrowserDevice, read_device
from wings.pages.exchange import Headers, find_header
from wings.pages.importing.notes import Notes

OWN_NAME = "HeadlessChrome"
"""In the name of the browser that loads pages here anyway."""
_BRAND = re.compile(r'"([^"]*)";\s*v="([^"]*)"')
_PHONE = re.compile(r"\b(Mobile|Android|iPhone|iPad)\b")


def find_device(headers: Headers, page: Mapping[str, Any], notes: Notes) -> BrowserDevice | None:
    """Return the device by a page's first request and its object in the HAR; ``None``: the lab's.

    Raises:
        ValueError: it is none.
    """
    if isinstance(page.get("_device"), dict):
        return read_device(page["_device"])
    told = _size_of(page.get("_viewport"))
    agent = find_header(headers, "user-agent")
    if agent.startswith("Mozilla/") and OWN_NAME not in agent:
        told |= {"user_agent": agent}
        if brands := _BRAND.findall(find_header(headers, "sec-ch-ua")):
            told["brands"] = [f"{name} {version}" for name, version in brands]
            hinted = {"platform": "sec-ch-ua-platform", "model": "sec-ch-ua-model",
                      "platform_version": "sec-ch-ua-platform-version"}  # fmt: skip
            values = {key: find_header(headers, name).strip('"') for key, name in hinted.items()}
            told |= {key: value for key, value in values.items() if value}
        if find_header(headers, "sec-ch-ua-mobile") == "?1" or _PHONE.search(agent):
            if not told.get("width"):
                name = "tablet" if "iPad" in agent else "phone"
                notes.add("The archive does not tell its viewport, taken to be the lab's", name)
                size = DEVICES[name]
                told |= {"width": size.width, "height": size.height, "scale": size.scale}
            told |= {"mobile": True, "touch": True}
        language = find_header(headers, "accept-language")
        tags = [each.partition(";")[0].strip() for each in language.split(",")]
        if language and "*" not in tags:
            told["language"] = ",".join(tags)
    return read_device(told) if told else None


def _size_of(viewport: object) -> dict[str, Any]:
    """Return the size that WebPageTest tells."""
    told = viewport if isinstance(viewport, dict) else {}
    size = {name: told.get(name) for name in ("width", "height")}
    if not all(type(each) is int for each in size.values()):
        return {}
    scale = told.get("dpr")
    return size | ({"scale": float(scale)} if isinstance(scale, int | float) else {})
