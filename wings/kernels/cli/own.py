"""Verbs of kernels of the user's own: ``kernel add``, ``list``, ``show``, ``build``, ``remove``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from analysis.tables.columns import Column
from analysis.words import MISSING
from firstflight.cli.listing import print_columns
from firstflight.cli.services import Services, pass_services
from testbed.base import log, places
from testbed.base.errors import EXIT_OK, ConfigurationError
from testbed.base.units import format_bytes
from testbed.kernel import ensure_build
from testbed.kernel.build.cache import find_kernel
from testbed.kernel.build.pin import pins
from testbed.model import DEFAULT_ROOT
from testbed.root.cache import ensure_named
from wings.kernels.cli.source import KernelSource, keep_kernels, source_options
from wings.kernels.own.build import find_own, remove_own
from wings.kernels.own.definition import OwnKernel, own_kernels, read_kernel, read_own, what_is_lost

_log = log.logger(__name__)
_as_json = click.option("--json", "as_json", is_flag=True, help="Write JSON.")
_names = click.argument("names", metavar="NAME...", nargs=-1, required=True)


@click.command()
@click.argument("name")
@click.argument("more", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--patch", "patches", type=click.Path(path_type=Path), metavar="FILE", multiple=True,
    help="A patch or a mailbox of patches, as git am takes it; further ones may follow it."
)  # fmt: skip
@source_options
@click.option("--replace", "replaced", is_flag=True, help="Replace the kernel if it is there.")
@pass_services
def add(services: Services, /, name: str, more: tuple[Path, ...], patches: tuple[Path, ...],
        replaced: bool, **source: Any) -> int:  # fmt: skip
    """Make a kernel of your own, under NAME: by patches, a git tree or a configuration.

    It is built and booted once, and not kept if that fails.  Then --kernel-version NAME runs it,
    and --set 'kernel.versions=["7.3", "NAME"]' compares it with its base.
    """
    kernels = KernelSource(**source).define(name, (*patches, *more))
    kept = keep_kernels(services, kernels, replaced=replaced)
    for kernel, (folder, built) in zip(kernels, kept, strict=True):
        click.echo(f"{kernel.name}: {_describe(kernel)}; SHA-256 "
                   f"{built.identity.binary_sha256[:12]}; kept in {folder}")  # fmt: skip
    click.echo(f"Run it: ./run.sh run CONFIG --kernel-version {kernels[-1].name}")
    lanes = json.dumps([kernels[0].base, *(kernel.name for kernel in kernels)])
    click.echo(f"Compare it: ./run.sh run CONFIG --set 'kernel.versions={lanes}'")
    return EXIT_OK


@click.command("list")
@_as_json
@pass_services
def list_command(services: Services, /, as_json: bool) -> int:
    """List every kernel: the pinned ones, and yours."""
    rows, problems = [], []
    for name in (*pins(), *own_kernels(places.data())):
        try:
            rows.append(_facts(name, services.cache()))
        except ConfigurationError as error:
            problems += error.problems
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        print_columns([
            Column("Kernel", [row["name"] for row in rows], left=True),
            Column("Base", [row["base"] or MISSING for row in rows], left=True),
            Column("Source", [row["source"] for row in rows], left=True, least=20),
            Column("Patches", [str(len(row["patches"])) for row in rows]),
            Column("Built", [format_bytes(row["bytes"]) if row["bytes"] else "not yet"
                             for row in rows]),
        ])  # fmt: skip
    if problems:
        raise ConfigurationError(problems)
    return EXIT_OK


@click.command()
@click.argument("name")
@_as_json
@pass_services
def show(services: Services, /, name: str, as_json: bool) -> int:
    """Show what a kernel is made of: source, patches, options, build."""
    facts = _facts(name, services.cache())
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return EXIT_OK
    click.echo(f"{name}: {facts['source']}")
    if facts["base"]:
        click.echo(f"base {facts['base']}, whose configuration and patches come first")
    for left_out in facts["omitted"]:
        click.echo(f"without {left_out}, which does not fit: {what_is_lost(left_out)}")
    for patch in facts["patches"]:
        click.echo(f"patch {patch['file']}: {', '.join(patch['touches'])}")
    for option, value in facts["options"].items():
        click.echo(f"option {option}={value}")
    click.echo(f"built: {facts['binary'] or 'not yet; a run builds it'}")
    return EXIT_OK


@click.command()
@_names
@pass_services
def build(services: Services, /, names: tuple[str, ...]) -> int:
    """Build kernels that are not in the cache, such as after the toolchain was renewed."""
    for name in names:
        read_kernel(name, places.data())  # all names are right before the first is built
    with places.using_cache(services.cache()):
        usr = ensure_named(DEFAULT_ROOT, services.cache(), _log.info).usr
        for name in names:
            click.echo(ensure_build(name, services.cache(), usr, _log.info).binary)
    return EXIT_OK


@click.command()
@_names
@pass_services
def remove(services: Services, /, names: tuple[str, ...]) -> int:
    """Remove kernels of yours, and what was built of them.

    ./run.sh clean removes the object trees, which all kernels of a base share.
    """
    pinned = [name for name in names if name in pins()]
    if pinned:
        raise ConfigurationError(
            [f"{name} is pinned in this tree, not yours to remove; ./run.sh clean empties the cache"
             for name in pinned]
        )  # fmt: skip
    unknown = [name for name in names if name not in own_kernels(places.data())]
    for name in unknown:
        read_own(name, places.data())
    for name in dict.fromkeys(names):
        remove_own(name, places.data(), services.cache())
        click.echo(f"{name}: removed")
    return EXIT_OK


def _describe(own: OwnKernel) -> str:
    parts = [own.git.describe() if own.git else own.pin.version]
    parts += [f"{len(own.patches)} patches" if len(own.patches) != 1 else "1 patch"]
    parts += [f"{name}={value}" for name, value in own.options]
    return ", ".join(parts)


def _facts(name: str, cache: Path) -> dict[str, Any]:
    """Return what is listed of a kernel; of a pinned one the patches are those of the pin."""
    own, pinned = read_kernel(name, places.data()), name in pins()
    build = find_kernel(own.pin, cache) if pinned else find_own(own, cache)
    patches = own.all_patches if pinned else own.patches
    return {"name": name, "base": None if pinned else own.base, "source": own.source,
            "patches": [{"file": patch.name, "touches": list(patch.touched)} for patch in patches],
            "options": dict(own.options), "omitted": list(own.omitted),
            "binary": str(build.binary) if build else None,
            "bytes": build.binary.stat().st_size if build else 0,
            "sha256": build.identity.binary_sha256 if build else None}  # fmt: skip
