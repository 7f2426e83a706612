"""The verb that holds results against bounds of the user's own: ``budgets``."""

from __future__ import annotations

from pathlib import Path

import click

from analysis.formats.annotations import write_annotations
from analysis.formats.suites import Suite, write_junit
from analysis.records.results import read_results
from analysis.verdicts.budgets import judge_budgets, parse_budgets, render_markdown
from testbed.base.errors import EXIT_OK, EXIT_OUT_OF_TOLERANCE
from testbed.base.whole_file import write_whole

_file = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("results", metavar="RESULTS", type=click.Path(path_type=Path))
@click.argument("texts", metavar="BUDGET...", nargs=-1, required=True)
@click.option("--junit", type=_file, metavar="FILE", help="Write JUnit XML as well.")
@click.option("--markdown", type=_file, metavar="FILE",
              help="Write a comment for a pull request as well.")  # fmt: skip
@click.option("--annotate", type=_file, metavar="FILE",
              help="Print what fails as GitHub's annotations of FILE as well.")  # fmt: skip
def budgets(
    results: Path, texts: tuple[str, ...], junit: Path | None, markdown: Path | None,
    annotate: Path | None,
) -> int:  # fmt: skip
    """Hold the medians of each cell of RESULTS against bounds.

    BUDGET is a metric and a number, such as 'plt_ms <= 4000', of every cell; behind it, which cells
    it is of: 'fcp_ms <= 900 page=wsj,rtt_ms=200'. With >= the number is the least.

    Exit code: 0 all are kept, 1 one is not, or a cell is not proven.
    """
    cases = judge_budgets(read_results(results), parse_budgets(texts))
    for case in cases:
        click.echo(
            f"{'kept' if case.state == 'passed' else 'NOT KEPT'}  {case.name}  ({case.says})"
        )
    if annotate:
        click.echo(write_annotations(cases, annotate), nl=False, err=True)
    remedy = "make its folder, or choose another place"
    if junit:
        suite = Suite("firstflight budgets", cases, {"results": str(results)})
        write_whole(junit, write_junit(suite.name, "firstflight.budgets", [suite], timed=False),
                    remedy)  # fmt: skip
    if markdown:
        write_whole(markdown, render_markdown(cases), remedy)
    kept = all(case.state == "passed" for case in cases)
    return EXIT_OK if kept else EXIT_OUT_OF_TOLERANCE
