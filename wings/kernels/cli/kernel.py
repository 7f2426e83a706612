"""The verb ``kernel``: kernels of the user's own, and built ones from machine to machine."""

from __future__ import annotations

from pathlib import Path

import click

from firstflight.cli.choice import locked_option
from firstflight.cli.services import Services, pass_services
from testbed.base import log, places
from testbed.base.errors import EXIT_OK
from testbed.base.units import format_bytes
from testbed.kernel import ensure_build
from testbed.kernel.build.cache import KernelIdentity
from testbed.kernel.build.native import ensure_native
from testbed.kernel.build.pin import DEFAULT_VERSION, pins
from testbed.model import DEFAULT_ROOT
from testbed.root.cache import ensure_named
from wings.kernels.cli.bisect import bisect_command, bisect_step
from wings.kernels.cli.own import add, build, list_command, remove, show
from wings.kernels.cli.selftests import selftests
from wings.kernels.cli.try_change import try_command
from wings.kernels.cli.watch import watch_command
from wings.kernels.own.definition import read_own
from wings.kernels.transfer import KernelImport, export_kernel, import_kernel

_log = log.logger(__name__)
_file = click.argument("file", metavar="FILE", type=click.Path(path_type=Path))


@click.group()
def kernel() -> None:
    """Kernels: your own by patch or git tree, and built ones for other machines."""


for command in (add, try_command, bisect_command, bisect_step, selftests, watch_command,
                list_command, show, build, remove):  # fmt: skip
    kernel.add_command(command)


@kernel.command("export")
@_file
@click.option("--kernel-version", "version", default=DEFAULT_VERSION, show_default=True,
              metavar="V", help="Which kernel: a pinned one, or one of yours.")  # fmt: skip
@locked_option
@click.option("--replace", is_flag=True, help="Replace the file if it is there.")
@pass_services
def export_command(services: Services, /, file: Path, version: str, replace: bool) -> int:
    """Write a built kernel to FILE, so that another machine need not compile it.

    A kernel that is not built yet is built first.  FILE also has the C programs of this tree, and
    the patches and settings of a kernel of yours, but no git tree.
    """
    own = None if version in pins() else read_own(version, places.data())
    # Only one of the user's own is booted when it is built.
    usr = Path() if own is None else ensure_named(DEFAULT_ROOT, services.cache(), _log.info).usr
    build = ensure_build(version, services.cache(), usr, _log.info)
    native = ensure_native(services.cache(), _log.info)
    checksum = export_kernel(build, native, file, _log.info, replace=replace, own=own)
    click.echo(f"{file}: {_describe(build.identity)}, {format_bytes(file.stat().st_size)}")
    click.echo(f"SHA-256 {checksum}")
    click.echo(f"On another machine, in a tree of this version: ./run.sh kernel import {file.name}")
    return EXIT_OK


@kernel.command("import")
@_file
@pass_services
def import_command(services: Services, /, file: Path) -> int:
    """Put the kernel in FILE into the cache, so that nothing has to be compiled here.

    FILE is what `kernel export` wrote in a tree of the same kernel.  Import only from whom you
    trust: what is in it runs with your rights.
    """
    _report(import_kernel(file, services.cache(), places.data(), _log.info))
    return EXIT_OK


def _report(done: KernelImport) -> None:
    state = "imported to" if done.added else "is already there:"
    click.echo(f"{_describe(done.build.identity)} {state} {done.build.binary.parent}")
    if done.foreign:
        click.echo(f"The C programs were left out, because this tree has others: "
                   f"{', '.join(done.foreign)}. ./run.sh compiles them.")  # fmt: skip


def _describe(identity: KernelIdentity) -> str:
    return (f"kernel {identity.version} ({identity.package} {identity.package_version}, "
            f"{identity.compiler}, SHA-256 {identity.binary_sha256[:12]})")  # fmt: skip
