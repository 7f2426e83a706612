"""The verb that says whether page load times moved, and by which kernel: ``compare``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import click

from analysis.records.metric import Metric
from analysis.verdicts.compare.comparison import CompareOptions
from analysis.verdicts.compare.documents import describe_comparison, write_files
from analysis.verdicts.compare.folders import compare_results
from analysis.verdicts.compare.sentences import render_text
from analysis.verdicts.kernels.table import FailOn, FailRule, attribute, attribute_lanes
from firstflight.cli.metric import metric_option
from firstflight.cli.reports import read_width
from firstflight.cli.verdicts import STYLES, STYLES_HELP, show_verdicts
from testbed.base.errors import ConfigurationError

_file = click.Path(path_type=Path, dir_okay=False)
_ALPHA = 0.05


@click.command()
@click.argument("base", metavar="BASE", type=click.Path(path_type=Path))
@click.argument("new", metavar="[NEW]", required=False, type=click.Path(path_type=Path))
@click.option("--across", multiple=True, metavar="NAME",
              help="What is under test and may differ: pages, all, or a knob; may be repeated, or "
                   "a,b. Other parts of the environment need no naming.")  # fmt: skip
@click.option("--alpha", type=float, default=_ALPHA, show_default=True, metavar="P",
              help="How often equal results may be called different, where draws or real time "
                   "are compared.")  # fmt: skip
@click.option("--min-effect", "min_effect_pct", type=float, metavar="PCT",
              help="Least change that matters, in %; default: 0.1 virtual, 1 host.")  # fmt: skip
@click.option("--allow-faster", is_flag=True, help="A faster cell is as good as the same.")
@click.option("--fail-on", type=click.Choice(get_args(FailOn)),
              help="Of virtual kernels: attribute each cell, and exit with 1 if one is slower (by "
                   "--min-effect) or has any other packet; default of a run: slower.")  # fmt: skip
@click.option("--style", type=click.Choice(STYLES),
              help=f"Of virtual kernels. {STYLES_HELP}")  # fmt: skip
@metric_option
@click.option("--json", "as_json", is_flag=True, help="Write the comparison as JSON.")
@click.option("--junit", type=_file, metavar="FILE", help="Write JUnit XML as well.")
@click.option("--markdown", type=_file, metavar="FILE",
              help="Write a comment for a pull request as well.")  # fmt: skip
@click.option("--html", type=_file, metavar="FILE", help="Write a page as well.")
def compare(
    base: Path, new: Path | None, across: tuple[str, ...], alpha: float,
    min_effect_pct: float | None, allow_faster: bool, fail_on: FailOn | None, style: str | None,
    metric: Metric, as_json: bool, junit: Path | None, markdown: Path | None, html: Path | None,
) -> int:  # fmt: skip
    """Compare the results in NEW with those in BASE: same, different or inconclusive.

    Equal environments are compared to the bit, others by the spread of their draws (seeds).

    Without NEW, BASE is a run on several virtual kernels: what each cell came to on each of them,
    beside the first.  So it is of two folders with --fail-on or --style.

    Exit code: 0 same, 1 different, 5 inconclusive, 2 not to be compared.
    """
    names = tuple(name.strip() for option in across for name in option.split(",") if name.strip())
    options = CompareOptions(names, alpha, min_effect_pct, allow_faster, metric)
    if new is None or fail_on is not None or style is not None:
        _refuse_unused(options, html)
        attribution = (
            attribute_lanes(base, metric) if new is None else attribute(base, new, metric=metric)
        )
        rule = FailRule(fail_on or "slower", min_effect_pct or 0.0)
        show_verdicts(attribution, rule, style or STYLES[0], as_json, junit, markdown)
        return attribution.exit_code(rule)
    compared = compare_results(base, new, options)
    write_files(compared, junit, markdown, html)
    text = (
        json.dumps(describe_comparison(compared), indent=2)
        if as_json
        else render_text(compared, read_width())
    )
    click.echo(text.rstrip("\n"))
    return compared.exit_code


def _refuse_unused(options: CompareOptions, html: Path | None) -> None:
    """Refuse options without meaning where cells of virtual kernels are attributed.

    Raises:
        ConfigurationError: naming the options.
    """
    options.check()
    unused = {
        "--across": {*options.across} - {"kernel"},
        "--alpha": options.alpha != _ALPHA,
        "--allow-faster": options.allow_faster,
        "--html": html is not None,
    }
    names = ", ".join(name for name, is_given in unused.items() if is_given)
    if names:
        raise ConfigurationError(
            [f"{names}: not of virtual kernels, whose cells are attributed: they differ in nothing "
             "but the kernel, and nothing is left to chance; leave it out, or name BASE and NEW "
             "without --fail-on and --style"]
        )  # fmt: skip
