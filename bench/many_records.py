"""Results folders of as many page loads as asked for: a committed load, varied by cell and seed."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import asdict, replace
from itertools import islice, product
from pathlib import Path
from typing import Any

from testbed.base import places
from testbed.experiment.plan import plan_trials
from testbed.model import CAPTURE_FILE, HAR_FILE, Condition, Experiment, Trial, canonical
from testbed.results.environment import Environment
from testbed.results.manifest import Manifest, load_manifest, write_manifest
from testbed.results.records import RECORDS_FILE, read_lines

PATTERN = places.ROOT / "analysis" / "baselines" / "nightly"
"""Its first record is a load of the graph client, of 29 requests and 14 KB."""
PAGES = tuple(sorted(path.name for path in places.PAGES.iterdir()))[:24]
RTTS_MS = (5.0, 10.0, 20.0, 40.0, 60.0, 80.0, 100.0, 150.0, 200.0, 300.0, 450.0, 600.0, 800.0)
WINDOWS = (2, 3, 4, 6, 8, 10, 12, 16)
SEEDS = 20


def sweep(cells: int, seeds: int = SEEDS) -> Experiment:
    """Return an experiment of so many ``cells``, half of them with Fast Open, at most 4,992."""
    pattern = load_manifest(PATTERN).experiment
    first = pattern.conditions_as(Condition)[0]
    knobs = product(WINDOWS, RTTS_MS, PAGES, (False, True))
    conditions = tuple(
        replace(first, page=page, link=replace(first.link, rtt_ms=rtt_ms),
                tcp=replace(first.tcp, tfo=tfo, initcwnd_segments=window))
        for window, rtt_ms, page, tfo in islice(knobs, cells)
    )  # fmt: skip
    return replace(
        pattern, name="growth", title="Growth", conditions=conditions, repetitions=seeds, roots=()
    )


def write_config(path: Path, windows: int, rtts: int, seeds: int = SEEDS) -> None:
    """Write the experiment file of a sweep over so many initial windows and round-trip times."""
    lines = ('client = "graph"', f"repetitions = {seeds}", "[sweep]",
             f"initcwnd_segments = {list(WINDOWS[:windows])}", f"rtt_ms = {list(RTTS_MS[:rtts])}",
             f"page = {json.dumps(PAGES)}", "tfo = [false, true]")  # fmt: skip
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_many(folder: Path, plan: Experiment, another: str = "") -> Path:
    """Write the results of ``plan`` into the new ``folder``, and return it.

    ``another`` names an environment, which has other draws of the same loads.
    """
    folder.mkdir()
    manifest = load_manifest(PATTERN)
    parts = manifest.environment.parts | ({"code.bundle": another * 8} if another else {})
    pages = {page: hashlib.sha256(page.encode()).hexdigest() for page in plan.pages}
    environment = Environment(parts, pages, manifest.environment.facts)
    trials = plan_trials(plan)
    write_manifest(
        folder, Manifest(plan, environment, tuple(t.id for t in trials), manifest.created_utc)
    )
    pattern = next(read_lines(PATTERN)).plain
    har = _har(pattern["load"]["requests"])
    pattern["artefacts"][HAR_FILE] = hashlib.sha256(har).hexdigest()
    pattern["environment"] = environment.id
    with (folder / RECORDS_FILE).open("wb") as lines:
        for trial in trials:
            lines.write(canonical(_vary(pattern, trial, another)).encode() + b"\n")
    shown = folder / "har"
    shown.write_bytes(har)
    for trial in trials[: len(plan.conditions)]:  # the loads that a report may draw
        place = folder / "trials" / trial.id
        place.mkdir(parents=True)
        (place / HAR_FILE).hardlink_to(shown)
    return folder


def _vary(pattern: dict[str, Any], trial: Trial, another: str) -> dict[str, Any]:
    """Return the record of ``trial``: as the pattern, longer or shorter as a whole."""
    condition = trial.condition_as(Condition)
    cell = random.Random(f"{condition.page} {condition.tcp.initcwnd_segments}")  # noqa: S311
    draw = random.Random(f"{trial.id} {another}")  # noqa: S311
    plt_ms = 300.0 + 700.0 * cell.random() + condition.link.rtt_ms * (14 - 2 * condition.tcp.tfo)
    plt_ms *= 1.0 + 0.03 * draw.random()
    load = pattern["load"]
    longer = plt_ms / load["plt_ms"]
    requests = [
        each | {"start_ms": each["start_ms"] * longer, "end_ms": each["end_ms"] * longer}
        for each in load["requests"]
    ]
    capture = hashlib.sha256(f"{trial.id} {another}".encode()).hexdigest()
    return pattern | {"trial": asdict(trial), "trial_id": trial.id,
                      "load": load | {"plt_ms": plt_ms, "requests": requests},
                      "artefacts": pattern["artefacts"] | {CAPTURE_FILE: capture}}  # fmt: skip


def _har(requests: list[dict[str, Any]]) -> bytes:
    entries = [
        {
            "startedDateTime": f"2026-11-20T00:00:{each['start_ms'] / 1e3:09.6f}+00:00",
            "request": {"method": "GET", "url": each["url"]},
            "response": {"status": 200, "_transferSize": each["transfer_bytes"]},
            "timings": {"wait": each["end_ms"] - each["start_ms"]},
        }
        for each in requests
    ]
    page = {"id": "page_1", "startedDateTime": "2026-11-20T00:00:00+00:00"}
    return json.dumps({"log": {"pages": [page], "entries": entries}}).encode()
