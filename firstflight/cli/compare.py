"""The verb that says whether page load times moved: ``compare``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from analysis.records.metric import Metric
from analysis.regression.compare.comparison import CompareOptions
from analysis.regression.compare.documents import describe_comparison, write_files
from analysis.regression.compare.folders import compare_results
from analysis.regression.compare.text import render_text
from firstflight.cli.metric import metric_option
from firstflight.cli.reports import read_width

_file = click.Path(path_type=Path, dir_okay=False)
_ALPHA = 0.05


@click.command()
@click.argument("base", metavar="BASE", type=click.Path(path_type=Path))
@click.argument("new", metavar="NEW", type=click.Path(path_type=Path))
@click.option("--across", multiple=True, metavar="NAME",
              help="What is under test and may differ: a part of the environment (kernel, code, "
                   "pages, package.nginx, all) or a knob; may be repeated, or a,b.")  # fmt: skip
@click.option("--alpha", type=float, default=_ALPHA, show_default=True, metavar="P",
              help="Host kernel: how often chance alone may be called different.")  # fmt: skip
@click.option("--min-effect", "min_effect_pct", type=float, metavar="PCT",
              help="Least change that matters, in %; default: 0.1 virtual, 1 host.")  # fmt: skip
@click.option("--allow-faster", is_flag=True, help="A faster cell is as good as the same.")
@metric_option
@click.option("--json", "as_json", is_flag=True, help="Write the comparison as JSON.")
@click.option("--junit", type=_file, metavar="FILE", help="Write JUnit XML as well.")
@click.option("--markdown", type=_file, metavar="FILE",
              help="Write a comment for a pull request as well.")  # fmt: skip
@click.option("--html", type=_file, metavar="FILE", help="Write a page as well.")
def compare(
    base: Path,
    new: Path,
    across: tuple[str, ...],
    alpha: float,
    min_effect_pct: float | None,
    allow_faster: bool,
    metric: Metric,
    as_json: bool,
    junit: Path | None,
    markdown: Path | None,
    html: Path | None,
) -> int:
    """Compare the results in NEW with those in BASE: same, different or inconclusive.

    Two versions of a kernel need --across kernel; virtual and real time need nothing.

    Exit code: 0 same, 1 different, 5 inconclusive, 2 not to be compared.
    """
    names = tuple(name.strip() for given in across for name in given.split(",") if name.strip())
    options = CompareOptions(names, alpha, min_effect_pct, allow_faster, metric)
    found = compare_results(base, new, options)
    write_files(found, junit, markdown, html)
    text = (
        json.dumps(describe_comparison(found), indent=2)
        if as_json
        else render_text(found, read_width())
    )
    click.echo(text.rstrip("\n"))
    return found.exit_code
