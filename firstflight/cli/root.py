"""Verbs of roots, the user lands of guests, and of packs of them for other machines."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import click

from analysis.tables.columns import Column
from analysis.words import MISSING
from firstflight.cli.choice import locked_option
from firstflight.cli.listing import print_columns
from firstflight.cli.services import Services, pass_services
from testbed.base import log, places
from testbed.base.debian import locked_only
from testbed.base.errors import EXIT_OK
from testbed.base.heartbeat import repeating
from testbed.base.units import format_bytes
from testbed.base.whole_file import write_whole
from testbed.client import CLIENTS
from testbed.kernel.build.pin import DEFAULT_VERSION
from testbed.model import DEFAULT_ROOT
from testbed.root.cache import ensure_root, find_root
from testbed.root.lock import Lock, describe_changes, format_lock, join_parts, read_lock
from testbed.root.release import read_index
from testbed.root.spec import RootSpec, read_spec, root_names
from testbed.setup.parts import find_starter, gather_parts
from testbed.setup.programs import package_names, programs_of
from testbed.setup.root_import import describe, import_pack
from testbed.setup.root_pack import write_pack

_log = log.logger(__name__)
_file = click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
_name = click.argument("name", default=DEFAULT_ROOT)


@click.group()
def root() -> None:
    """Roots: the user lands that guests run, each of Debian packages that a lock names."""


@root.command("list")
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@pass_services
def list_roots(services: Services, /, as_json: bool) -> int:
    """List the roots, and which are assembled in the cache."""
    specs = [read_spec(name) for name in root_names()]
    locks = [read_lock(spec.lock_file) for spec in specs]
    digests = [getattr(find_root(spec, services.cache()), "digest", None) for spec in specs]
    if as_json:
        rows = [
            {"root": spec.name, "title": spec.title, "taken": lock.taken,
             "packages": len(lock.all_packages), "bytes": lock.size, "digest": digest}
            for spec, lock, digest in zip(specs, locks, digests, strict=True)
        ]  # fmt: skip
        click.echo(json.dumps(rows, indent=2))
        return EXIT_OK
    print_columns([
        Column("root", [spec.name for spec in specs], left=True),
        Column("lock of", [lock.taken for lock in locks], left=True),
        Column("packages", [str(len(lock.all_packages)) for lock in locks]),
        Column("to download", [format_bytes(lock.size) for lock in locks]),
        Column("assembled", [(digest or MISSING)[:16] for digest in digests], left=True),
    ])  # fmt: skip
    return EXIT_OK


@root.command()
@_name
@locked_option
@pass_services
def assemble(services: Services, /, name: str) -> int:
    """Assemble a root in the cache, and print its folder and the digest of its files.

    Each package is verified by the lock's SHA-256; no privilege, apt or dpkg is needed.  If no
    source has a locked version any more, the newest takes its place and is named, unless --locked.
    """
    spec = read_spec(name)
    with places.using_cache(services.cache()), repeating(_log.info) as progress:
        assembled = ensure_root(spec, services.cache(), progress)
    click.echo(f"{assembled.usr}\n{assembled.digest}")
    return EXIT_OK


@root.command()
@_name
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@pass_services
def update(services: Services, /, name: str, dry_run: bool) -> int:
    """Renew a root's lock: the newest packages that its suites offer, and what they need.

    The root is assembled, and its digest written into the lock.
    """
    spec = read_spec(name)
    old = read_lock(spec.lock_file) if spec.lock_file.exists() else None
    taken = services.now().astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    new = _resolve(spec, old, taken)
    changes = describe_changes(old, new)
    click.echo("\n".join(changes) or f"{name}: nothing newer is offered")
    if dry_run:
        return EXIT_OK
    with places.using_cache(services.cache()), repeating(_log.info) as progress, locked_only():
        new = replace(new, digest=ensure_root(spec, services.cache(), progress, new).digest)
    if new != old:
        write_whole(spec.lock_file, format_lock(new), "make it writable")
        click.echo(
            f"{spec.lock_file} is written, with the digest {new.digest}; "
            "make results REASON='why' shows what it moves"
        )
    return EXIT_OK


def _resolve(spec: RootSpec, old: Lock | None, taken: str) -> Lock:
    """Return a root's lock of now, without a digest; a part that is as before was taken then."""
    programs = programs_of(tuple(CLIENTS)) if spec.clients else ()
    parts: dict[str, Lock] = {}
    for name, part in spec.parts.items():
        own = () if name else [each for program in programs for each in package_names(program)]
        index = read_index(part.suites)
        packages = index.closure([*part.packages, *own], frozenset(part.without))
        before = old.parts.get(name) if old else None
        parts[name] = before if before and before.packages == packages else Lock(taken, packages)
    return join_parts(parts)


@root.command()
@_file
@_name
@click.option("--replace", is_flag=True, help="Replace the file if it is there.")
@pass_services
def export(services: Services, /, file: Path, name: str, replace: bool) -> int:
    """Write all that a run needs to FILE, for machines without a network.

    That is the root, the default virtual kernel, the C programs and the Python packages; what is
    missing is made first.  Compression takes some minutes.
    """
    cache = services.cache()
    with places.using_cache(cache), repeating(_log.info) as progress, locked_only():
        parts = gather_parts((name,), (DEFAULT_VERSION,), cache, progress)
        packages = find_starter(cache, progress)
        checksum = write_pack(file, parts, progress, packages=packages, replace=replace)
    click.echo(f"{file}: {', '.join(each.title for each in parts)}, "
               f"{format_bytes(file.stat().st_size)}")  # fmt: skip
    click.echo(f"SHA-256 {checksum}")
    click.echo("On another machine, in a tree of this version: "
               f"./run.sh import {shlex.quote(file.name)} && ./run.sh")  # fmt: skip
    return EXIT_OK


@root.command("import")
@_file
@pass_services
def import_(services: Services, /, file: Path) -> int:
    """Put what is packed in FILE into the cache, so that a run needs no network.

    FILE is what `root export` or `pack --with-root` wrote in a tree of this version; all of it is
    checked first.  Import only from whom you trust: what is in it runs with your rights.
    """
    with places.using_cache(services.cache()), repeating(_log.info) as progress:
        done = import_pack(file, services.cache(), progress)
    click.echo(describe(done))
    return EXIT_OK
