"""The option ``--metric``: what loads are judged by, beside the page load time."""

from __future__ import annotations

from typing import Any

import click

from analysis.records.metric import MILESTONES, PLT, SERVED, Metric, find_metric

_NAMES = ", ".join(metric.name for metric in MILESTONES)
_OF_SERVERS = ", ".join(metric.name for metric in SERVED)


def _read_metric(_context: click.Context, _option: click.Parameter, name: str) -> Metric:
    return find_metric(name)


def metric_option(command: Any) -> Any:
    """Give ``command`` the option; what it gets is a Metric.

    A name that is none ends with a ConfigurationError before anything is done.
    """
    return click.option(
        "--metric", default=PLT.name, show_default=True, metavar="NAME", callback=_read_metric,
        help=f"What loads are judged by: {PLT.name}, or, of a browser's, {_NAMES}; of loads on a "
             f"server {_OF_SERVERS}.",
    )(command)  # fmt: skip
