"""CPU time of one Chromium trial, by stages, from trials that stop early.

The difference between a stage and the one before it is what that stage costs: no profiler sees
through a guest's kernel, but the CPU time of a guest that ends earlier is exact.  All go on from an
image of their own kernel's guests, as most loads of a run do.
"""

from __future__ import annotations

import shutil
import statistics
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import guest
from bench.result import Result, judge
from bench.small_page import build_small_page
from bench.work import Work, bundle, virtual_kernel
from testbed.base import places
from testbed.base.errors import TrialError
from testbed.kernel.build.pin import DEFAULT_VERSION
from testbed.kernel.run.image import BOOTS
from testbed.kernel.run.virtual import VirtualKernel
from testbed.model import Condition, LinkSpec, TcpSpec, Trial
from testbed.runner.judge import conclude
from testbed.runner.prepare import built_page

STAGES = {"image": "going on from an image, and halting", "lab": "link, knobs, calibration",
          "server": "nginx, names, cookies, capture"}  # fmt: skip
BROWSER = "one object, the browser's end"
PAGES = ("wikipedia", "amazon", "wsj", "nytimes")
LIMIT_S = 5.0
RUNS = 3
BEFORE = BOOTS + 1
"""The guests of which the last one leaves the image."""


@dataclass(frozen=True, slots=True)
class TrialStage:
    """Cost of a trial up to this stage, in CPU seconds, once for each run."""

    name: str
    cpu_s: tuple[float, ...]

    @property
    def typical_s(self) -> float:
        """The median."""
        return statistics.median(self.cpu_s)


def measure(work: Work) -> Result:
    """Measure each stage on the one-object page, then the four pages of Table 1 as they are."""
    real = bundle()
    small = build_small_page(work.folder("cost"))
    runs = 1 if work.quick else RUNS
    stages = [
        TrialStage(text, _repeat(work, name, stopping(work, real, name), small, runs))
        for name, text in STAGES.items()
    ]
    kernel = virtual_kernel(DEFAULT_VERSION, real)
    stages.append(TrialStage(BROWSER, _repeat(work, "browser", kernel, small, runs)))
    pages = [
        TrialStage(page, _repeat(work, page, kernel, built_page(page, places.cache()), runs))
        for page in PAGES
    ]
    mean = statistics.mean(page.typical_s for page in pages)
    parts = increments(stages)
    shares = ", ".join(f"{name} {cpu_s:.2f}" for name, cpu_s in parts.items())
    page_costs = ", ".join(f"{page.name} {page.typical_s:.2f}" for page in pages)
    return Result(
        name="cost", asked=f"under {LIMIT_S:g} CPU s a load, mean of four pages",
        measured=f"{mean:.2f} s ({page_costs})", verdict=judge(mean < LIMIT_S), n=runs,
        how=f"medians at 20 ms, one guest at a time. Of each load: {shares}; the rest is the page",
        real_time=True,
        details={"increments_cpu_s": parts,
                 "stages_cpu_s": {stage.name: list(stage.cpu_s) for stage in stages},
                 "pages_cpu_s": {page.name: list(page.cpu_s) for page in pages}},
    )  # fmt: skip


def increments(stages: Sequence[TrialStage]) -> dict[str, float]:
    """Return what each stage adds to the one before it, in CPU seconds."""
    before = [0.0, *(stage.typical_s for stage in stages)]
    return {stage.name: stage.typical_s - was for stage, was in zip(stages, before, strict=False)}


def stopping(work: Work, real: Path, stage: str) -> VirtualKernel:
    """Return the default kernel with a bundle whose guests stop after ``stage``."""
    folder = work.folder(f"bundle-{stage}") / "bundle"
    shutil.copytree(real, folder)
    shutil.copyfile(guest.__file__, folder / "guest.py")
    (folder / "stage").write_text(stage)
    return virtual_kernel(DEFAULT_VERSION, folder)


def _repeat(
    work: Work, name: str, kernel: VirtualKernel, page: Path, runs: int
) -> tuple[float, ...]:
    tcp = TcpSpec(tfo=True, initcwnd_segments=3)
    condition = Condition(page.name, "chromium", LinkSpec(rtt_ms=20.0), tcp)
    trial = Trial(condition, 0, 0, kernel.name, kernel.version)
    cpu_s = []
    for number in range(BEFORE + runs):
        out = work.folder(f"out-{name}-{number}")
        raw = kernel.run(trial, page, out, 0, threading.Event())
        if raw.status != "ended" or raw.cost is None:
            raise TrialError(f"{name}: the guest {raw.status}: {raw.message}\n{raw.console_tail}")
        if name not in STAGES:
            record = conclude(trial, raw, out, "", 1)
            if record.outcome != "ok":
                raise TrialError(f"{name}: {record.outcome}: {record.reason}")
        if number >= BEFORE:
            cpu_s.append(raw.cost.cpu_s)
    return tuple(cpu_s)
