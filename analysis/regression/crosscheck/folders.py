"""Two results folders of different kernels side by side: compared, never pooled."""

from __future__ import annotations

import json
from pathlib import Path

from analysis.records.results import read_results
from analysis.regression.crosscheck.clocks import cross_check
from analysis.regression.crosscheck.clocks_report import present_check
from analysis.regression.crosscheck.kernels import cross_kernels
from analysis.regression.crosscheck.kernels_report import present_kernels
from analysis.regression.crosscheck.pairs import pair_results
from analysis.regression.crosscheck.words import Presented
from testbed.base.whole_file import write_whole


def write_cross_check(one: Path, other: Path, into: Path) -> Presented:
    """Compare two results folders; crosscheck.json and crosscheck.html go into ``into``.

    Two virtual kernels are asked what changed, a virtual and a real one whether they agree.

    Raises:
        ConfigurationError: they cannot be compared, or one of them cannot be pooled.
        StorageError: a folder cannot be read or written.
    """
    pairing = pair_results(read_results(one), read_results(other))
    if pairing.virtual:
        presented = present_kernels(cross_kernels(pairing))
    else:
        presented = present_check(cross_check(pairing))
    remedy = f"make room or check the permissions of {into}, then compare again"
    document = json.dumps(presented.document, sort_keys=True, indent=1, allow_nan=False) + "\n"
    write_whole(into / "crosscheck.json", document, remedy)
    write_whole(into / "crosscheck.html", presented.page, remedy)
    return presented
