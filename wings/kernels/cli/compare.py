"""Verdicts on several virtual kernels for ``compare``, and for the reports of a run on them.

It is what ``firstflight.cli.kernel_verdicts`` asks for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import click

from analysis.records.metric import Metric
from analysis.verdicts.compare.comparison import Comparison
from firstflight.cli.choice import join_options
from firstflight.cli.reports import read_width
from testbed.base.whole_file import write_whole
from wings.kernels.verdicts.document import describe_attribution
from wings.kernels.verdicts.printed import STYLES, STYLES_HELP, show_verdicts
from wings.kernels.verdicts.table import (
    FailOn,
    FailRule,
    attribute,
    attribute_lanes,
    attribution_of,
)
from wings.kernels.verdicts.terminal import render_markdown, render_text

DOCUMENT, MAIL = "kernels.json", "kernels.md"
add_options = join_options(
    click.option("--fail-on", type=click.Choice(get_args(FailOn)),
                 help="Of virtual kernels: attribute each cell, and exit with 1 if one is slower "
                      "(by --min-effect) or has any other packet; default of a run: slower."),
    click.option("--style", type=click.Choice(STYLES), help=f"Of virtual kernels. {STYLES_HELP}"),
)  # fmt: skip


def compare(base: Path, new: Path | None, metric: Metric, min_effect_pct: float | None, *,
            as_json: bool, junit: Path | None, markdown: Path | None, fail_on: FailOn | None,
            style: str | None) -> int:  # fmt: skip
    """Print and write what became of each cell of ``base``, and return the exit code.

    Raises:
        As ``attribute_lanes`` and ``show_verdicts``.
    """
    attribution = (
        attribute_lanes(base, metric) if new is None else attribute(base, new, metric=metric)
    )
    rule = FailRule(fail_on or "slower", min_effect_pct or 0.0)
    show_verdicts(attribution, rule, style or STYLES[0], as_json, junit, markdown)
    return attribution.exit_code(rule)


def write(
    folder: Path, comparisons: Sequence[Comparison], shown: Sequence[Comparison]
) -> tuple[Mapping[str, Any], str]:
    """Write the ``comparisons`` by kernel; return that document, and ``shown`` as text.

    Raises:
        StorageError: a file cannot be written.
    """
    rule, table = FailRule(), attribution_of(comparisons)
    document = describe_attribution(table, rule)
    remedy = f"make room or check the permissions of {folder}, then compare again"
    text = json.dumps(document, sort_keys=True, indent=1, allow_nan=False) + "\n"
    write_whole(folder / DOCUMENT, text, remedy)
    write_whole(folder / MAIL, render_markdown(table, rule), remedy)
    return document, render_text(attribution_of(shown), FailRule("none"), read_width())
