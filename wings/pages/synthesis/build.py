"""Builds of pages that are resource tables: an archive with a body of each row's size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from testbed.base.errors import ConfigurationError
from testbed.pages.build import Tell, cached_build
from testbed.pages.catalogue import FACTS_NAME, TABLE_NAME, PageFacts, read_facts
from wings.pages.har_export import TABLE_CREATOR, make_har, write_content
from wings.pages.synthesis.bodies import synthesise
from wings.pages.synthesis.page import place_exchanges
from wings.pages.table import PROTOCOLS, read_table


def build_table(folder: Path, cache: Path, _tell: Tell) -> Path:
    """Build the page in ``folder``, a resource table, as ``testbed.pages.build.build_page``."""
    facts = read_facts(folder / FACTS_NAME)
    path, protocol = _find_table(folder, facts)
    rows = tuple(replace(row, protocol=protocol or row.protocol) for row in read_table(path))

    def fill(target: Path) -> None:
        page = synthesise(folder.name, facts.title, rows)
        placed = place_exchanges(page)
        more = {"_made_up": True} if facts.made_up else {}
        har = make_har(
            folder.name, facts.title, facts.recorded, placed, creator=TABLE_CREATOR, more=more
        )
        (target / FACTS_NAME).write_bytes((folder / FACTS_NAME).read_bytes())
        write_content(target, har, (response.body.data for response in page.responses))

    return cached_build(folder, cache, (folder / FACTS_NAME, path), __name__, fill)


def _find_table(folder: Path, facts: PageFacts) -> tuple[Path, str | None]:
    """Return the resource table of a page, and what all its rows speak if that is another page's.

    Raises:
        ConfigurationError: its ``[table]`` names no such page, or no protocol.
    """
    if facts.table is None:
        return folder / TABLE_NAME, None
    asked, path = facts.table, folder / FACTS_NAME
    base, protocol = asked.get("like"), asked.get("protocol")
    problems = [
        f"{path}: table.{key}: unknown; it has like and protocol"
        for key in asked
        if key not in ("like", "protocol")
    ]
    if not isinstance(base, str) or not (folder.parent / base / TABLE_NAME).is_file():
        problems.append(f"{path}: table.like: there is no page {base!r} with a {TABLE_NAME}")
    if protocol not in PROTOCOLS:
        problems.append(
            f"{path}: table.protocol is {protocol!r}, expected one of {', '.join(PROTOCOLS)}"
        )
    if problems:
        raise ConfigurationError(problems)
    return folder.parent / str(base) / TABLE_NAME, str(protocol)
