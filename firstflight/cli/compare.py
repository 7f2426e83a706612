"""The verb that says whether page load times moved, and by which kernel: ``compare``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from analysis.formats.annotations import write_annotations
from analysis.records.metric import Metric
from analysis.verdicts.compare.comparison import CompareOptions
from analysis.verdicts.compare.documents import cases_of, describe_comparison, write_files
from analysis.verdicts.compare.folders import compare_results
from analysis.verdicts.compare.sentences import render_text
from firstflight.cli.kernel_verdicts import find_kernel_verdicts
from firstflight.cli.metric import metric_option
from firstflight.cli.reports import read_width
from testbed.base import log
from testbed.base.errors import ConfigurationError
from testbed.results.seal import is_judged_here

_log = log.logger(__name__)
_file = click.Path(path_type=Path, dir_okay=False)
_ALPHA = 0.05
_VERDICTS = find_kernel_verdicts()


def _kernel_options(command: Any) -> Any:
    """Give ``command`` the options of verdicts on kernels, where there are any."""
    return _VERDICTS.add_options(command) if _VERDICTS else command


@click.command()
@click.argument("base", metavar="BASE", type=click.Path(path_type=Path))
@click.argument("new", metavar="[NEW]", required=False, type=click.Path(path_type=Path))
@click.option("--across", multiple=True, metavar="NAME",
              help="What may differ: pages, a knob, or all; repeatable, or a,b. Other parts of"
                   " the environment may always differ.")  # fmt: skip
@click.option("--alpha", type=float, default=_ALPHA, show_default=True, metavar="P",
              help="Probability of calling equal results different, in statistical "
                   "comparisons.")  # fmt: skip
@click.option("--min-effect", "min_effect_pct", type=float, metavar="PCT",
              help="Smallest change that matters, in %; default: 0.1 virtual, 1 host.")  # fmt: skip
@click.option("--allow-faster", is_flag=True, help="Count a faster cell as the same.")
@_kernel_options
@metric_option
@click.option("--json", "as_json", is_flag=True, help="Write the comparison as JSON.")
@click.option("--junit", type=_file, metavar="FILE", help="Write JUnit XML as well.")
@click.option("--markdown", type=_file, metavar="FILE",
              help="Write a comment for a pull request as well.")  # fmt: skip
@click.option("--html", type=_file, metavar="FILE", help="Write a page as well.")
@click.option("--annotate", type=_file, metavar="FILE",
              help="Print cells that differ as GitHub's annotations of FILE as well.")  # fmt: skip
def compare(
    base: Path, new: Path | None, across: tuple[str, ...], alpha: float,
    min_effect_pct: float | None, allow_faster: bool, metric: Metric, as_json: bool,
    junit: Path | None, markdown: Path | None, html: Path | None, annotate: Path | None,
    **of_kernels: Any,
) -> int:  # fmt: skip
    """Compare the results in NEW with those in BASE: same, different or inconclusive.

    Results of equal environments must be equal to the bit; others are compared statistically.

    Without NEW, BASE is a run on several virtual kernels: each cell gets a verdict on each of
    them, compared with the first.  --fail-on and --style do the same for two folders.

    Exit code: 0 same, 1 different, 5 inconclusive, 2 they cannot be compared.
    """
    names = tuple(name.strip() for option in across for name in option.split(",") if name.strip())
    options = CompareOptions(names, alpha, min_effect_pct, allow_faster, metric)
    if _VERDICTS and (new is None or any(each is not None for each in of_kernels.values())):
        _refuse_unused(options, html, annotate)
        return _VERDICTS.compare(base, new, metric, min_effect_pct, as_json=as_json, junit=junit,
                                 markdown=markdown, **of_kernels)  # fmt: skip
    if new is None:
        raise ConfigurationError(["name two results folders, BASE and NEW"])
    compared = compare_results(base, new, options)
    for folder in (base, new):
        if not is_judged_here(folder):
            _log.info("%s is recorded as verified; ./run.sh verify judges it", folder)
    write_files(compared, junit, markdown, html)
    if as_json:
        click.echo(json.dumps(describe_comparison(compared), indent=2))
    else:
        click.echo(render_text(compared, read_width()).rstrip("\n"))
    if annotate is not None:
        click.echo(write_annotations(cases_of(compared), annotate), nl=False, err=True)
    return compared.exit_code


def _refuse_unused(options: CompareOptions, html: Path | None, annotate: Path | None) -> None:
    """Refuse options without meaning where cells of virtual kernels are attributed.

    Raises:
        ConfigurationError: naming the options.
    """
    options.check()
    unused = {"--across": {*options.across} - {"kernel"}, "--alpha": options.alpha != _ALPHA,
              "--allow-faster": options.allow_faster, "--html": html is not None,
              "--annotate": annotate is not None}  # fmt: skip
    names = ", ".join(name for name, is_given in unused.items() if is_given)
    if names:
        raise ConfigurationError(
            [f"{names}: not of virtual kernels, whose cells are attributed: they differ in nothing "
             "but the kernel, and nothing is left to chance; leave it out, or name BASE and NEW "
             "without --fail-on and --style"]
        )  # fmt: skip
