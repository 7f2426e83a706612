"""docs/web-performance.md: each of its commands can be run, and an edited copy is an arm."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from testbed.base.errors import EXIT_OK
from testbed.base.places import ROOT
from tests.acceptance.house import House
from wings.pages.tests.recorder.site import Site, png, serving, typed

TEXT = (ROOT / "docs" / "web-performance.md").read_text(encoding="utf-8")
LINES = re.findall(r"^    (.*)$", TEXT, re.MULTILINE)
FILE = "\n".join(line for line in LINES if not line.startswith("./run.sh"))
COMMANDS = [line for line in LINES if line.startswith("./run.sh run mine.toml ")]
WWW = "http://www.shop.test"
CSS = b"@font-face { font-family: f; src: url(/font.woff2) } h1 { font-family: f }"


def test_it_is_short_and_has_an_answer_to_each_question() -> None:
    assert len(TEXT.split()) <= 350
    assert len(COMMANDS) >= 8


@pytest.fixture
def shop(house: House) -> House:
    for name in ("shop", "shop-b"):
        shutil.copytree(ROOT / "pages" / "wikipedia", house.pages / name, dirs_exist_ok=True)
    return house


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_plans_its_trials(shop: House, command: str) -> None:
    config = shop.folder / "mine.toml"
    config.write_text(FILE)
    _, _, _, *words = shlex.split(command)
    code, said = shop.command("plan", str(config), *words)
    assert code == EXIT_OK, said


@pytest.mark.guest
@pytest.mark.browser
@pytest.mark.nightly
def test_a_preload_in_a_copy_is_an_arm_and_the_report_says_which_is_faster(house: House) -> None:
    page = "<!doctype html><title>Font</title><link rel=stylesheet href=/a.css><h1>Font</h1>"
    site = Site()
    site.put(f"{WWW}/", typed(page.encode(), "text/html"))
    site.put(f"{WWW}/a.css", typed(CSS, "text/css"))
    site.put(f"{WWW}/font.woff2", typed(png(1) * 500, "font/woff2"))
    with serving(site):
        house.record(site, f"{WWW}/", "font")
    shutil.copytree(house.pages / "font", house.pages / "font-b")
    add_link(house.pages / "font-b" / "page.har")
    ran = house.run(page=["font", "font-b"], rtt_ms=100)
    assert ran.code == EXIT_OK
    # A preload holds the load event back, which the font of a style sheet does not.
    assert re.search(r"font is [0-9.]+ % faster than font-b: ", ran.said), ran.said


def add_link(file: Path) -> None:
    """Edit an archive as the document says."""
    (told,) = re.findall(r"`(\{.*?\})`", TEXT)
    har = json.loads(file.read_text())
    response = har["log"]["entries"][0]["response"]
    response["headers"].append(json.loads(told))
    response["headersSize"] = -1
    file.write_text(json.dumps(har))
