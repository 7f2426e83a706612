"""Builds of recipes: install, split, serve on loopback, record, keep in the cache."""

from __future__ import annotations

import shutil
import zlib
from collections import defaultdict, deque
from dataclasses import replace
from pathlib import Path
from urllib.parse import urldefrag, urljoin

from testbed.base import places
from testbed.base.checksums import damaged_files, write_checksums
from testbed.base.errors import ConfigurationError
from testbed.base.scratch import scratch_folder
from testbed.base.sources import digest_sources, imported_sources
from testbed.model import DEFAULT_ROOT, Replay, digest
from testbed.pages.authority import ROOT_NAME
from testbed.pages.build import Tell, build_archive, build_page
from testbed.root.cache import ensure_named
from testbed.root.interpreter import nginx_argv
from testbed.server.loopback import serve_loopback
from wings.pages.coding import decode
from wings.pages.exchange import PageExchange, Recording, find_header, without
from wings.pages.har_export import write_archive
from wings.pages.recipe.description import Recipe, read_recipe
from wings.pages.recipe.packages import Installed, install, read_package
from wings.pages.recipe.references import CHANGED, LOSSLESS
from wings.pages.recipe.site import make_site, split
from wings.pages.recorder import RecordError, RecordOrder, record
from wings.pages.recorder.driver import SOURCES, set_up_recording

BODIES = (
    "As they are in the package, but for references, which name the host that a file was given "
    "to; text as gzip of level 6 leaves it. Each file is named by the SHA-256 of its bytes."
)
# What decides what is recorded, beside the recipe, the package and this module with its imports.
# Nothing is slow on loopback.
_WAIT_S, _TIMEOUT_S = 1.0, 60.0
_ATTEMPTS = 3
_DECODED_LIMIT = 64 * 1024 * 1024


def build_recipe(folder: Path, cache: Path, tell: Tell) -> Path:
    """Build the page that the recipe in ``folder`` makes, unless the cache has it.

    ``cache/packages`` keeps the package, ``cache/recipes`` the recording and ``cache/pages`` the
    built page; each appears whole or not at all, and the last two are made again where they are
    damaged.  The same recipe and package give the same page, to the byte.

    Raises:
        ConfigurationError: the recipe is wrong, or does not fit its package.
        MissingError: the package, or what records it, is not to be had.
        TestbedError: recording failed.
    """
    recipe = read_recipe(folder)
    recorded_page = _place(recipe, recipe.version, recipe.checksum, cache)
    if not _is_whole(recorded_page, tell):
        set_up_recording()  # npm, which fetches packages, comes with it
        installed = install(recipe, cache, tell)
        recorded_page = _place(recipe, installed.version, installed.checksum, cache)
        if not _is_whole(recorded_page, tell):
            recording = make_canonical(capture_recipe(recipe, installed, cache, tell))
            write_archive(recorded_page, recording, licence=recipe.licence, bodies=BODIES,
                          replace=True)  # fmt: skip
            write_checksums(recorded_page.parent)
    return build_archive(folder, recorded_page, cache)


def _is_whole(recorded_page: Path, tell: Tell) -> bool:
    """Return whether the recording is there; one that is damaged is removed."""
    if not recorded_page.is_dir():
        return False
    damaged = damaged_files(recorded_page.parent)
    if damaged:
        tell(f"{recorded_page.name}: {damaged[0]} of its recording is damaged; recording it again")
        shutil.rmtree(recorded_page.parent)
    return not damaged


def _place(recipe: Recipe, version: str, checksum: str, cache: Path) -> Path:
    """Return where the recording is kept: its name has a hash of all that decides it."""
    code = digest_sources([*imported_sources(__name__), *sorted(SOURCES.glob("*.mjs"))])
    inputs = [recipe.digest, version, checksum, zlib.ZLIB_RUNTIME_VERSION, code]
    return cache / "recipes" / f"{recipe.name}-{digest(inputs)[:16]}" / recipe.name


def capture_recipe(recipe: Recipe, installed: Installed, cache: Path, tell: Tell) -> Recording:
    """Serve the recipe's site and record it, with the recipe's own title, date and source.

    Raises:
        ConfigurationError: the recipe does not fit the package, or a script of the page asks for
            what the site does not have.
        TestbedError: serving or recording failed.
    """
    parts = split(recipe, gather_files(recipe, installed, cache, tell))
    site = make_site(recipe, parts, _source(recipe, installed))
    with scratch_folder("recipe") as scratch:
        scratch.chmod(0o755)  # or the browser could not have a user of its own
        write_archive(scratch / recipe.name, site, licence=recipe.licence)
        built = build_page(scratch / recipe.name, scratch / "built")
        tell(f"recording {recipe.name} from loopback")
        recording, replay = capture(built, scratch, tell)
    problems = [
        f"{recipe.name}: a script asked for {url}, which the site does not have; add the file to "
        "recipe.also, or change the script by recipe.edits"
        for url in (*replay.missed, *(item.asked for item in replay.inexact))
    ]
    if problems:
        raise ConfigurationError(problems)
    return replace(recording, title=recipe.title, recorded=recipe.recorded, source=site.source,
                   notes=(*recipe.deviations, *parts.notes))  # fmt: skip


