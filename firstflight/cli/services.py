"""Services of the verbs: kernels, pages, reports and folders, which tests replace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from firstflight.cli.reports import Reports
from testbed.base import places

if TYPE_CHECKING:
    from testbed.experiment.config import Catalogue
    from testbed.root.cache import Root
    from testbed.runner.launch import Prepare
    from testbed.runner.local import Conclude


@dataclass(frozen=True, slots=True)
class Services:
    """Services of the verbs.

    ``check_determinism`` takes a number of boots, a client, a kernel version and the number of
    jobs, and returns a description of each boot that differs from the first.  ``prepare_from`` is
    ``prepare`` with the pages of a folder, and roots by their names.  ``conclude`` judges trials,
    and ``digest_judge`` says by which code.
    """

    catalogue: Callable[[], Catalogue]
    prepare: Prepare
    prepare_from: Callable[[Path, Mapping[str, Root]], Prepare]
    check_determinism: Callable[[int, str, str, int], tuple[str, ...]]
    conclude: Conclude
    digest_judge: Callable[[], str]
    reports: Reports = field(default_factory=Reports)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    results: Path = places.RESULTS
    baselines: Path = places.ROOT / "analysis" / "baselines"
    cache: Callable[[], Path] = places.cache


pass_services = click.make_pass_decorator(Services)


def program_services() -> Services:
    """Return what the program itself uses; a verb that needs kernels or pages imports them."""
    return Services(_on_demand("read_catalogue"), _on_demand("prepare"), _on_demand("prepare_from"),
                 _on_demand("prepare_determinism"), _on_demand("conclude", "judge"),
                 _on_demand("digest_judge"))  # fmt: skip


def _on_demand(name: str, module: str = "prepare") -> Callable[..., Any]:
    """Return the function ``name`` of a module of `testbed.runner`, which takes long to import."""

    def call(*arguments: Any, **named: Any) -> Any:
        return getattr(import_module(f"testbed.runner.{module}"), name)(*arguments, **named)

    return call
