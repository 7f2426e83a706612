"""A page that is another one on each device loads as it was recorded, or as asked."""

from __future__ import annotations

import json

import pytest

from testbed.base.errors import EXIT_INCOMPLETE, EXIT_OK
from testbed.model.device import DEVICES
from tests.acceptance.house import House, Ran, assert_ok
from wings.pages.tests.recorder.site import Answer, Site, png, serving, typed

pytestmark = [pytest.mark.guest, pytest.mark.browser]

WWW = "http://www.phone.test"
PAGE = """<!doctype html><meta name=viewport content="width=device-width"><title>Device</title>
<p>Text</p><picture><source srcset=/narrow.png media="(max-width: 500px)">
<img src=/wide.png></picture>
<img srcset="/once.png 1x, /twice.png 2x" src=/never.png><script>
const told = [innerWidth, screen.height, devicePixelRatio, navigator.maxTouchPoints > 0,
              /Mobile/.test(navigator.userAgent), matchMedia('(pointer: coarse)').matches];
new Image().src = `/on/${told.join('-')}.png`;
new Worker(URL.createObjectURL(new Blob([
  `fetch('http://www.phone.test/worker/' + /Mobile/.test(navigator.userAgent))`])));
</script>
"""
ON_PHONE = f"{WWW}/on/412-823-1.75-true-true-true.png"


class Responsive(Site):
    """Has every picture, of every device."""

    def answer(self, method: str, url: str) -> Answer:
        page = typed(PAGE.encode(), "text/html")
        return page if url == f"{WWW}/" else typed(png(1), "image/png")


@pytest.fixture(scope="module")
def ran(house: House) -> Ran:
    with serving(Responsive()) as site:
        house.record(site, f"{WWW}/", "phone", "--device", "phone")
    return house.run(page="phone", device=["recorded", "laptop"])


def test_the_recorded_device_loads_what_was_recorded(house: House, ran: Ran) -> None:
    record = ran.one(device="recorded")
    assert_ok(record)
    assert record.replay is not None and record.replay.missed == ()
    assert house.archive("phone").device == DEVICES["phone"]
    asked = {entry["request"]["url"]: entry["request"]["headers"] for entry in ran.har(record)}
    assert {f"{WWW}/narrow.png", f"{WWW}/twice.png", ON_PHONE, f"{WWW}/worker/true"} <= {*asked}
    agents = {h["value"] for of in asked.values() for h in of if h["name"] == "User-Agent"}
    assert agents == {DEVICES["phone"].user_agent}


def test_another_device_asks_for_another_page(ran: Ran) -> None:
    record = ran.one(device="laptop")
    assert ran.code == EXIT_INCOMPLETE and record.reason is not None
    assert f"{WWW}/wide.png" in record.reason


def test_page_toml_has_the_last_word(house: House) -> None:
    facts = house.pages / "phone" / "page.toml"
    text = facts.read_text()
    assert "[device]\nwidth = 412\n" in text
    har = json.loads((house.pages / "phone" / "page.har").read_text())
    assert har["log"]["pages"][0]["_device"]["mobile"] is True
    facts.write_text(text.partition("\n[device]")[0])
    assert house.archive("phone").device is None
    facts.write_text(text)


def test_clients_without_a_screen_refuse_it(house: House) -> None:
    house.take("wikipedia")
    said = house.refused('page = "wikipedia"\nclient = "graph"\ndevice = "desktop"\n')
    assert 'the client "graph" has no device; take client = "chromium"' in said
    said = house.refused('page = "wikipedia"\nclient = "graph"\nblock = "ads.test"\n')
    assert 'the client "graph" has no block; take client = "chromium"' in said
    said = house.refused('page = "wikipedia"\nclient = "chromium"\ndevice = "watch"\n')
    assert '"phone"' in said


@pytest.mark.nightly
def test_what_a_user_prefers_is_emulated_and_a_swept_device_is_proven(house: House) -> None:
    page = """<!doctype html><title>Any</title><p>Text</p><script>
      new Image().src = `/${navigator.language}.png?${matchMedia('(prefers-color-scheme: dark)')
        .matches}-${matchMedia('(prefers-reduced-motion)').matches}`</script>"""
    told, light = "/de-DE.png?true-true", "/en-US.png?false-false"
    site = Site()
    site.put("http://www.any.test/", typed(page.encode(), "text/html"))
    site.put(f"http://www.any.test{light}", typed(png(1), "image/png"))
    with serving(site):
        house.record(site, "http://www.any.test/", "any")
    folder = house.pages / "any"
    (folder / "page.har").write_text((folder / "page.har").read_text().replace(light, told))
    wishes = 'color_scheme = "dark"\nreduced_motion = true\nreduced_data = true\n'
    with (folder / "page.toml").open("a") as file:
        file.write(f'\n[device]\nlanguage = "de-DE,de"\n{wishes}')
    ran = house.run(page="any", device=["recorded", "tablet"], allow_misses=True)
    assert ran.code == EXIT_OK
    record = ran.one(device="recorded")
    assert_ok(record)
    assert record.replay is not None and record.replay.missed == ()
    (page_headers, *_) = (entry["request"]["headers"] for entry in ran.har(record))
    sent = {each["name"].lower(): each["value"] for each in page_headers}
    assert sent["accept-language"] == "de-DE,de;q=0.9"
    assert_ok(ran.one(device="tablet"))