def gather_files(recipe: Recipe, installed: Installed, cache: Path, tell: Tell) -> dict[str, bytes]:
    """Return all files of the site by their paths: of the package, of its parts, and its own.

    Raises:
        ConfigurationError: a package has none below its root.
        MissingError, CommandError: a part is not to be had.
    """
    files = read_package(recipe, installed)
    for part in recipe.parts:
        further = recipe.of_part(part)
        below = read_package(further, install(further, cache, tell))
        files |= {f"{part.at}/{path}": data for path, data in below.items()}
    return files | {path: text.encode() for path, text in recipe.own_files.items()}


def capture(built: Path, scratch: Path, tell: Tell) -> tuple[Recording, Replay]:
    """Serve a built page on loopback and record one load of it; and how the server answered.

    All of such a load can be had, so a recording that lacks anything is made again.

    Raises:
        RecordError: no recording was whole.
        TestbedError: serving or recording failed.
    """
    nginx = nginx_argv(ensure_named(DEFAULT_ROOT, places.cache(), tell).usr)
    for _ in range(_ATTEMPTS):
        with serve_loopback(built, nginx=nginx) as site:
            order = RecordOrder(
                url=site.archive.root_url, wait_s=_WAIT_S, timeout_s=_TIMEOUT_S,
                resolver_rules=site.resolver_rules,
                authority=None if site.tls is None else site.tls / ROOT_NAME,
            )  # fmt: skip
            # A page takes seconds, and there are many: `tell` has said that it is being recorded.
            recording = record(order, scratch, lambda _progress: None)
            replay = site.replay()
        if not recording.notes:
            return recording, replay
        tell(f"not whole: {' '.join(recording.notes)}")
    raise RecordError(
        f"{order.url}: {_ATTEMPTS} recordings from loopback, none of them whole: "
        f"{' '.join(recording.notes)} What a script asks of another host has to be changed by "
        "recipe.edits."
    )


def _source(recipe: Recipe, installed: Installed) -> str:
    further = "".join(f", {part.package} {part.version}" for part in recipe.parts)
    return (
        f"The {recipe.registry} package {recipe.package} {installed.version} "
        f"({installed.checksum}){further}, split over several hosts, served on loopback and "
        "recorded from there in headless Chromium."
    )


def make_canonical(recording: Recording) -> Recording:
    """Return ``recording`` without times and other accidents, in the canonical order."""
    bare = [replace(exchange, headers=without(exchange.headers, "date"), request_headers=(),
                    start_ms=None, dur_ms=None, wait_ms=None)
            for exchange in _ordered(recording)]  # fmt: skip
    return replace(recording, exchanges=tuple(bare), load_ms=None)


def _ordered(recording: Recording) -> list[PageExchange]:
    root, *others = recording.exchanges
    urls = {exchange.url for exchange in recording.exchanges}
    children_by_url: defaultdict[str, list[PageExchange]] = defaultdict(list)
    for exchange in others:
        parent = exchange.initiator
        if parent is None or parent not in urls or parent == exchange.url:
            parent = root.url
        children_by_url[parent].append(exchange)
    ordered: list[PageExchange] = []
    waiting = deque([root])
    while waiting:
        exchange = waiting.popleft()
        ordered.append(exchange)
        children = children_by_url.pop(exchange.url, [])
        places = find_mentions(exchange) if children else {}
        last = len(places)
        children.sort(key=lambda child: (places.get(child.url, last), child.url, child.method))
        waiting.extend(children)
    return ordered


def find_mentions(exchange: PageExchange) -> dict[str, int]:
    """Return the URLs that a document or style sheet loads, each with its place among them."""
    change = CHANGED.get(exchange.mime)
    if change is None or not exchange.body:
        return {}
    encoding = find_header(exchange.headers, "content-encoding")
    text = decode(exchange.body, encoding, _DECODED_LIMIT).decode(LOSSLESS)
    positions: dict[str, int] = {}

    def note(url: str) -> str:
        positions.setdefault(urldefrag(urljoin(exchange.url, url)).url, len(positions))
        return url

    change(text, note)
    return positions
