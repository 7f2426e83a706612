"""Source of a kernel of the user's own, as the command line names it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from firstflight.cli.choice import join_options
from firstflight.cli.services import Services
from testbed.base import log, places
from testbed.base.errors import ConfigurationError
from testbed.kernel.build.cache import KernelBuild
from testbed.kernel.build.patches import MOST_FUZZ
from testbed.model import DEFAULT_ROOT
from testbed.root.cache import ensure_named
from wings.kernels.own.definition import OwnKernel, define, own_kernels, read_kernel, write_own
from wings.kernels.own.versions import ensure_own_build

_log = log.logger(__name__)
_path = click.Path(path_type=Path)
source_options = join_options(
    click.option("--git", type=_path, metavar="DIR",
                 help="The source: a git tree, by default with its uncommitted changes."),
    click.option("--rev", "revision", metavar="REV", help="The revision of the git tree."),
    click.option("--base", metavar="KERNEL",
                 help="Kernel to start from, pinned or one of yours; default: 7.3, for a git "
                      "tree the nearest pinned one whose patches fit."),
    click.option("--config", "fragments", type=_path, metavar="FRAGMENT", multiple=True,
                 help="Change its configuration by a file, an option such as CONFIG_NAME=y, or"
                      " a name: congestion-control, leaks, queues, transports.  Repeatable."),
    click.option("--reverse", is_flag=True, help="Reverse the patches, the last one first."),
    click.option("--fuzz", type=click.IntRange(0, MOST_FUZZ), default=0, metavar="N",
                 help="Lines of context that may differ at the ends of a hunk; default: none."),
    click.option("--series", is_flag=True,
                 help="One kernel for each patch with those before it: NAME-1, NAME-2 and so on."),
    click.option("--each", is_flag=True,
                 help="One kernel for each FILE, without the others: NAME-FILE."),
)  # fmt: skip
"""The options that make a KernelSource."""


@dataclass(frozen=True, slots=True)
class KernelSource:
    """What the options of ``source_options`` say."""

    git: Path | None
    revision: str | None
    base: str | None
    fragments: tuple[Path, ...]
    series: bool
    each: bool
    reverse: bool = False
    fuzz: int = 0

    def define(self, name: str, patches: Sequence[Path]) -> list[OwnKernel]:
        """Return the kernels to add: one, or one for each patch.

        Raises:
            ConfigurationError: with every problem.
        """
        if self.series and self.each:
            raise ConfigurationError(["--series and --each: give one of them"])
        if not patches and (self.reverse or self.fuzz):
            option = "--reverse" if self.reverse else "--fuzz"
            raise ConfigurationError([f"{option} says how patches are applied: name a patch"])
        if not patches and (self.series or self.each):
            option = "--series" if self.series else "--each"
            raise ConfigurationError([f"{option} makes a kernel for each patch: name a patch"])
        if self.each:
            return [self._define(f"{name}-{file.stem.lower()}", [file]) for file in patches]
        kernel = self._define(name, patches)
        if not self.series:
            return [kernel]
        before = len(read_kernel(self.base, places.data()).patches) if self.base else 0
        return [replace(kernel, name=f"{kernel.name}-{end - before}", patches=kernel.patches[:end])
                for end in range(before + 1, len(kernel.patches) + 1)]  # fmt: skip

    def _define(self, name: str, patches: Sequence[Path]) -> OwnKernel:
        return define(name, places.data(), base=self.base, patches=patches,
                      fragments=self.fragments, git=self.git, revision=self.revision,
                      fuzz=self.fuzz, reverse=self.reverse)  # fmt: skip


def keep_kernels(
    services: Services, kernels: Sequence[OwnKernel], *, replaced: bool
) -> list[tuple[Path, KernelBuild]]:
    """Build and boot ``kernels``, then keep all of them; return the folder and build of each.

    Raises:
        ConfigurationError: one is there already, and is not to be replaced.
        TestbedError: one cannot be built; none is kept.
    """
    home = places.data()
    existing = set(own_kernels(home)).intersection(kernel.name for kernel in kernels)
    if existing and not replaced:
        raise ConfigurationError(
            [f"a kernel {name!r} is there; choose another name, or give --replace"
             for name in sorted(existing)]
        )  # fmt: skip
    with places.using_cache(services.cache()):
        usr = ensure_named(DEFAULT_ROOT, services.cache(), _log.info).usr
        builds = [ensure_own_build(kernel, services.cache(), usr, _log.info) for kernel in kernels]
    folders = [write_own(kernel, home, replaced=replaced) for kernel in kernels]
    return list(zip(folders, builds, strict=True))
