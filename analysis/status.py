"""Endings of an evaluator's commands in STATUS.md, made of the committed results.

An ending is between ``<!-- prints: NAME -->`` and ``<!-- end -->``; ``make readme`` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from analysis.records.results import read_results
from analysis.verdicts.committed import hold_against_committed
from analysis.verdicts.compare.comparison import EVERYTHING, CompareOptions
from analysis.verdicts.compare.folders import compare_results
from analysis.verdicts.compare.sentences import headline
from testbed.base.errors import ConfigurationError
from testbed.base.wings import provided

ROOT = Path(__file__).parent.parent
STATUS = ROOT / "STATUS.md"
_NIGHTLY = "analysis/baselines/nightly"
_BLOCK = re.compile(r"(<!-- prints: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def _committed(name: str) -> Callable[[Path], str]:
    def say(root: Path) -> str:
        results = read_results(root / name)
        return hold_against_committed(results, root / "analysis" / "baselines")

    return say


def _rerun(root: Path) -> str:
    folder = root / _NIGHTLY
    return headline(compare_results(folder, folder, CompareOptions(across=EVERYTHING)))


Ending = Callable[[Path], str]
"""An ending, made of what is committed below a root."""
_OURS: Mapping[str, Ending] = {
    "artifact": _rerun,
    "nightly": _committed(_NIGHTLY),
    "rerun": _rerun,
    "table1": _committed("analysis/baselines/paper-table1"),
}


def list_endings() -> dict[str, Ending]:
    """Return the endings by name; wings provide theirs to the point ``endings``."""
    return {**_OURS, **{each.name: each.load() for each in provided("endings")}}


def render_status(text: str, root: Path = ROOT) -> str:
    """Return ``text`` with each ending as the committed results below ``root`` give it.

    Raises:
        ConfigurationError: the text has other endings than these.
        StorageError: its results cannot be read.
    """
    endings = list_endings()
    named = [match[2] for match in _BLOCK.finditer(text)]
    if sorted(named) != sorted(endings):
        raise ConfigurationError(
            [f"STATUS.md has the endings {', '.join(named)}; expected: {', '.join(endings)}"]
        )

    def fill(match: re.Match[str]) -> str:
        return f"{match[1]}```\n{endings[match[2]](root).rstrip()}\n```\n{match[3]}"

    return _BLOCK.sub(fill, text)
