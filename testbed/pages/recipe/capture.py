"""Loads of pages on loopback, recorded: of a recipe's site, and of what was built from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from testbed.base.errors import ConfigurationError
from testbed.base.scratch import scratch_folder
from testbed.loopback import serve_loopback
from testbed.model import Replay
from testbed.pages.build import build_page
from testbed.pages.recipe.description import Recipe
from testbed.pages.recipe.install import Installed, Tell, read_package
from testbed.pages.recipe.site import make_site
from testbed.pages.recipe.split import split
from testbed.pages.recorder import RecordError, RecordOrder, record
from testbed.pages.recording.exchange import Recording
from testbed.pages.recording.writer import write_archive

# Nothing is slow on loopback.
_WAIT_S, _TIMEOUT_S = 1.0, 60.0
_ATTEMPTS = 3


def capture_recipe(recipe: Recipe, installed: Installed, tell: Tell) -> Recording:
    """Serve the recipe's site and record it, with the recipe's own title, date and source.

    Raises:
        ConfigurationError: the recipe does not fit the package, or a script of the page asks for
            what the site does not have.
        TestbedError: serving or recording failed.
    """
    made = split(recipe, read_package(recipe, installed))
    site = make_site(recipe, made, _source(recipe, installed))
    with scratch_folder("recipe") as scratch:
        scratch.chmod(0o755)  # or the browser could not have a user of its own
        write_archive(scratch / recipe.name, site, licence=recipe.licence)
        built = build_page(scratch / recipe.name, scratch / "built")
        tell(f"recording {recipe.name} from loopback")
        recording, replay = capture(built, scratch, tell)
    problems = [
        f"{recipe.name}: a script asked for {asked}, which the site does not have; add the file to "
        "recipe.also, or change the script by recipe.edits"
        for asked in (*replay.missed, *(item.asked for item in replay.inexact))
    ]
    if problems:
        raise ConfigurationError(problems)
    notes = (*recipe.deviations, *made.notes)
    return replace(
        recording, title=recipe.title, recorded=recipe.recorded, source=site.source, notes=notes
    )


def capture(built: Path, scratch: Path, tell: Tell) -> tuple[Recording, Replay]:
    """Serve a built page on loopback and record one load of it; and how the server answered.

    All of such a load can be had, so a recording that lacks anything is made again.

    Raises:
        RecordError: no recording was whole.
        TestbedError: serving or recording failed.
    """
    for _ in range(_ATTEMPTS):
        with serve_loopback(built) as site:
            order = RecordOrder(
                url=site.archive.root_url,
                wait_s=_WAIT_S,
                timeout_s=_TIMEOUT_S,
                resolver_rules=site.resolver_rules,
                authority=site.authority,
            )
            recording = record(order, scratch, _silent)  # a page takes seconds, and there are many
            replay = site.replay()
        if not recording.notes:
            return recording, replay
        tell(f"not whole: {' '.join(recording.notes)}")
    raise RecordError(
        f"{order.url}: {_ATTEMPTS} recordings from loopback, none of them whole: "
        f"{' '.join(recording.notes)} What a script asks of another host has to be changed by "
        "recipe.edits."
    )


def _silent(_progress: str) -> None:
    """Nothing: `tell` has said that the page is being recorded."""


def _source(recipe: Recipe, installed: Installed) -> str:
    """Where the page is from; with the version and checksum that were really taken."""
    return (
        f"The {recipe.registry} package {recipe.package} {installed.version} "
        f"({installed.checksum}), split over several hosts, served on loopback and recorded "
        "from there in headless Chromium."
    )
