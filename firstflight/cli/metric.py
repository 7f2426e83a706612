"""The option ``--metric``: what loads are judged by, beside the page load time."""

from __future__ import annotations

from typing import Any

import click

from analysis.records.kind import find_metric, records_of
from analysis.records.metric import PLT
from testbed.kinds import KINDS


def _offered() -> str:
    """Return the metrics of the kinds that are judged by one of several, in words."""
    kinds = [kind for kind in map(records_of, KINDS) if kind.offered]
    named = (", ".join(m.name for m in kind.metrics if m != PLT) for kind in kinds)
    return "; ".join(kind.offered.format(names) for kind, names in zip(kinds, named, strict=True))


def metric_option(command: Any) -> Any:
    """Give ``command`` the option; what it gets is a Metric.

    A name that is none ends with a ConfigurationError before anything is done.
    """
    return click.option(
        "--metric", default=PLT.name, show_default=True, metavar="NAME",
        callback=lambda _context, _option, name: find_metric(name),
        help=f"What loads are judged by: {_offered()}.",
    )(command)  # fmt: skip
