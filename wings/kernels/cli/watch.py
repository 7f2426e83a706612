"""The verb ``kernel watch``: test the branches that a kernel's CI publishes, as netdev's does."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import click

from firstflight.cli.services import Services, pass_services
from testbed.base import log, places, proc
from testbed.base.errors import EXIT_OK, EXIT_OUT_OF_TOLERANCE, ConfigurationError
from wings.kernels.selftests.packetdrill import VARIABLE
from wings.kernels.watch.branches import (
    Branch,
    ListError,
    fetch_branches,
    newest_untested,
    open_mirror,
)
from wings.kernels.watch.executor import GROUP, SUITES, Executor, UnansweredError
from wings.kernels.watch.published import PublishedRuns

MOST_TRIES = 3
"""So often a branch is tried that comes to no answer."""
_log = log.logger(__name__)
_folder = click.Path(path_type=Path, file_okay=False)
_existing = click.Path(path_type=Path, exists=True, file_okay=False)


@click.command("watch")
@click.argument("branches", metavar="BRANCHES")
@click.argument("folder", metavar="FOLDER", type=_folder)
@click.option("--address", metavar="URL", default="", help="Where FOLDER is served; default: links "
              "are relative to it.")  # fmt: skip
@click.option("--executor", "name", metavar="NAME", default=GROUP, show_default=True,
              help="Name of this executor in the CI.")  # fmt: skip
@click.option("--suite", "suites", type=click.Choice(SUITES), multiple=True,
              help="Only this suite; repeatable.")  # fmt: skip
@click.option("--every", "every_s", type=click.FloatRange(min=0), default=60.0, show_default=True,
              metavar="S", help="Seconds between two looks at BRANCHES.")  # fmt: skip
@click.option("--rounds", type=click.IntRange(min=1), metavar="N",
              help="End after N looks; default: run until stopped.")  # fmt: skip
@click.option("--limit", "limit_min", type=click.FloatRange(min=1), default=60.0,
              show_default=True, metavar="MIN", help="Minutes that a branch may take.")  # fmt: skip
@click.option("--reference", type=_existing, metavar="DIR",
              help="Local git tree with the kernel's history, to save downloads.")  # fmt: skip
@click.option("--packetdrill", type=_existing, metavar="FOLDER",
              help=f"Source of packetdrill, instead of {VARIABLE}.")  # fmt: skip
@pass_services
def watch_command(services: Services, /, branches: str, folder: Path, address: str, name: str,
                  suites: tuple[str, ...], every_s: float, rounds: int | None, limit_min: float,
                  reference: Path | None, packetdrill: Path | None) -> int:  # fmt: skip
    """Test each new branch of a kernel's CI, and publish the results as static files.

    BRANCHES is a list such as netdev's branches.json: a URL or a file.  FOLDER gets results.json,
    and a file and a folder for each branch.  The commit of each result that is worse than on the
    branch's base is searched.

    Exit code, with --rounds: 0 no branch is worse than its base, 1 one is.
    """
    mirror = places.data() / "watch.git"
    drill = ("--packetdrill", str(packetdrill.resolve())) if packetdrill else ()
    published = PublishedRuns(folder.resolve(), address.rstrip("/") or ".", name)
    try:
        published.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError([f"{folder}: {error.strerror}; choose another"]) from None
    open_mirror(mirror, reference)
    executor = Executor(call_verb, mirror, published, suites or SUITES, limit_min * 60,
                        {"selftests": drill})  # fmt: skip
    worse = False
    tries: dict[str, int] = {}
    looks = 0
    while True:
        looks += 1
        try:
            branch = newest_untested(fetch_branches(branches), published.tested())
            if branch is not None:
                worse |= not _test(executor, branch, tries)
        except ListError as error:
            _log.warning("%s", error)
        if rounds is not None and looks >= rounds:
            return EXIT_OUT_OF_TOLERANCE if worse else EXIT_OK
        time.sleep(every_s)


def call_verb(words: Sequence[str], said: Path, logged: Path, limit_s: float) -> int | None:
    """Call a verb of this program in a process of its own; ``None``: it took too long."""
    argv = [str(places.ROOT / "run.sh"), *words]
    with (said.open("wb") as out, logged.open("wb") as error,
          proc.started(argv, stdout=out, stderr=error) as child):  # fmt: skip
        ended = proc.wait(child, limit_s, threading.Event())
        return None if ended is None else ended.status


def _test(executor: Executor, branch: Branch, tries: dict[str, int]) -> bool:
    """Test a branch; return whether it is known to be no worse, or nothing is known of it."""
    _log.info("%s, made %s", branch.name, branch.date.isoformat())
    try:
        good = executor.test(branch)
    except UnansweredError as error:
        tries[branch.name] = tries.get(branch.name, 0) + 1
        _log.error("%s", error)
        if tries[branch.name] >= MOST_TRIES:
            executor.give_up(branch, str(error))
        return True
    _log.info("%s is %s", branch.name, "no worse than its base" if good else "worse than its base")
    return good
