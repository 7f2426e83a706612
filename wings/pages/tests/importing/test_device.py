"""The device of an imported page, as far as its archive tells of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from testbed.archive.reading import read_archive
from testbed.model.device import DEVICES, BrowserDevice
from testbed.pages.build import build_page
from testbed.pages.catalogue import read_facts
from wings.pages.har_export import export_har
from wings.pages.importing.device import find_device
from wings.pages.importing.notes import Notes
from wings.pages.tests.importing.conftest import Import
from wings.pages.tests.importing.site import devtools

PHONE = DEVICES["phone"]
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
HINTS = (
    ("User-Agent", PHONE.user_agent),
    ("sec-ch-ua", '"Chromium";v="156", "Google Chrome";v="156"'),
    ("sec-ch-ua-mobile", "?1"),
    ("sec-ch-ua-platform", '"Android"'),
    ("Accept-Language", "de-DE,de;q=0.9,en;q=0.8"),
)


def test_headers_tell_the_device_and_a_phones_size_is_the_labs() -> None:
    notes = Notes()
    device = find_device(HINTS, {}, notes)
    assert device == PHONE._replace(platform_version="", model="", language="de-DE,de,en")
    assert notes.sentences()[0].startswith("The archive does not tell its viewport")


@pytest.mark.parametrize(
    ("agent", "viewport", "device"),
    [
        (FIREFOX, None, BrowserDevice(user_agent=FIREFOX)),
        ("Mozilla/5.0 (X11) HeadlessChrome/156.0.0.0 Safari/537.36", None, None),
        ("Wget/1.25.0", None, None),
        (FIREFOX, {"width": 1920, "height": 1080, "dpr": 2}, BrowserDevice(1920, 1080, 2.0,
                                                                    user_agent=FIREFOX)),
        ("", {"width": 390, "height": 844}, BrowserDevice(390, 844)),
        ("", {"width": "390"}, None),
    ],
)  # fmt: skip
def test_what_is_told(agent: str, viewport: Any, device: BrowserDevice | None) -> None:
    assert find_device((("user-agent", agent),), {"_viewport": viewport}, Notes()) == device


def imported_device(imported: Import, page: dict[str, Any]) -> BrowserDevice | None:
    document = devtools(bodies=True)
    document["log"]["pages"][0] |= page
    document["log"]["entries"][0]["request"]["headers"] = [
        {"name": name, "value": value} for name, value in HINTS
    ]
    return imported(document).device


def test_it_goes_into_the_page_its_build_and_its_export(imported: Import, tmp_path: Path) -> None:
    device = imported_device(imported, {"_viewport": {"width": 390, "height": 844, "dpr": 3}})
    assert device is not None and (device.width, device.scale) == (390, 3.0)
    assert read_facts(tmp_path / "page" / "page.toml").device == device
    built = build_page(tmp_path / "page", tmp_path / "cache")
    assert read_archive(built).device == device
    assert imported(export_har(built).encode()).device == device
    facts = tmp_path / "page" / "page.toml"
    facts.write_text(facts.read_text().replace("width = 390", "width = 400"))
    archive = read_archive(build_page(tmp_path / "page", tmp_path / "cache"))
    assert archive.device == device._replace(width=400)
    assert archive.digest != read_archive(built).digest


def test_what_is_no_device_is_left_out_and_said(imported: Import) -> None:
    document = devtools(bodies=True)
    document["log"]["pages"][0]["_viewport"] = {"width": 1, "height": 1}
    recording = imported(json.loads(json.dumps(document)))
    assert recording.device is None
    assert any("1x1 must be 100 to 10000 pixels" in note for note in recording.notes)
