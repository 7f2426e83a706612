"""Verb ``batch``: what runs on other machines call there."""

from __future__ import annotations

import sys

import click

from firstflight.cli.services import Services, pass_services
from testbed.base import places
from testbed.base.errors import EXIT_OK
from testbed.way.batch import serve_batch


@click.command()
@click.option("--jobs", type=click.IntRange(1, 1024), default=1, help="Trials at once.")
@pass_services
def batch(services: Services, /, jobs: int) -> int:
    """Perform the trials that standard input asks for, and write them to standard output.

    This is what `run --on` calls on each machine; it says how far it is on standard error.
    """
    with places.using_cache(services.cache()):
        serve_batch(services.prepare, sys.stdin.buffer, sys.stdout.buffer, jobs)
    return EXIT_OK
