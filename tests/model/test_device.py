"""Devices: those with names can be, what is written is read back, and mistakes are told."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from testbed.client.chromium.device import AGENT, device_commands
from testbed.model.device import DEVICES, BrowserDevice, DeviceName, read_device


def test_each_name_has_a_device() -> None:
    assert get_args(DeviceName) == ("recorded", *DEVICES)


@pytest.mark.parametrize(
    "device", [*DEVICES.values(), BrowserDevice(), BrowserDevice(reduced_data=True)]
)
def test_what_is_written_is_read_back(device: BrowserDevice) -> None:
    assert device.problems == ()
    assert read_device(device.plain()) == device


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"widht": 1}, "widht is not one of width"),
        ({"width": "412"}, "width is '412'"),
        ({"width": 412}, "412x0 must be 100 to 10000 pixels each way"),
        ({"mobile": True}, "mobile and scale need width and height"),
        ({"user_agent": "a\r\nX: y"}, "printable ASCII"),
        ({"brands": ["Chromium"]}, "each of the brands needs its version"),
        ({"platform": "Android"}, "client hints need a user_agent"),
        ({"language": "de;q=1"}, "language must be tags"),
        ({"color_scheme": "blue"}, "color_scheme must be"),
    ],
)
def test_mistakes_are_told(values: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_device(values)


def test_nothing_is_said_for_no_device() -> None:
    assert device_commands(None) == []
    assert device_commands(BrowserDevice()) == []
    agent = dict(device_commands(DEVICES["phone"]))[AGENT]
    assert agent["userAgentMetadata"]["brands"][0] == {"brand": "Chromium", "version": "156"}
    assert "userAgentMetadata" not in dict(device_commands(DEVICES["tablet"]))[AGENT]
