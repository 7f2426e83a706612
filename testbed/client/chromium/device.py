"""Emulation of a device: what DevTools is told of it, and what the page is asked of it after.

Source: Chrome DevTools Protocol, domain Emulation.
"""

from __future__ import annotations

from typing import Any

from testbed.model.device import BrowserDevice

AGENT = "Emulation.setUserAgentOverride"
"""What workers are told, too."""

SCRIPT = """
({
  width: screen.width, height: screen.height, scale: devicePixelRatio,
  touch: navigator.maxTouchPoints > 0,
  user_agent: navigator.userAgent, language: navigator.language,
  color_scheme: matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light',
  reduced_motion: matchMedia('(prefers-reduced-motion: reduce)').matches,
  reduced_data: navigator.connection?.saveData ?? false,
})
"""


def device_commands(device: BrowserDevice | None) -> list[tuple[str, dict[str, Any]]]:
    """Return the commands that make a page's session that of the device; of none there are none."""
    if device is None:
        return []
    commands: list[tuple[str, dict[str, Any]]] = []
    if device.width:
        size = {"width": device.width, "height": device.height}
        screen = {"screenWidth": device.width, "screenHeight": device.height}
        more = {"deviceScaleFactor": device.scale, "mobile": device.mobile}
        commands.append(("Emulation.setDeviceMetricsOverride", size | screen | more))
    if device.touch:
        commands.append(("Emulation.setTouchEmulationEnabled", {"enabled": True}))
    if device.user_agent or device.language:
        agent: dict[str, Any] = {"userAgent": device.user_agent}
        agent |= {"acceptLanguage": device.language} if device.language else {}
        commands.append((AGENT, agent | _hints(device)))
    features = {
        "prefers-color-scheme": device.color_scheme,
        "prefers-reduced-motion": "reduce" if device.reduced_motion else "",
        "prefers-reduced-data": "reduce" if device.reduced_data else "",
    }
    asked = [{"name": name, "value": value} for name, value in features.items() if value]
    if asked:
        commands.append(("Emulation.setEmulatedMedia", {"features": asked}))
    if device.reduced_data:
        commands.append(("Emulation.setDataSaverOverride", {"dataSaverEnabled": True}))
    return commands


def _hints(device: BrowserDevice) -> dict[str, Any]:
    """Return the client hints; a browser that was given another name sends none of its own."""
    if not device.brands:
        return {}
    named = (brand.rpartition(" ") for brand in device.brands)
    return {"userAgentMetadata": {
        "brands": [{"brand": name, "version": version} for name, _, version in named],
        "platform": device.platform, "platformVersion": device.platform_version,
        "architecture": "", "model": device.model, "mobile": device.mobile,
    }}  # fmt: skip
