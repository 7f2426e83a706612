"""Verb ``merge``: the parts of a plan, run on several machines, as one results folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from analysis.records.metric import Metric
from firstflight.cli.ended import write_reports
from firstflight.cli.metric import metric_option
from firstflight.cli.services import Services, pass_services
from testbed.base import log
from testbed.base.errors import EXIT_INCOMPLETE, EXIT_OK
from testbed.base.units import format_count
from testbed.experiment.label import label, varying
from testbed.results.agreement import DisagreementError
from testbed.results.folder import refuse_explicit
from testbed.results.lazy import read_lazy_records
from testbed.results.manifest import load_manifest
from testbed.results.merge import Merge, merge_folders
from testbed.results.seal import write_seal

_log = log.logger(__name__)
_MOST_NAMED = 20


@click.command()
@click.argument("directories", metavar="DIR...", nargs=-1, required=True,
                type=click.Path(path_type=Path))  # fmt: skip
@click.option("-o", "output", required=True, type=click.Path(path_type=Path), metavar="OUT",
              help="The new results folder.")  # fmt: skip
@metric_option
@click.option("--json", "as_json", is_flag=True, help="Write the result as JSON.")
@pass_services
def merge(
    services: Services, /, directories: tuple[Path, ...], output: Path, metric: Metric,
    as_json: bool,
) -> int:  # fmt: skip
    """Put the results in DIR... together in OUT, as one machine would have written them.

    They are parts of one plan (run --shard) or interrupted runs of it, in one environment.  A
    trial in several of them must be equal to the bit.  Each record is judged again from its trial's
    captures and observation, as by `verify`.  Missing trials are listed, and `run --resume OUT`
    runs them.
    """
    refuse_explicit(services.results, output)
    merges = merge_folders(directories, output, services.now(), partial(_judge, services))
    compared = write_reports(services, output, metric)
    if as_json:
        click.echo(json.dumps([_describe(each) for each in merges], indent=2))
    else:
        text = compared.text if compared else services.reports.render(output, metric)
        click.echo(text.rstrip("\n"))
    for each in merges:
        _say(each, directories)
    if any(each.missing for each in merges):
        _log.info("run what is missing with --resume %s", output)
        return EXIT_INCOMPLETE
    return EXIT_OK


def _judge(services: Services, folder: Path) -> None:
    """Judge what was put together: whoever measured it need not be trusted.

    Raises:
        DisagreementError: a record is not what its evidence says.
    """
    from testbed.runner.verification import verify

    found = verify(folder, services.conclude)
    if found.problems:
        more = len(found.problems) - _MOST_NAMED
        raise DisagreementError(
            "\n".join([*found.problems[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])])
            + "\nmerge without the folder that has it, and run its part again"
        )
    for why, trials in found.unjudged.items():
        count = format_count(len(trials), "record")
        _log.warning("%s only recorded as verified: %s", count, why)
    write_seal(folder, read_lazy_records(folder), found.judged)


def _say(merged: Merge, directories: Sequence[Path]) -> None:
    """Log what a merge came to, and each trial that is missing."""
    name = f"{merged.name}: " if merged.name else ""
    parts = [f"{name}{format_count(len(directories), 'folder')} put together in {merged.folder}"]
    if merged.overlaps:
        count = format_count(merged.overlaps, "trial")
        parts.append(f"{count} in more than one of them, equal to the bit")
    _log.info("%s", "; ".join(parts))
    names = varying(load_manifest(merged.folder).experiment.conditions)
    for trial in merged.missing[:_MOST_NAMED]:
        _log.error("%snot run: %s %s seed=%d", name, trial.id, label(trial, names), trial.seed)
    more = len(merged.missing) - _MOST_NAMED
    if more > 0:
        _log.error("%snot run: %s more", name, more)


def _describe(merged: Merge) -> dict[str, object]:
    return {"results": str(merged.folder), "lane": merged.name, "overlaps": merged.overlaps,
            "missing": [trial.id for trial in merged.missing]}  # fmt: skip
