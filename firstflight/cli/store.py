"""Verbs of the store of results: ``list`` what is in it, ``verify`` it, and ``prune`` it."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from itertools import groupby

import click

from firstflight.cli.services import Services, pass_services
from testbed.base import log
from testbed.base.errors import EXIT_OK, EXIT_OUT_OF_TOLERANCE, ConfigurationError
from testbed.base.units import format_bytes, format_count
from testbed.results.store import VARIABLE, StoredEntry, TrialStore, open_store

_log = log.logger(__name__)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_AGE = re.compile(r"(\d+)\s*d(?:ays?)?")

_environment = click.option(
    "--environment", metavar="ID", default="", help="Only results of this environment."
)


@click.group()
def store() -> None:
    """Manage the store of results, from which runs take what was measured before.

    FIRSTFLIGHT_STORE names it: a folder, s3://BUCKET/FOLDER or ssh://HOST/FOLDER; `none` switches
    it off.  The default is a folder in the cache.
    """


@store.command("list")
@_environment
@click.option("--json", "as_json", is_flag=True, help="Write the list as JSON.")
@pass_services
def list_(services: Services, /, environment: str, as_json: bool) -> int:
    """Show how much the store has of each environment."""
    opened = _open(services)
    by_environment = groupby(opened.list_kept(environment), key=lambda each: each.environment)
    rows = [
        (name, len(kept), sum(each.size for each in kept), *_span(kept))
        for name, kept in ((name, list(several)) for name, several in by_environment)
    ]
    if as_json:
        names = ("environment", "trials", "bytes", "oldest", "newest")
        click.echo(json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=2))
        return EXIT_OK
    for name, count, size, oldest, newest in rows:
        age = f"{oldest} to {newest}" if oldest else ""
        click.echo(f"{name}  {format_count(count, 'trial'):>14}  {format_bytes(size):>9}  {age}")
    total = format_bytes(sum(row[2] for row in rows))
    click.echo(f"{format_count(len(rows), 'environment')}, {total}, in {opened.address}")
    return EXIT_OK


@store.command()
@_environment
@click.option("--remove", is_flag=True, help="Remove what is damaged.")
@pass_services
def verify(services: Services, /, environment: str, remove: bool) -> int:
    """Read every entry, and list those that are damaged or do not match their names."""
    opened = _open(services)
    count = damaged = 0
    for kept in opened.list_kept(environment):
        count += 1
        if opened.read(kept.trial_id, kept.environment) is None:
            damaged += 1
            if remove:
                opened.remove(kept)
    click.echo(f"{format_count(count, 'entry', 'entries')} read, {damaged} damaged")
    if damaged:
        said = "removed" if remove else "remove them with ./run.sh store verify --remove"
        _log.error("%d damaged: %s", damaged, said)
    return EXIT_OUT_OF_TOLERANCE if damaged and not remove else EXIT_OK


@store.command()
@_environment
@click.option("--older-than", metavar="DAYS", help="Results that are older than this, such as 30d.")
@click.option("--most", metavar="SIZE", help="The oldest results, until SIZE is left, such as 10G.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@pass_services
def prune(
    services: Services, /, environment: str, older_than: str | None, most: str | None, dry_run: bool
) -> int:
    """Remove results from the store: of one environment, old ones, or the oldest of too many."""
    before, size = _parse_limits(services.now(), older_than, most)
    if not environment and before is None and size is None:
        raise ConfigurationError(["say what to remove: --environment, --older-than or --most"])
    opened = _open(services)
    everything = list(opened.list_kept(environment))
    chosen = _choose(everything, before, size)
    for kept in chosen:
        if not dry_run:
            opened.remove(kept)
    freed = format_bytes(sum(kept.size for kept in chosen))
    verb = "would be removed" if dry_run else "removed"
    click.echo(
        f"{len(chosen)} of {format_count(len(everything), 'entry', 'entries')} {verb}, {freed}"
    )
    return EXIT_OK


def _open(services: Services) -> TrialStore:
    opened = open_store(services.cache())
    if opened is None:
        raise ConfigurationError([f"{VARIABLE} says that there is no store; name one, or unset it"])
    return opened


def _choose(
    kept: list[StoredEntry], before: datetime | None, size: int | None
) -> list[StoredEntry]:
    """Return what is to go; with no limit all of it."""
    if before is None and size is None:
        return kept
    oldest_first = sorted(kept, key=lambda one: (one.written is not None, one.written, one.path))
    excess = sum(each.size for each in kept) - size if size is not None else 0
    chosen = []
    for each in oldest_first:
        old = before is not None and each.written is not None and each.written < before
        if old or excess > 0:
            chosen.append(each)
            excess -= each.size
    return chosen


def _parse_limits(
    now: datetime, older_than: str | None, most: str | None
) -> tuple[datetime | None, int | None]:
    problems = []
    age = _AGE.fullmatch(older_than.strip()) if older_than is not None else None
    if older_than is not None and age is None:
        problems.append(f"--older-than {older_than}: write it in days, such as 30d")
    size = _SIZE.fullmatch(most.strip()) if most is not None else None
    if most is not None and size is None:
        problems.append(f"--most {most}: write it as a size, such as 500M or 10G")
    if problems:
        raise ConfigurationError(problems)
    before = now - timedelta(days=int(age[1])) if age else None
    return before, int(float(size[1]) * _UNITS[size[2].upper()]) if size else None


def _span(kept: list[StoredEntry]) -> tuple[str | None, str | None]:
    """Return the days of the oldest and the newest entry."""
    times = sorted(each.written for each in kept if each.written is not None)
    return (f"{times[0]:%Y-%m-%d}", f"{times[-1]:%Y-%m-%d}") if times else (None, None)
