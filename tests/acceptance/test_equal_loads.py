"""Loads of one seed are equal to the byte, whatever ran before them and on whichever processor."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from testbed.base import places, proc
from testbed.kernel import REGULAR_VERSIONS
from testbed.kernel.run import jail
from testbed.kernel.run.jail import GuestFiles
from testbed.model import CAPTURE_FILE, DEFAULT_ROOT, HAR_FILE
from testbed.root.cache import ensure_named
from testbed.runner.prepare import prepare_determinism
from tests.acceptance.house import House, Plant, assert_ok

pytestmark = [pytest.mark.guest, pytest.mark.browser]

PAGE = "amazon"
RTT_MS = 100
CLIENTS = ("chromium", "wget2", "graph")
LOADER = "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
ROOT = "debian-12"
"""The root whose loader is changed: in that of Debian 13 the checks are spread over the code."""
Loads = dict[str, tuple[bytes, bytes]]
LEVELS = {
    # Where the loader compares features that it has masked: `and` and `cmp` with one immediate.
    # One more bit in the second, and they are never equal (sysdeps/x86/dl-get-cpu-features.c).
    "x86-64-v4": (bytes.fromhex("81e20000035081fa00000350"), 8),
    "x86-64-v3": (bytes.fromhex("81e72801000081ff28010000"), 8),
}
"""What a loader has to have for a level, and which byte of it to change."""

NEEDLESS = """\
    import decimal, http.client, os, random, subprocess, time
    from pathlib import Path
    os.environ["NEEDLESS"] = "a variable that nobody reads"
    os.urandom(10_000), random.random()
    subprocess.run(["/usr/bin/env", "true"], check=True)
    for one in [subprocess.Popen(["/usr/bin/sleep", "0.01"]) for _ in range(40)]:
        one.wait()
    hoard = [bytearray(1000) for _ in range(3000)]
    Path("/tmp/needless").write_bytes(bytes(5000))
    time.sleep(0.0013)
"""
PREPARATION = "    begin_stage()\n    draw_secrets()\n"
WIRES_LAID = "        there = replace(site, topology=topology)\n"
LAB = "    if site.aligned:\n        begin_stage()\n        if site.topology is None:\n"
OPENING = "    with ExitStack() as undo:\n        topology = "
PROCESS = '    from testbed.base import proc\n\n    proc.run(("true",))\n'
CAPTURE = "    if site.aligned:\n        begin_stage()\n    order = "


@pytest.fixture(scope="module", autouse=True)
def page(house: House) -> None:
    house.take(PAGE)


def load(
    house: House, client: str, rtt_ms: Sequence[float] = (RTT_MS,), root: str = DEFAULT_ROOT
) -> Loads:
    """Capture and HAR of a load without and with Fast Open at ``RTT_MS``, the last of several."""
    ran = house.run(page=PAGE, client=client, rtt_ms=list(rtt_ms), tfo=[False, True], root=root)
    found = {}
    for record in ran.records:
        assert_ok(record)
        if record.trial.linked.link.rtt_ms != RTT_MS:
            continue
        folder = ran.folder / "trials" / record.trial_id
        files = (folder / CAPTURE_FILE).read_bytes(), (folder / HAR_FILE).read_bytes()
        found[f"Fast Open {record.trial.linked.tcp.tfo}"] = files
    assert len(found) == 2
    return found


@pytest.fixture(scope="module", params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def plain(house: House, client: str) -> Loads:
    """The loads of the client as they are."""
    return load(house, client)


@pytest.mark.nightly(but="graph")
def test_what_ran_before_the_lab_and_before_the_client_leaves_no_trace(
    house: House, plant: Plant, plain: Loads, client: str
) -> None:
    plant("kinds/page_lab.py", PREPARATION, NEEDLESS + PREPARATION)
    plant("kinds/page_lab.py", WIRES_LAID, WIRES_LAID + indent(NEEDLESS, "    "))
    plant("kinds/page_lab.py", LAB, NEEDLESS + LAB)
    plant("kinds/page_load/performance.py", CAPTURE, NEEDLESS + CAPTURE)
    plant("lab/topology.py", OPENING, PROCESS + OPENING)
    assert load(house, client) == plain


@pytest.mark.nightly(but="graph")
def test_a_load_that_goes_on_from_an_image_is_equal_to_one_that_booted(
    house: House, plain: Loads, client: str
) -> None:
    """The loads of 100 ms are the fifth and the sixth of their seed here."""
    assert load(house, client, rtt_ms=[20, 50, RTT_MS]) == plain


@pytest.mark.nightly
@pytest.mark.parametrize("without", [("x86-64-v4",), ("x86-64-v4", "x86-64-v3")], ids=["v3", "v2"])
def test_the_level_of_the_processor_changes_nothing(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str,
    without: tuple[str, ...],
) -> None:  # fmt: skip
    root = ensure_named(ROOT, places.cache(), print)
    usual, usr = jail.open_stage, tmp_path / "usr"
    plain = load(house, client, root=ROOT)

    shutil.copytree(root.usr, usr, symlinks=True, copy_function=os.link)
    (usr / LOADER).unlink()
    emulate(without, root.usr / LOADER, usr / LOADER)

    def with_loader(contents: GuestFiles, *given: int, **named: int) -> Any:
        return usual(replace(contents, usr=usr), *given, **named)

    monkeypatch.setattr("testbed.kernel.run.virtual.open_stage", with_loader)
    assert load(house, client, root=ROOT) == plain


def emulate(without: tuple[str, ...], original: Path, loader: Path) -> None:
    """Make ``loader`` one that takes the processor for one without these levels."""
    content = bytearray(original.read_bytes())
    for level in without:
        pattern, byte = LEVELS[level]
        places_found = [
            at for at in range(len(content)) if content.startswith(pattern, at)
        ]  # fmt: skip
        assert len(places_found) == 2, f"{original}: the check of {level} is not where it was"
        for at in places_found:
            content[at + byte] |= 1
            assert content[at : at + len(pattern)] != pattern
    loader.write_bytes(content)
    loader.chmod(0o755)
    said = proc.run((str(loader), "--help")).stdout
    assert [level for level in without if f"{level} (supported" in said] == []
    assert "x86-64-v2 (supported" in said


BOOTS = 20


@pytest.mark.guest
@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("version", REGULAR_VERSIONS)
@pytest.mark.parametrize("client", ["chromium", "wget2", "graph"])
def test_all_boots_are_equal(house: House, client: str, version: str) -> None:
    house.take("wikipedia")  # the page of the condition that is booted
    assert prepare_determinism(BOOTS, client, version, os.cpu_count() or 1) == ()
