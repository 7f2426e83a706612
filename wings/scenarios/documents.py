"""What documents have of scenarios: a ladder, and an ending in STATUS.md, of committed results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from analysis.readme import Tables
from analysis.records.results import read_results
from testbed.base.places import ROOT
from wings.scenarios.analysis.ladder import draw_ladder
from wings.scenarios.analysis.promises import key_of, read_promises
from wings.scenarios.analysis.terminal import summaries

LADDER = ROOT / "docs" / "images" / "cached-cookie.svg"
"""The ladder of the scenario of that name."""
_SAMPLE = Path("analysis", "samples", "scenarios")


def draw_committed_ladder(root: Path = ROOT) -> str:
    """Return the ladder of the documents as the committed results below ``root`` give it."""
    results = read_results(root / _SAMPLE)
    record = next(each for each in results.records if key_of(each)[0] == LADDER.stem)
    return draw_ladder(results.folder, record).draw() + "\n"


def say_promises(root: Path) -> str:
    """Return the ending of the scenarios in STATUS.md."""
    return "\n".join(summaries(read_promises([root / _SAMPLE])))


class CommittedScenarios:
    """What is provided to the point ``documents``."""

    PAGES: Mapping[Path, Tables] = {}
    DRAWINGS: Mapping[Path, Callable[[], str]] = {LADDER: draw_committed_ladder}
