"""Services of the verbs: kernels, pages, reports and folders, which tests replace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from firstflight.cli.reports import Reports
from testbed.base import places

if TYPE_CHECKING:
    from testbed.experiment.config import Catalogue
    from testbed.root.cache import Root
    from testbed.runner.launch import Prepare


@dataclass(frozen=True, slots=True)
class Services:
    """Services of the verbs.

    ``check_determinism`` takes a number of boots, a client, a kernel version and the number of
    jobs, and returns a description of each boot that differs from the first.  ``prepare_from`` is
    ``prepare`` with the pages of a folder, and roots by their names.
    """

    catalogue: Callable[[], Catalogue]
    prepare: Prepare
    prepare_from: Callable[[Path, Mapping[str, Root]], Prepare]
    check_determinism: Callable[[int, str, str, int], tuple[str, ...]]
    reports: Reports = field(default_factory=Reports)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    results: Path = places.RESULTS
    baselines: Path = places.ROOT / "analysis" / "baselines"
    cache: Callable[[], Path] = places.cache


pass_services = click.make_pass_decorator(Services)


def program_services() -> Services:
    """Return what the program itself uses; a verb that needs kernels or pages imports them."""
    return Services(_on_demand("read_catalogue"), _on_demand("prepare"), _on_demand("prepare_from"),
                 _on_demand("prepare_determinism"))  # fmt: skip


def _on_demand(name: str) -> Callable[..., Any]:
    """Return the function ``name`` of `testbed.runner.prepare`, which takes a third of a second."""

    def call(*arguments: Any, **named: Any) -> Any:
        from testbed.runner import prepare

        return getattr(prepare, name)(*arguments, **named)

    return call
