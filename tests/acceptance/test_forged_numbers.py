"""Forged numbers: each that an observation has is another by a tenth, and its record says the same.

A forger who writes both alike is found by what other files of the trial show: captures, the
client's log, its page.  What nothing shows is listed here, with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.base.errors import EXIT_OK
from testbed.model import OBSERVATION_FILE
from testbed.pages.build import build_page
from tests.acceptance.altered import KNOBS, PAGE, Done, given
from tests.acceptance.house import House, assert_ok

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

CLIENTS = ("graph", "wget2", "chromium")
AS_TOLD = {
    ("virtual_s",): "how long the kernel ran, which is no time of the load",
    ("load", "browser"): "what a browser's own processes took",
}
"""What nothing but its own word shows (docs/accuracy.md), by where it begins, and what it is."""
GRAIN = 0.0015
"""Logs have times to the microsecond."""
Place = tuple[str | int, ...]


def numbers(value: Any, place: Place = ()) -> Iterator[tuple[Place, float]]:
    """Each number that is not 0, and where it is."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for name, each in inner:
        if isinstance(each, dict | list):
            yield from numbers(each, (*place, name))
        elif isinstance(each, int | float) and not isinstance(each, bool) and each:
            yield (*place, name), each


def forge(number: float, factor: float) -> float:
    """A tenth more or less, of a small whole number one."""
    if isinstance(number, float):
        return number * factor
    return round(number * factor) if abs(number) > 5 else number + (1 if factor > 1 else -1)


@pytest.fixture(scope="module")
def loads(house: House) -> dict[str, Done]:
    house.take(PAGE)
    ran = house.run(**KNOBS | {"client": list(CLIENTS)})
    assert ran.code == EXIT_OK, ran.said
    digest, built = house.archive(PAGE).digest, build_page(house.pages / PAGE, house.cache)
    return {name: Done(ran.one(client=name), ran.folder, digest, built=built) for name in CLIENTS}


@pytest.mark.parametrize("client", CLIENTS)
def test_each_number_of_an_observation(loads: dict[str, Done], client: str, tmp_path: Path) -> None:
    done = loads[client]
    assert_ok(done.judge(lambda _: None, tmp_path / "as-it-was"))
    path = done.folder / "trials" / done.record.trial_id / OBSERVATION_FILE
    forged, passed = 0, []
    for place, number in numbers(json.loads(path.read_text())):
        if any(place[: len(told)] == told for told in AS_TOLD):
            continue
        for factor in (0.9, 1.1):
            other = forge(number, factor)
            if place[-1] in ("start_ms", "end_ms") and abs(other - number) <= GRAIN:
                continue
            forged += 1
            record = done.judge(given(*place, to=other), tmp_path / f"{forged}")  # type: ignore[arg-type]
            if record.outcome == "ok":
                passed.append((place, number, other))
    assert forged > 100
    assert not passed
