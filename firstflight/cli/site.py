"""The verb that makes a static web site of results on several kernels: ``site``."""

from __future__ import annotations

from pathlib import Path

import click

from analysis.site.pages import INDEX, write_site
from testbed.base.errors import EXIT_OK

_folder = click.Path(path_type=Path)


@click.command()
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=_folder)
@click.option("-o", "output", type=_folder, metavar="OUT",
              help="The new or empty folder; default: the first DIR's name and -site, here."
              )  # fmt: skip
@click.option("--steps", "stated", metavar="FILE",
              type=click.Path(path_type=Path, dir_okay=False),
              help="The commits of the steps, as TOML; default: steps.toml in any DIR."
              )  # fmt: skip
def site(directories: tuple[Path, ...], output: Path | None, stated: Path | None) -> int:
    """Make a static web site of the results in DIR...: kernels by page loads and promises.

    DIR is a results folder of page loads or scenarios, or a run on several kernels.  The site has
    one figure over the releases, the matrix, and a page for each load and promise with its proof
    and a copy of its packets.  It needs no server, and loads nothing from elsewhere.
    """
    out = output or Path(f"{directories[0].resolve().name}-site")
    click.echo(f"{out / INDEX}: {write_site(directories, out, stated)}")
    return EXIT_OK
