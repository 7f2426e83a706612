"""Verbs about this machine: ``doctor`` and ``clean``."""

from __future__ import annotations

import json
import os
from dataclasses import asdict

import click

from firstflight.cli.choice import locked_option, names_of
from firstflight.cli.services import Services, pass_services
from testbed.base.errors import EXIT_MISSING, EXIT_OK, EXIT_OUT_OF_TOLERANCE
from testbed.base.places import emptying_cache
from testbed.base.units import format_bytes
from testbed.client import CLIENTS
from testbed.kernel.build.pin import DEFAULT_VERSION
from testbed.setup.clean import find_leftovers, remove
from testbed.setup.doctor import MachineCheck, examine, healthy


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Write the checks as JSON.")
@click.option("--jobs", type=click.IntRange(1, 1024),
              help="How many trials at once to check for; default: one for each core.")  # fmt: skip
@click.option("--determinism", type=click.IntRange(min=2), metavar="N",
              help="Boot N times and show where two runs differ, if they do.")  # fmt: skip
@click.option("--client", metavar=names_of(CLIENTS), default="chromium", show_default=True,
              help="The client that --determinism boots with.")  # fmt: skip
@click.option("--kernel-version", default=DEFAULT_VERSION, show_default=True,
              help="The kernel that --determinism boots.")  # fmt: skip
@locked_option
@pass_services
def doctor(
    services: Services, /, as_json: bool, jobs: int | None, determinism: int | None, client: str,
    kernel_version: str,
) -> int:  # fmt: skip
    """Say whether this machine can run trials, and what is missing."""
    jobs = jobs or len(os.sched_getaffinity(0))
    checks = examine(jobs)
    parted: tuple[str, ...] = ()
    if determinism is not None and healthy(checks):
        parted = services.check_determinism(determinism, client, kernel_version, jobs)
    _show(checks, parted, determinism, as_json)
    if not healthy(checks):
        return EXIT_MISSING
    return EXIT_OUT_OF_TOLERANCE if parted else EXIT_OK


@click.command()
@click.option("--dry-run", is_flag=True, help="Say what would go, and remove nothing.")
@pass_services
def clean(services: Services, /, dry_run: bool) -> int:
    """Remove what was built or left behind outside the work tree; results stay."""
    with emptying_cache(services.cache()):
        leftovers = find_leftovers(services.cache())
        for leftover in leftovers:
            verb = "would remove" if dry_run else "removing"
            word = f"keeping ({leftover.kept})" if leftover.kept else verb
            click.echo(f"{word} {leftover.path} ({format_bytes(leftover.size_bytes)})")
        if not leftovers:
            click.echo("nothing to remove")
        if not dry_run:
            remove(leftovers)
    return EXIT_OK


def _show(
    checks: list[MachineCheck], parted: tuple[str, ...], determinism: int | None, as_json: bool
) -> None:
    if as_json:
        document = {"healthy": healthy(checks), "checks": [asdict(check) for check in checks],
                    "determinism": None if determinism is None else list(parted)}  # fmt: skip
        click.echo(json.dumps(document, indent=2))
        return
    for check in checks:
        state = "ok     " if check.ok else "MISSING" if check.needed else "warning"
        click.echo(f"{state}  {check.name}: {check.found}")
        if not check.ok and check.remedy:
            click.echo(f"         remedy: {check.remedy}")
    for difference in parted:
        click.echo(f"differs  {difference}")
    if determinism is not None and healthy(checks) and not parted:
        click.echo(f"ok       determinism: {determinism} boots are identical")
